package aggregated

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/forgeplane/forgeplane/apiserver/endpoint"
)

// open admits everyone.
type open struct{}

func (open) Admit(r *http.Request, _ *endpoint.Endpoint, _ endpoint.Sent) (context.Context, any, error) {
	return r.Context(), endpoint.None{}, nil
}

func (open) Check(*endpoint.Endpoint) error { return nil }

func TestEnter_sendsContentInsteadOfRedirects(t *testing.T) {
	tree := endpoint.NewHandler(endpoint.Options{Guard: open{}, Log: logr.Discard()}, endpoint.Table{
		endpoint.Get("/archive", func(context.Context, endpoint.None, *endpoint.None) (endpoint.Elsewhere, error) {
			return endpoint.Elsewhere{URL: "https://store.example", Content: func() (endpoint.Content, error) {
				return endpoint.Content{Type: "text/plain", Size: 4, Write: func(w io.Writer) error {
					_, err := io.WriteString(w, "here")
					return err
				}}, nil
			}}, nil
		}),
	})
	r := httptest.NewRequest(http.MethodGet, Prefix+"/archive", http.NoBody)
	r = r.WithContext(request.WithUser(r.Context(), &user.DefaultInfo{Name: "jane"}))
	w := httptest.NewRecorder()
	enter(tree, &url.URL{}, proxy{}).ServeHTTP(w, r)
	if w.Code != http.StatusOK || w.Body.String() != "here" {
		t.Errorf("got %d %s, %v", w.Code, w.Body, w.Header())
	}
}
