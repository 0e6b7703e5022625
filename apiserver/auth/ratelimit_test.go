package auth_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"testing"

	"github.com/go-logr/logr"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/ratelimit"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/apiserver/v4/users"
	"github.com/forgeplane/forgeplane/internal/fair"
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

// A tenant has any number of service accounts: they are neither signed in nor callers of their own.
func TestIdentitiesWithoutAUserAreNotSignedIn(t *testing.T) {
	f := familytest.New(t, familytest.User("mary", 2, func(s *v1alpha1.UserSpec) {
		s.Kubernetes = &v1alpha1.KubernetesIdentity{Username: "system:serviceaccount:acme:mary"}
	}))
	home := fair.Address(netip.MustParseAddr("192.0.2.1"))
	var got fair.Key
	tell := func(ctx context.Context, _ auth.Instance, _ *struct{}) (endpoint.None, error) {
		got = fair.From(ctx)
		return endpoint.None{}, nil
	}
	tree := endpoint.NewHandler(endpoint.Options{
		Guard: auth.NewGuard(auth.NewAuthenticator(f.Catalog, f.Clock, administrators{}), f.Catalog, nil), Log: logr.Discard(), BaseURL: &url.URL{},
	}, endpoint.Table{endpoint.Get("/version", tell).Anonymous(endpoint.Served)})
	for _, tt := range []struct {
		identity string
		want     fair.Key
		signedIn bool
	}{
		{"", home, false},
		{"system:serviceaccount:acme:mary", fair.User(2), true},
		{"system:serviceaccount:acme:a", fair.Identity("system:serviceaccount:acme:b").Unsigned(), false},
		{"system:serviceaccount:other:a", fair.Identity("system:serviceaccount:other:a").Unsigned(), false},
		{"dana", fair.Identity("dana").Unsigned(), false},
		{"administrator", fair.Identity("administrator"), true},
	} {
		r := httptest.NewRequest(http.MethodGet, "/version", http.NoBody)
		ctx := fair.With(r.Context(), home)
		if tt.identity != "" {
			ctx = auth.WithIdentity(ctx, tt.identity)
		}
		w := httptest.NewRecorder()
		tree.ServeHTTP(w, r.WithContext(ctx))
		if w.Code != http.StatusOK || got != tt.want || got.Anonymous() == tt.signedIn {
			t.Errorf("%q: got %d, the key %v, want %v", tt.identity, w.Code, got, tt.want)
		}
	}
}

// administrators is one identity.
type administrators struct{}

func (administrators) Include(ctx context.Context) (bool, error) {
	identity, _ := auth.IdentityFrom(ctx)
	return identity == "administrator", nil
}
