package endpoint_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/forgeplane/forgeplane/apiserver/endpoint"
)

// quiet is a response writer that discards everything.
type quiet struct{ header http.Header }

func (q quiet) Header() http.Header         { return q.header }
func (q quiet) Write(b []byte) (int, error) { return len(b), nil }
func (quiet) WriteHeader(int)               {}

// BenchmarkRequests measures routing and decoding: its handlers do nothing.
func BenchmarkRequests(b *testing.B) {
	handler := newHandler(endpoint.Table{
		endpoint.Get("/projects/{id}/labels", nothing[listLabels]),
		endpoint.Put("/projects/{id}/labels", nothing[request]),
	})
	for name, r := range map[string]struct{ method, target, body string }{
		"a list":       {http.MethodGet, "/projects/team%2Fsite/labels?page=2&states[]=opened", ""},
		"a small JSON": {http.MethodPut, "/projects/17/labels", `{"name":"a","color":"b"}`},
		"a large JSON": {http.MethodPut, "/projects/17/labels", `{"name":"a","color":"b","priority":3,"state":"closed","labels":["a","b","c"],"ids":[1,2,3],
			"since":"2026-01-02T03:04:05Z","force":true,"grants":[{"user_id":1},{"user_id":2}],"position":{"base_sha":"abc","line":7}}`},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				sent := httptest.NewRequestWithContext(b.Context(), r.method, r.target, strings.NewReader(r.body))
				sent.Header.Set("Content-Type", "application/json")
				handler.ServeHTTP(quiet{http.Header{}}, sent)
			}
		})
	}
}
