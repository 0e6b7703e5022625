package endpoint_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"github.com/forgeplane/forgeplane/apiserver/endpoint"
)

// fickle is a guard that admits requests until refused is set.
type fickle struct{ refused *bool }

func (f fickle) Admit(r *http.Request, _ *endpoint.Endpoint, _ endpoint.Sent) (context.Context, any, error) {
	if *f.refused {
		return nil, nil, endpoint.Forbidden("")
	}
	return r.Context(), endpoint.None{}, nil
}

func (fickle) Check(*endpoint.Endpoint) error { return nil }

// slowly is a body that calls a function when it is read.
type slowly struct {
	io.Reader
	do func()
}

func (s slowly) Read(p []byte) (int, error) { s.do(); return s.Reader.Read(p) }

func TestGuard_isAskedAgainAfterSlowBody(t *testing.T) {
	for name, tt := range map[string]struct {
		fresh time.Duration
		code  int
	}{"slowly": {time.Nanosecond, 403}, "at once": {time.Hour, 201}} {
		t.Run(name, func(t *testing.T) {
			refused, called := false, false
			h := endpoint.NewHandler(endpoint.Options{
				Guard: fickle{&refused}, Log: logr.Discard(), BaseURL: &url.URL{Path: "/api/v4"}, Fresh: tt.fresh,
			}, endpoint.Table{endpoint.Post("/things", func(context.Context, endpoint.None, *endpoint.None) (string, error) {
				called = true
				return "made", nil
			})})
			body := slowly{strings.NewReader(`{}`), func() { refused = true }}
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/things", body)
			r.Header.Set("Content-Type", "application/json")
			answer := httptest.NewRecorder()
			h.ServeHTTP(answer, r)
			if answer.Code != tt.code || called != (tt.code == 201) {
				t.Errorf("answered %d, called: %v", answer.Code, called)
			}
		})
	}
}
