// Package router finds the value for a method and a path.
package router

import (
	"fmt"
	"net/http"
	"net/url"
	urlpath "path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/go-chi/chi/v5" // among the routers that prefer literal segments to parameters and parameters to wildcards, the only one that can look up without serving
)

// Router maps methods and patterns to values. A pattern is a path in which segments can be parameters, as in /projects/{id}. A wildcard,
// {path...}, is a parameter that can contain slashes: the last segment, which matches the rest of the path, or one before it, which matches
// several segments only if nothing else matches. If several patterns match, a literal segment takes precedence over a parameter, and a
// parameter over a wildcard. A Router is safe for concurrent use once all values are added.
type Router[T any] struct {
	mux      *chi.Mux
	routes   map[string][]route[T] // by the pattern in chi's syntax
	forms    map[string]string     // patterns by their form without the names of parameters
	inner    []*regexp.Regexp      // paths with a wildcard before the last segment, which is the only group
	contexts sync.Pool
}

type route[T any] struct {
	method string
	value  T
	names  []string
	// wild says that the last parameter is a wildcard.
	wild bool
}

// New returns a router without patterns.
func New[T any]() *Router[T] {
	return &Router[T]{
		mux: chi.NewMux(), routes: map[string][]route[T]{}, forms: map[string]string{},
		contexts: sync.Pool{New: func() any { return chi.NewRouteContext() }},
	}
}

var parameter = regexp.MustCompile(`\{[^}]*\}`)

// Add adds a value. It panics if the same method and pattern exist already, even if the parameters have other names.
func (r *Router[T]) Add(method, pattern string, value T) {
	added := route[T]{method: method, value: value, names: Parameters(pattern)}
	known := pattern
	if at := strings.LastIndex(pattern, "/{"); strings.HasSuffix(pattern, "...}") {
		known, added.wild = pattern[:at]+"/*", true
	}
	if strings.Contains(known, "...}") {
		r.inner = append(r.inner, innerWildcard(known))
		known = strings.ReplaceAll(known, "...}", "}")
	}
	form := method + " " + parameter.ReplaceAllString(known, "{}")
	if other, ok := r.forms[form]; ok {
		panic(fmt.Sprintf("router: %s %s and %s are one", method, pattern, other))
	}
	r.forms[form] = pattern
	r.mux.MethodFunc(method, known, func(http.ResponseWriter, *http.Request) {}) // never called
	r.routes[known] = append(r.routes[known], added)
}

// innerWildcard returns an expression for the paths of a pattern. Its only group is the wildcard before the last segment.
func innerWildcard(pattern string) *regexp.Regexp {
	segments := strings.Split(pattern, "/")
	for i, segment := range segments {
		switch {
		case segment == "*":
			segments[i] = ".+"
		case strings.HasSuffix(segment, "...}"):
			segments[i] = "(.+?)"
		case strings.HasPrefix(segment, "{"):
			segments[i] = "[^/]+"
		default:
			segments[i] = regexp.QuoteMeta(segment)
		}
	}
	return regexp.MustCompile("^" + strings.Join(segments, "/") + "$")
}

// Parameters returns the names of the parameters of a pattern, in their order. It panics if a parameter is only a part of a segment, or if
// two wildcards are before the last segment, or one that no literal segment follows.
func Parameters(pattern string) []string {
	var names []string
	inner := false
	segments := strings.Split(pattern, "/")
	for i, segment := range segments {
		if !strings.ContainsAny(segment, "{}*") {
			continue
		}
		name := strings.TrimSuffix(strings.TrimPrefix(segment, "{"), "}")
		plain, wild := strings.CutSuffix(name, "...")
		if len(name)+2 != len(segment) || plain == "" || strings.ContainsAny(plain, "{}*:") {
			panic(fmt.Sprintf("router: %s: a parameter takes a whole segment", pattern))
		}
		if wild && i != len(segments)-1 {
			if inner || strings.HasPrefix(segments[i+1], "{") {
				panic(fmt.Sprintf("router: %s: one wildcard can be before the last segment, and a literal segment must follow it", pattern))
			}
			inner = true
		}
		names = append(names, plain)
	}
	return names
}

// Find returns the value for a path, and the values of its parameters. The path is escaped as it was sent, so an escaped slash is a part of
// a parameter. A parameter is never empty, and a wildcard does not end in a slash. A path with ".." or an empty segment matches nothing.
// HEAD finds the value for GET.
func (r *Router[T]) Find(method, escaped string) (value T, parameters map[string]string, ok bool) {
	if !clean(escaped) {
		return value, nil, false
	}
	if method == http.MethodHead {
		method = http.MethodGet
	}
	path := canonical(escaped)
	if value, parameters, ok = r.find(method, path); ok {
		return value, parameters, true
	}
	for _, pattern := range r.inner {
		at := pattern.FindStringSubmatchIndex(path)
		if at == nil {
			continue
		}
		segment := strings.ReplaceAll(path[at[2]:at[3]], "/", "%2F")
		if value, parameters, ok = r.find(method, path[:at[2]]+segment+path[at[3]:]); ok {
			return value, parameters, true
		}
	}
	return value, nil, false
}

// find finds the value for a path that canonical returned.
func (r *Router[T]) find(method, path string) (value T, parameters map[string]string, ok bool) {
	context := r.contexts.Get().(*chi.Context)
	defer r.contexts.Put(context)
	context.Reset()
	routes := r.routes[r.mux.Find(context, method, path)]
	i := slices.IndexFunc(routes, func(one route[T]) bool { return one.method == method })
	if i < 0 {
		return value, nil, false
	}
	found, values := &routes[i], context.URLParams.Values
	parameters = make(map[string]string, len(found.names))
	for i, name := range found.names {
		text := values[i]
		if strings.IndexByte(text, '%') >= 0 {
			text, _ = url.PathUnescape(text) // a path that is not correctly escaped has no parameters
		}
		if text == "" {
			return value, nil, false
		}
		parameters[name] = text
	}
	if found.wild && strings.HasSuffix(values[len(values)-1], "/") {
		return value, nil, false
	}
	return found.value, parameters, true
}

// clean reports whether no segment of a path is empty, "." or "..".
func clean(escaped string) bool {
	return !strings.Contains(escaped, "//") && (!strings.Contains(escaped, "/.") || len(urlpath.Clean(escaped)) >= len(strings.TrimSuffix(escaped, "/")))
}

// canonical returns an escaped path in which only slashes and percent signs are escaped, so that it can be compared with patterns.
func canonical(escaped string) string {
	first := strings.IndexByte(escaped, '%')
	if first < 0 {
		return escaped
	}
	var b strings.Builder
	done := 0
	for i := first; i+2 < len(escaped); i++ {
		if escaped[i] != '%' {
			continue
		}
		c, err := strconv.ParseUint(escaped[i+1:i+3], 16, 8)
		if err != nil {
			return escaped
		}
		if c != '/' && c != '%' {
			b.Grow(len(escaped) - done)
			b.WriteString(escaped[done:i])
			b.WriteByte(byte(c))
			done = i + 3
		}
		i += 2
	}
	if done == 0 {
		return escaped
	}
	b.WriteString(escaped[done:])
	return b.String()
}
