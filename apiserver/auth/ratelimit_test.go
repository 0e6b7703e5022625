package auth_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/ratelimit"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/apiserver/v4/users"
	"github.com/forgeplane/forgeplane/internal/credential"
	"github.com/forgeplane/forgeplane/internal/fair"
)

func TestRateLimit_countsUsersAndAddresses(t *testing.T) {
	f := familytest.New(t, familytest.User("mary", 2), familytest.User("otto", 3), familytest.User("bob", 4, familytest.Blocked))
	tree := endpoint.NewHandler(
		endpoint.Options{Guard: f.Guard, Log: logr.Discard(), BaseURL: &url.URL{}},
		users.New(f.Kit).Table(),
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

// A tenant can have any number of service accounts, so these count neither as signed in nor as separate callers.
func TestIdentity_withoutUserIsNotSignedIn(t *testing.T) {
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

// administrators has one administrator.
type administrators struct{}

func (administrators) Include(ctx context.Context) (bool, error) {
	identity, _ := auth.IdentityFrom(ctx)
	return identity == "administrator", nil
}

// token is a second token of mary.
func token() *v1alpha1.AccessToken {
	return &v1alpha1.AccessToken{
		ObjectMeta: metav1.ObjectMeta{Name: "second"},
		Spec:       v1alpha1.AccessTokenSpec{ID: 9, UserRef: v1alpha1.Reference{Name: "mary"}, Scopes: []v1alpha1.TokenScope{v1alpha1.ScopeAPI}},
		Status:     v1alpha1.AccessTokenStatus{ID: 9, Digest: credential.Digest("fpat-a-second-token-of-mary")},
	}
}

func TestLimitedBy_countsAddressesAndCredentials(t *testing.T) {
	f := familytest.New(t, familytest.User("mary", 2), familytest.User("otto", 3), token())
	get := func(context.Context, auth.Instance, *endpoint.None) (int, error) { return 1, nil }
	tree := endpoint.NewHandler(endpoint.Options{
		Guard: auth.NewGuard(auth.NewAuthenticator(f.Catalog, f.Clock, administrators{}), f.Catalog, nil), Log: logr.Discard(), BaseURL: &url.URL{},
	}, endpoint.Table{
		endpoint.Get("/address", get).LimitedBy(endpoint.ByAddress, 3, "registration"),
		endpoint.Get("/credential", get).LimitedBy(endpoint.ByCredential, 2, "event"),
		endpoint.Get("/both", get).LimitedBy(endpoint.ByAddress, 4, "trigger").LimitedBy(endpoint.ByCredential, 2, "trigger"),
		endpoint.Get("/none", get),
	})
	const first, second = "192.0.2.1:1", "192.0.2.2:1"
	mary, otto, more := familytest.Value("mary"), familytest.Value("otto"), "fpat-a-second-token-of-mary"
	type request struct {
		path, address, token, identity string
		status                         int
	}
	requests := []request{
		// An address counts for all callers from it, whether or not they are known.
		{"/address", first, mary, "", 200}, {"/address", first, "", "", 401}, {"/address", first, "no token", "", 401},
		{"/address", first, otto, "", 429}, {"/address", first, "", "", 429}, {"/address", second, otto, "", 200},
		// A credential counts across all addresses. Callers without one count by address.
		{"/credential", first, mary, "", 200}, {"/credential", second, mary, "", 200}, {"/credential", second, mary, "", 429},
		{"/credential", second, more, "", 200}, {"/credential", second, otto, "", 200},
		{"/credential", first, "no token", "", 401}, {"/credential", first, "", "", 401}, {"/credential", first, "", "", 429},
		// Both limits apply.
		{"/both", first, mary, "", 200}, {"/both", first, mary, "", 200}, {"/both", first, mary, "", 429}, {"/both", second, mary, "", 429},
		{"/both", first, more, "", 200}, {"/both", first, more, "", 429}, {"/both", second, otto, "", 200},
		// kube-apiserver forwards callers from its own address, so they count by identity.
		{"/address", first, "", "administrator", 200}, {"/address", first, "", "administrator", 200}, {"/address", first, "", "administrator", 200},
		{"/address", second, "", "administrator", 429}, {"/credential", first, "", "administrator", 200},
		{"/none", first, mary, "", 200}, {"/none", first, mary, "", 200}, {"/none", first, mary, "", 200}, {"/none", first, mary, "", 200},
	}
	for _, enforced := range []bool{true, false} {
		limiter := ratelimit.New(ratelimit.Options{Authenticated: 1000, Unauthenticated: 1000, Endpoints: enforced, Clock: f.Clock})
		for i, tt := range requests {
			r := httptest.NewRequest(http.MethodGet, tt.path, http.NoBody)
			r.RemoteAddr = tt.address
			h := limiter.Handler(tree)
			if tt.identity != "" {
				r, h = r.WithContext(auth.WithIdentity(r.Context(), tt.identity)), limiter.Aggregated(tree)
			}
			if tt.token != "" {
				r.Header.Set("PRIVATE-TOKEN", tt.token)
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			switch refused := w.Code == http.StatusTooManyRequests; {
			case !enforced && refused, enforced && w.Code != tt.status:
				t.Errorf("%d, enforced %t: got %d %s, want %d", i, enforced, w.Code, w.Body, tt.status)
			case refused && (w.Header().Get("Retry-After") != "60" || w.Header().Get("RateLimit-Remaining") != "0" || !strings.HasPrefix(w.Header().Get("RateLimit-Name"), "throttle_")):
				t.Errorf("%d: the headers are %v", i, w.Header())
			case !refused && tt.identity == "" && w.Header().Get("RateLimit-Limit") != "1000":
				t.Errorf("%d: clients are to pace themselves by %v", i, w.Header())
			}
		}
	}
}

func TestLimitedBy_namesTheExceededLimit(t *testing.T) {
	f := familytest.New(t, familytest.User("mary", 2))
	get := func(context.Context, auth.Instance, *endpoint.None) (int, error) { return 1, nil }
	tree := endpoint.NewHandler(endpoint.Options{Guard: f.Guard, Log: logr.Discard(), BaseURL: &url.URL{}},
		endpoint.Table{endpoint.Get("/address", get).LimitedBy(endpoint.ByAddress, 1, "registration")})
	h := ratelimit.New(ratelimit.Options{Authenticated: 1000, Endpoints: true, Clock: f.Clock}).Handler(tree)
	var w *httptest.ResponseRecorder
	for range 2 {
		r := httptest.NewRequest(http.MethodGet, "/address", http.NoBody)
		r.Header.Set("PRIVATE-TOKEN", familytest.Value("mary"))
		w = httptest.NewRecorder()
		h.ServeHTTP(w, r)
	}
	const body = `{"message":{"error":"This registration has been requested too many times. Try again later."}}`
	if w.Code != http.StatusTooManyRequests || w.Body.String() != body {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
	for name, want := range map[string]string{
		"Retry-After": "60", "RateLimit-Limit": "1", "RateLimit-Observed": "2", "RateLimit-Remaining": "0", "RateLimit-Name": "throttle_registration_by_address",
		"RateLimit-Reset": strconv.FormatInt(f.Clock.Now().Unix()+60, 10), "RateLimit-ResetTime": f.Clock.Now().Add(time.Minute).UTC().Format(http.TimeFormat),
	} {
		if got := w.Header().Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}
