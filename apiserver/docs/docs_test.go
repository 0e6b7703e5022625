package docs_test

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/go-logr/logr"

	"github.com/forgeplane/forgeplane/apiserver/docs"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
)

type open struct{}

func (open) Admit(r *http.Request, _ *endpoint.Endpoint, _ endpoint.Sent) (context.Context, any, error) {
	return r.Context(), endpoint.None{}, nil
}

func (open) Check(*endpoint.Endpoint) error { return nil }

type getTree struct {
	ID string `param:"id"`
}

// serveDocs serves the page and an API of one family.
func serveDocs(t *testing.T) *httptest.Server {
	t.Helper()
	api := endpoint.NewHandler(endpoint.Options{
		Guard: open{}, Log: logr.Discard(), BaseURL: &url.URL{Path: "/api/v4"},
		Info: endpoint.Info{Title: "A forge", Version: "1.2.3", Server: "../v4"},
	}, endpoint.Table{
		endpoint.Get("/orchards/{id}/tree", func(_ context.Context, _ endpoint.None, r *getTree) (*getTree, error) { return r, nil }).Doc("Shows the tallest tree."),
	}.Named("Orchards"),
		endpoint.Table{endpoint.Get("/sheds", func(context.Context, endpoint.None, *endpoint.None) (endpoint.None, error) {
			return endpoint.None{}, nil
		})}.Named("Sheds"))
	page, err := docs.New("Reference", "../api/v4/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/api/v4/", http.StripPrefix("/api/v4", api))
	mux.Handle(docs.Path, page)
	mux.Handle(docs.Path+"/", page)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server
}

func TestPage_isServedWithItsFiles(t *testing.T) {
	server := serveDocs(t)
	tests := []struct {
		method, path, encoding string
		status                 int
		contentType, holds     string
	}{
		{"GET", "/-/docs", "", 200, "text/html; charset=utf-8", `data-document="../api/v4/openapi.json"`},
		{"GET", "/-/docs/", "", 200, "text/html; charset=utf-8", `data-document="../api/v4/openapi.json"`},
		{"GET", "/-/docs/page.js", "", 200, "text/javascript; charset=utf-8", "SwaggerUIBundle"},
		{"GET", "/-/docs/swagger-ui.css", "", 200, "text/css; charset=utf-8", ".swagger-ui"},
		{"GET", "/-/docs/swagger-ui-bundle.js", "", 200, "text/javascript; charset=utf-8", "SwaggerUIBundle"},
		{"GET", "/-/docs/swagger-ui-bundle.js", "gzip, br", 200, "text/javascript; charset=utf-8", "\x1f\x8b"},
		{"GET", "/-/docs/page.html", "", 404, "text/plain; charset=utf-8", ""},
		{"GET", "/-/docs/../docs.go", "", 404, "text/plain; charset=utf-8", ""},
		{"POST", "/-/docs", "", 405, "text/plain; charset=utf-8", ""},
	}
	client := http.Client{Transport: &http.Transport{DisableCompression: true}}
	for _, tt := range tests {
		r, err := http.NewRequestWithContext(t.Context(), tt.method, server.URL+tt.path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept-Encoding", tt.encoding)
		answer, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		var body bytes.Buffer
		_, err = body.ReadFrom(answer.Body)
		_ = answer.Body.Close()
		if err != nil || answer.StatusCode != tt.status || answer.Header.Get("Content-Type") != tt.contentType || !strings.Contains(body.String(), tt.holds) {
			t.Errorf("%s %s: got %d %v %.300s", tt.method, tt.path, answer.StatusCode, answer.Header, body.String())
		}
		if got := answer.Header.Get("Content-Security-Policy"); tt.status == 200 && (!strings.HasPrefix(got, "default-src 'none'; ") || strings.Contains(got, "unsafe")) {
			t.Errorf("%s: the policy is %q", tt.path, got)
		}
	}
}
