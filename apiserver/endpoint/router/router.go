// Package router finds what belongs to a method and a path.
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

	"github.com/go-chi/chi/v5" // of the routers that try words before parameters and these before wildcards, the one that only looks up, too
)

// Router holds values by methods and patterns. A pattern is a path in which segments are parameters, as in /projects/{id}; the last one may
// be a wildcard, {path...}, for all that is left. What has a word where another pattern has a parameter goes first, and a parameter goes
// before a wildcard. It is safe for concurrent use once everything is added.
type Router[T any] struct {
	mux      *chi.Mux
	routes   map[string][]route[T] // by pattern as chi has it
	forms    map[string]string     // patterns by what is left of them without the names of parameters
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

// Add adds a value. It panics where another one has the same method and pattern, whatever their parameters are called.
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
	r.mux.MethodFunc(method, inner, func(http.ResponseWriter, *http.Request) {}) // it is never served
	r.routes[inner] = append(r.routes[inner], added)
}

// Parameters returns the names of the parameters of a pattern, in their order. It panics where one is a part of a segment, or a wildcard is
// not the last.
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

// Find returns what belongs to a path as it was sent, escaped, and the values of its parameters: an escaped slash is a part of one, and none
// is empty. A wildcard does not end in a slash. To a path with ".." or with an empty segment nothing belongs. What answers GET answers HEAD.
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
			text, _ = url.PathUnescape(text) // what is no escaped path has no parameters
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

// clean reports whether a path has no segment that is empty or stands for another one.
func clean(escaped string) bool {
	return !strings.Contains(escaped, "//") && (!strings.Contains(escaped, "/.") || len(urlpath.Clean(escaped)) >= len(strings.TrimSuffix(escaped, "/")))
}

// canonical is an escaped path in which nothing is escaped but slashes and percent signs, so that it can be compared with patterns.
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
