package endpoint

import (
	"net/http"
	"regexp"
	"strings"

	"github.com/forgeplane/forgeplane/apiserver/endpoint/router"
)

// TrailingSlash also serves the path with a slash at its end. Other endpoints answer such a path with 404.
func (e *Endpoint) TrailingSlash() *Endpoint {
	e.slash = true
	return e
}

// Slashes also serves paths in which a parameter contains slashes that are not escaped, as some clients send the names of branches.
func (e *Endpoint) Slashes(parameter string) *Endpoint {
	e.slashed = parameter
	return e
}

// slashedPath returns an expression for the paths of the endpoint in which the parameter of Slashes, its only group, can contain slashes.
func (e *Endpoint) slashedPath() *regexp.Regexp {
	segments := strings.Split(e.path, "/")
	for i, s := range segments {
		name := strings.Trim(s, "{}")
		switch {
		case name == s:
			segments[i] = regexp.QuoteMeta(s)
		case name == e.slashed:
			segments[i] = "(.+?)"
		case name == e.wildcard:
			segments[i] = ".+"
		default:
			segments[i] = "[^/]+"
		}
	}
	return regexp.MustCompile("^" + strings.Join(segments, "/") + "$")
}

// patterns returns the patterns of the paths that the endpoint serves.
func (e *Endpoint) patterns() []string {
	pattern := e.path
	if e.wildcard != "" {
		pattern = strings.TrimSuffix(pattern, "}") + "...}"
	}
	if e.slash {
		return []string{pattern, pattern + "/"}
	}
	return []string{pattern}
}

// plainPath returns a path without the mark of its wildcard, and the name of the wildcard.
func plainPath(path string) (plain, wildcard string) {
	before, is := strings.CutSuffix(path, "...}")
	if !is {
		return path, ""
	}
	return before + "}", before[strings.LastIndex(before, "{")+1:]
}

// pathParameters returns the names in braces.
func pathParameters(path string) []string { return router.Parameters(path) }

func (h *Handler) route(e *Endpoint) {
	for _, pattern := range e.patterns() {
		h.routes.Add(e.method, pattern, e)
	}
	if e.slashed != "" {
		h.slashed = append(h.slashed, e.slashedPath())
	}
}

// find returns the endpoint for a path, and its parameters.
func (h *Handler) find(method, escaped string) (e *Endpoint, path map[string]string, ok bool) {
	if e, path, ok = h.routes.Find(method, escaped); ok {
		return e, path, true
	}
	if strings.Contains(escaped, "//") {
		return nil, nil, false
	}
	for _, pattern := range h.slashed {
		if at := pattern.FindStringSubmatchIndex(escaped); at != nil {
			return h.routes.Find(method, escaped[:at[2]]+strings.ReplaceAll(escaped[at[2]:at[3]], "/", "%2F")+escaped[at[3]:])
		}
	}
	return nil, nil, false
}

// operations returns the Operation Objects of an endpoint by path.
func (s *schemas) operations(e *Endpoint) map[string]object {
	all := map[string]object{e.path: s.operation(e)}
	if e.slash {
		again := s.operation(e)
		again["operationId"] = operationID(e) + "WithSlash"
		all[e.path+"/"] = again
	}
	return all
}

// markWildcard marks the path parameter that may contain slashes, because OpenAPI path templates cannot express that.
func markWildcard(parameters []object, wildcard string) {
	for _, p := range parameters {
		if p["name"] == wildcard {
			p["x-wildcard"] = true
		}
	}
}

// ServeHTTP serves a request whose path is the path of an endpoint, without a prefix such as /api/v4.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.begin(w, r)
	escaped := r.URL.EscapedPath()
	if e, path, ok := h.find(r.Method, escaped); ok {
		h.serve(w, r, e, path)
		return
	}
	h.unknown(w, r, escaped)
}

// unknown answers a request that no endpoint matches: 405 if an endpoint with another method does, and 404 otherwise.
func (h *Handler) unknown(w http.ResponseWriter, r *http.Request, escaped string) {
	var allowed []string
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		if _, _, ok := h.find(method, escaped); ok {
			allowed = append(allowed, method)
		}
	}
	if len(allowed) == 0 {
		h.fail(w, r, noRoute(h.options.Reference))
		return
	}
	h.fail(w, r, &Error{
		Status: http.StatusMethodNotAllowed, body: problem{Error: "405 Not Allowed"},
		Header: http.Header{"Allow": {strings.Join(allowed, ", ")}},
	})
}

// noRoute keeps the error that clients know, and says in the description which paths there are.
func noRoute(reference string) *Error {
	listed := "."
	if reference != "" {
		listed = "; " + reference + " lists the paths that it serves."
	}
	answer := &Error{Status: http.StatusNotFound, body: problem{Error: "404 Not Found"}}
	return answer.Describe("This server does not serve this path%s Each slash within a full path, a branch or the path of a file must be sent as %%2F.", listed)
}
