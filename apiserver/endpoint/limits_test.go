package endpoint_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/endpoint/endpointtest"
)

func mustParse(t *testing.T, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestRemovalsMayDependOnWhenARecordWasChanged(t *testing.T) {
	changed := time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC)
	remove := func(ctx context.Context, _ *endpoint.None) (endpoint.None, error) {
		if since := endpoint.UnmodifiedSince(ctx); !since.IsZero() && changed.After(since) {
			return endpoint.None{}, endpoint.PreconditionFailed()
		}
		return endpoint.None{}, nil
	}
	h := newHandler(endpoint.Table{endpoint.Delete("/labels/1", remove).Conditional(), endpoint.Delete("/labels/2", remove)})
	contract := endpointtest.Of(t, h)
	tests := []struct {
		path, sent string
		status     int
	}{
		{"/labels/1", "", 204},
		{"/labels/1", "Mon, 15 Jun 2026 12:00:00 GMT", 204},
		{"/labels/1", "Mon, 15 Jun 2026 11:59:59 GMT", 412},
		{"/labels/1", "Monday, 15-Jun-26 11:59:59 GMT", 412},
		{"/labels/1", "Mon Jun 15 11:59:59 2026", 412},
		{"/labels/1", "2026-06-15T11:59:59.999Z", 412},
		{"/labels/1", "2026-06-15T12:00:00.000Z", 204},
		{"/labels/1", "2026-06-15T14:00:00+02:30", 412},
		{"/labels/1", "yesterday", 204},
		{"/labels/1", "Mon, 15 Jun 2026 11:59:59 GMT, Mon, 15 Jun 2026 11:59:59 GMT", 204},
		{"/labels/2", "Mon, 15 Jun 2026 11:59:59 GMT", 204},
	}
	for _, tt := range tests {
		r := httptest.NewRequest(http.MethodDelete, tt.path, http.NoBody)
		r.Header.Set("If-Unmodified-Since", tt.sent)
		w := httptest.NewRecorder()
		contract.Handler(t, h).ServeHTTP(w, r)
		if w.Code != tt.status || tt.status == 412 && w.Body.String() != `{"message":"412 Precondition Failed"}` {
			t.Errorf("%s %q: got %d %s, want %d", tt.path, tt.sent, w.Code, w.Body, tt.status)
		}
	}
}

func TestTooManyRequestsAreRefusedInTwoForms(t *testing.T) {
	refuse := func(err error) func(context.Context, *endpoint.None) (endpoint.None, error) {
		return func(context.Context, *endpoint.None) (endpoint.None, error) { return endpoint.None{}, err }
	}
	archive := endpoint.Get("/archive", refuse(endpoint.TooManyRequests("archive", 1500*time.Millisecond))).Limited(5, "archive")
	h := newHandler(endpoint.Table{archive, endpoint.Get("/any", refuse(endpoint.Throttled(time.Minute)))})
	if n, what := archive.Limit(); n != 5 || what != "archive" {
		t.Errorf("the limit is %d of %q", n, what)
	}
	contract := endpointtest.Of(t, h)
	for path, want := range map[string]struct{ wait, kind, body string }{
		"/archive": {"2", "application/json", `{"message":{"error":"This archive has been requested too many times. Try again later."}}`},
		"/any":     {"60", "text/plain", "Retry later\n"},
	} {
		w := httptest.NewRecorder()
		contract.Handler(t, h).ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, http.NoBody))
		if w.Code != 429 || w.Body.String() != want.body || w.Header().Get("Content-Type") != want.kind || w.Header().Get("Retry-After") != want.wait {
			t.Errorf("%s: got %d %q, %v", path, w.Code, w.Body, w.Header())
		}
	}
}
