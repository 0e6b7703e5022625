package auth_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/go-logr/logr"

	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/ratelimit"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/apiserver/v4/users"
)

func TestCallersAreCountedByWhoTheyAre(t *testing.T) {
	f := familytest.New(t, familytest.User("mary", 2), familytest.User("otto", 3), familytest.User("bob", 4, familytest.Blocked))
	tree := endpoint.NewHandler(
		endpoint.Options{Guard: f.Guard, Log: logr.Discard(), BaseURL: &url.URL{}},
		users.New(f.Catalog, f.Writer, familytest.WebURL, "home").Table(),
	)
	h := ratelimit.New(ratelimit.Options{Authenticated: 2, Unauthenticated: 3, Clock: f.Clock}).Handler(tree)
	for i, tt := range []struct {
		token  string
		status int
	}{
		{familytest.Value("mary"), 200}, {familytest.Value("mary"), 200}, {familytest.Value("mary"), 429},
		{familytest.Value("otto"), 200},
		{"", 401}, {"no token", 401}, {familytest.Value("bob"), 403}, {"no token", 429}, {"", 429},
		{familytest.Value("otto"), 200},
	} {
		r := httptest.NewRequest(http.MethodGet, "/user", http.NoBody)
		if tt.token != "" {
			r.Header.Set("PRIVATE-TOKEN", tt.token)
		}
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code != tt.status || w.Header().Get("RateLimit-Limit") == "" {
			t.Errorf("%d: got %d %s, %v, want %d", i, w.Code, w.Body, w.Header(), tt.status)
		}
	}
}
