package aggregated

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/forgeplane/forgeplane/apiserver/aggregated/route"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/internal/fair"
)

// resolve gives each request for the tree the path of an endpoint before anything decides on it: RBAC, audit and the tree
// see the same.
func resolve(resolver *route.Resolver, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if below, ok := strings.CutPrefix(r.URL.EscapedPath(), Prefix+"/"); ok && below != "" {
			path, polls := resolver.Resolve(r.Context(), r.Method, below)
			if r = withPath(r, Prefix+path); polls {
				r = r.WithContext(context.WithValue(r.Context(), pollsKey{}, true))
			}
			r = auth.HideToken(r) // audit writes down queries
		}
		next.ServeHTTP(w, r)
	})
}

// pollsKey is the key under which resolve marks a polling request.
type pollsKey struct{}

// waits classifies polling requests as long-running, in addition to those of others, so that they occupy no seat of API Priority and Fairness
// and have no request timeout. The endpoint limits how long they wait.
func waits(others request.LongRunningRequestCheck) request.LongRunningRequestCheck {
	return func(r *http.Request, info *request.RequestInfo) bool {
		return r.Context().Value(pollsKey{}) != nil || others(r, info)
	}
}

// enter leads a request that was admitted into the tree.
func enter(tree http.Handler, base *url.URL, p proxy) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// kube-apiserver makes an error of a redirect.
		ctx := endpoint.WithoutRedirects(endpoint.WithBaseURL(r.Context(), base))
		r = withPath(r.WithContext(ctx), strings.TrimPrefix(r.URL.EscapedPath(), Prefix))
		if u, ok := request.UserFrom(r.Context()); ok && u.GetName() != user.Anonymous {
			r = r.WithContext(auth.WithIdentity(r.Context(), u.GetName()))
		} else {
			r = r.WithContext(fair.With(r.Context(), fair.Address(p.client(r))))
		}
		tree.ServeHTTP(w, r)
	})
}

func withPath(r *http.Request, escaped string) *http.Request {
	r = r.WithContext(r.Context())
	u := *r.URL
	if plain, err := url.PathUnescape(escaped); err == nil {
		u.Path, u.RawPath = plain, escaped
	}
	r.URL = &u
	return r
}

// requestInfo says what RBAC is asked about a request: /projects/17/labels is the subresource labels of the project 17. Of
// the query nothing counts, where watch and others mean something to Kubernetes.
type requestInfo struct {
	other request.RequestInfoResolver
}

// NewRequestInfo describes a request whose path was resolved.
func (i requestInfo) NewRequestInfo(r *http.Request) (*request.RequestInfo, error) {
	below, ok := strings.CutPrefix(r.URL.EscapedPath(), Prefix+"/")
	if !ok || below == "" {
		return i.other.NewRequestInfo(r)
	}
	parts := strings.Split(below, "/")
	info := &request.RequestInfo{
		IsResourceRequest: true, Path: r.URL.Path, APIPrefix: "apis", APIGroup: GroupName, APIVersion: Version,
		Verb: verb(r.Method, len(parts) > 1), Resource: parts[0], Parts: parts,
	}
	if len(parts) > 1 {
		info.Name = parts[1]
	}
	if len(parts) > 2 {
		info.Subresource = parts[2]
	}
	return info, nil
}

// Permission returns the RBAC permission for a request to a path such as /projects/{id}/labels: a verb, and a resource with its subresource,
// such as projects/labels.
func Permission(method, path string) (verbOf, resource string) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	resource = parts[0]
	if len(parts) > 2 {
		resource += "/" + parts[2]
	}
	return verb(method, len(parts) > 1), resource
}

// verb returns the RBAC verb of a method, as kube-apiserver does.
func verb(method string, named bool) string {
	switch method {
	case http.MethodGet, http.MethodHead:
		if !named {
			return "list"
		}
		return "get"
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	case http.MethodDelete:
		if !named {
			return "deletecollection"
		}
		return "delete"
	default:
		return ""
	}
}
