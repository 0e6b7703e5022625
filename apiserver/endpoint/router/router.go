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

// Router maps methods and patterns to values. A pattern is a path in which segments can be parameters, as in /projects/{id}; the last one
// can be a wildcard, {path...}, which matches the rest of the path. If several patterns match, a literal segment takes precedence over a
// parameter, and a parameter over a wildcard. A Router is safe for concurrent use once all values are added.
type Router[T any] struct {
	mux      *chi.Mux
	routes   map[string][]route[T] // by the pattern in chi's syntax
	forms    map[string]string     // patterns by their form without the names of parameters
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
	inner := pattern
	if at := strings.LastIndex(pattern, "/{"); strings.HasSuffix(pattern, "...}") {
		inner, added.wild = pattern[:at]+"/*", true
	}
	form := method + " " + parameter.ReplaceAllString(inner, "{}")
	if other, ok := r.forms[form]; ok {
		panic(fmt.Sprintf("router: %s %s and %s are one", method, pattern, other))
	}
	r.forms[form] = pattern
	r.mux.MethodFunc(method, inner, func(http.ResponseWriter, *http.Request) {}) // never called
	r.routes[inner] = append(r.routes[inner], added)
}

// Parameters returns the names of the parameters of a pattern, in their order. It panics if a parameter is only a part of a segment, or if
// a wildcard is not the last segment.
func Parameters(pattern string) []string {
	var names []string
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
			panic(fmt.Sprintf("router: %s: a wildcard comes last", pattern))
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
	context := r.contexts.Get().(*chi.Context)
	defer r.contexts.Put(context)
	context.Reset()
	routes := r.routes[r.mux.Find(context, method, canonical(escaped))]
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
