package endpoint

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/forgeplane/forgeplane/apiserver/endpoint/router"
)

// TrailingSlash also serves the path with a slash at its end. Other endpoints answer such a path with 404.
func (e *Endpoint) TrailingSlash() *Endpoint {
	e.slash = true
	return e
}

// patterns returns the patterns of the paths that the endpoint serves.
func (e *Endpoint) patterns() []string {
	if e.slash {
		return []string{e.pattern, e.pattern + "/"}
	}
	return []string{e.pattern}
}

// pathParameters returns the names in braces.
func pathParameters(path string) []string { return router.Parameters(path) }

func (h *Handler) route(e *Endpoint) {
	for _, pattern := range e.patterns() {
		h.routes.Add(e.method, pattern, e)
	}
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

// markWildcards marks the path parameters that may contain slashes, because OpenAPI path templates cannot express that.
func (e *Endpoint) markWildcards(parameters []object) {
	for _, p := range parameters {
		if strings.Contains(e.pattern, fmt.Sprintf("{%s...}", p["name"])) {
			p["x-wildcard"] = true
		}
	}
}

// ServeHTTP serves a request whose path is the path of an endpoint, without a prefix such as /api/v4.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.begin(w, r)
	escaped := r.URL.EscapedPath()
	if e, path, ok := h.routes.Find(r.Method, escaped); ok {
		h.serve(w, r, e, path)
		return
	}
	h.unknown(w, r, escaped)
}

// unknown answers a request that no endpoint matches: 405 if an endpoint with another method does, and 404 otherwise.
func (h *Handler) unknown(w http.ResponseWriter, r *http.Request, escaped string) {
	var allowed []string
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		if _, _, ok := h.routes.Find(method, escaped); ok {
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
