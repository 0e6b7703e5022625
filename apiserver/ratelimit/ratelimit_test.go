package ratelimit_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	. "github.com/forgeplane/forgeplane/apiserver/ratelimit"
	"github.com/forgeplane/forgeplane/internal/fair"
	"github.com/forgeplane/forgeplane/test/soak"
)

// at is 20 seconds into a minute.
var at = time.Date(2026, 6, 15, 12, 30, 20, 0, time.UTC)

// guard admits users by the id in a header, and counts requests in the same way as the guard of the forge.
type guard struct{}

func (guard) Admit(r *http.Request, e *endpoint.Endpoint, sent endpoint.Sent) (context.Context, any, error) {
	ctx := r.Context()
	user, err := strconv.ParseInt(r.Header.Get("User"), 10, 64)
	if err == nil {
		ctx = fair.With(ctx, fair.User(user))
	}
	if limited := Count(ctx); limited != nil {
		return nil, nil, limited
	}
	if err != nil && r.Header.Get("User") != "" {
		return nil, nil, endpoint.Unauthorized("")
	}
	return ctx, endpoint.None{}, CountEndpoint(ctx, e, func() string { return sent.Path["id"] })
}

func (guard) Check(*endpoint.Endpoint) error { return nil }

type idRequest struct {
	ID string `param:"id"`
}

func newServer(o Options) (http.Handler, *clocktesting.FakePassiveClock) {
	fine := func(context.Context, endpoint.None, *idRequest) (endpoint.None, error) { return endpoint.None{}, nil }
	clk := clocktesting.NewFakePassiveClock(at)
	o.Clock = clk
	return New(o).Handler(endpoint.NewHandler(endpoint.Options{Guard: guard{}, Log: logr.Discard(), BaseURL: &url.URL{}}, endpoint.Table{
		endpoint.Get("/projects/{id}", fine),
		endpoint.Get("/projects/{id}/archive", fine).Limited(2, "archive"),
		endpoint.Get("/projects/{id}/archive.zip", fine).Limited(2, "archive"),
		endpoint.Get("/projects/{id}/changelog", fine).Limited(2, "changelog"),
	})), clk
}

// get requests a path from an address, as a user or, if user is empty, anonymously.
func get(h http.Handler, path, user, address string, forwarded ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, path, http.NoBody)
	r.RemoteAddr = address
	if user != "" {
		r.Header.Set("User", user)
	}
	for _, f := range forwarded {
		r.Header.Add("X-Forwarded-For", f)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

const home = "192.0.2.1:1234"

func TestHandler_reportsRemainingRequests(t *testing.T) {
	h, clk := newServer(Options{Authenticated: 2, Unauthenticated: 1})
	expect := func(w *httptest.ResponseRecorder, status int, name, limit, observed, remaining, wait string) {
		t.Helper()
		reset := at.Truncate(time.Minute).Add(time.Minute)
		for header, want := range map[string]string{
			"RateLimit-Name": name, "RateLimit-Limit": limit, "RateLimit-Observed": observed, "RateLimit-Remaining": remaining,
			"RateLimit-Reset": strconv.FormatInt(reset.Unix(), 10), "RateLimit-ResetTime": "Mon, 15 Jun 2026 12:31:00 GMT", "Retry-After": wait,
		} {
			if got := w.Header().Get(header); got != want {
				t.Errorf("%s is %q, want %q", header, got, want)
			}
		}
		if w.Code != status || status == 429 && (w.Body.String() != "Retry later\n" || w.Header().Get("Content-Type") != "text/plain") {
			t.Errorf("got %d %q of type %s, want %d", w.Code, w.Body, w.Header().Get("Content-Type"), status)
		}
	}
	const user, nobody = "throttle_authenticated_api", "throttle_unauthenticated_api"
	expect(get(h, "/projects/1", "7", home), 200, user, "2", "1", "1", "")
	expect(get(h, "/projects/2", "7", "192.0.2.2:1"), 200, user, "2", "2", "0", "")
	expect(get(h, "/projects/1", "7", home), 429, user, "2", "3", "0", "40")
	clk.SetTime(at.Add(30500 * time.Millisecond))
	expect(get(h, "/projects/1", "7", home), 429, user, "2", "4", "0", "10")
	expect(get(h, "/projects/1", "8", home), 200, user, "2", "1", "1", "")
	expect(get(h, "/projects/1", "nonsense", home), 401, nobody, "1", "1", "0", "")
	expect(get(h, "/projects/1", "", home), 429, nobody, "1", "2", "0", "10")
	expect(get(h, "/projects/1", "nonsense", home), 429, nobody, "1", "3", "0", "10")
	expect(get(h, "/projects/1", "", "192.0.2.2:1"), 200, nobody, "1", "1", "0", "")

	clk.SetTime(at.Add(40 * time.Second))
	for _, who := range []string{"7", ""} {
		if w := get(h, "/projects/1", who, home); w.Code != 200 || w.Header().Get("RateLimit-Observed") != "1" {
			t.Errorf("in the next minute, as %q: got %d %v", who, w.Code, w.Header())
		}
	}
}

func TestHandler_omitsHeadersWithoutLimits(t *testing.T) {
	for name, o := range map[string]Options{"nothing": {}, "only the others": {Unauthenticated: 1}, "only endpoints": {Endpoints: true}} {
		h, _ := newServer(o)
		for range 5 {
			w := get(h, "/projects/1", "7", home)
			if _, told := w.Header()["Ratelimit-Limit"]; told || w.Code != 200 {
				t.Errorf("%s: got %d %v", name, w.Code, w.Header())
			}
		}
	}
	h, _ := newServer(Options{})
	for range 5 {
		if w := get(h, "/projects/1/archive", "7", home); w.Code != 200 {
			t.Errorf("an endpoint: got %d", w.Code)
		}
	}
}

func TestLimited_countsEachEndpointAndProject(t *testing.T) {
	h, clk := newServer(Options{Endpoints: true, Authenticated: 1000})
	tests := []struct {
		path, user, address string
		status              int
	}{
		{"/projects/1/archive", "7", home, 200},
		{"/projects/1/archive", "7", home, 200},
		{"/projects/1/archive", "7", home, 429},
		{"/projects/1/archive.zip", "7", home, 429},
		{"/projects/1/changelog", "7", home, 200},
		{"/projects/2/archive", "7", home, 200},
		{"/projects/1/archive", "8", home, 200},
		{"/projects/1/archive", "", home, 200},
		{"/projects/1/archive", "", home, 200},
		{"/projects/1/archive", "", home, 429},
		{"/projects/1/archive", "", "192.0.2.2:1", 200},
		{"/projects/1", "7", home, 200},
	}
	for i, tt := range tests {
		w := get(h, tt.path, tt.user, tt.address)
		const body = `{"message":{"error":"This archive has been requested too many times. Try again later."}}`
		if w.Code != tt.status || w.Code == 429 && (w.Body.String() != body || w.Header().Get("Retry-After") != "40") {
			t.Errorf("%d: got %d %s, want %d", i, w.Code, w.Body, tt.status)
		}
	}
	clk.SetTime(at.Add(time.Minute))
	if w := get(h, "/projects/1/archive", "7", home); w.Code != 200 {
		t.Errorf("in the next minute: got %d", w.Code)
	}
}

func TestCostly_replacesLimitsOfEndpoints(t *testing.T) {
	for perMinute, served := range map[int]int{0: 50, 1: 1, 30: 30} {
		h, _ := newServer(Options{Endpoints: true, Costly: map[string]int{"archive": perMinute}})
		got := 0
		for range 50 {
			if get(h, "/projects/1/archive", "7", home).Code == http.StatusOK {
				got++
			}
		}
		if got != served {
			t.Errorf("with %d a minute %d of 50 were served, want %d", perMinute, got, served)
		}
	}
}

func TestTrustedProxies_reportAddressesOfClients(t *testing.T) {
	proxies, err := ParseProxies([]string{"10.0.0.0/8", "192.0.2.9", "fd00::/8"})
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		trusted   []netip.Prefix
		from      string
		forwarded []string
		same      string // counts as the same client
		as        []string
	}{
		"no proxy is trusted":           {nil, "10.0.0.1:1", []string{"192.0.2.7"}, "10.0.0.1:2", nil},
		"the client is not a proxy":     {proxies, "203.0.113.1:1", []string{"192.0.2.7"}, "203.0.113.1:2", nil},
		"behind one proxy":              {proxies, "10.0.0.1:1", []string{"192.0.2.7"}, "192.0.2.7:2", nil},
		"behind two proxies":            {proxies, "10.0.0.1:1", []string{"192.0.2.7, 192.0.2.9"}, "192.0.2.7:2", nil},
		"behind two, in two headers":    {proxies, "10.0.0.1:1", []string{"192.0.2.7", "192.0.2.9"}, "192.0.2.7:2", nil},
		"with what the client invented": {proxies, "10.0.0.1:1", []string{"1.1.1.1, 10.0.0.5, 192.0.2.7"}, "192.0.2.7:2", nil},
		"with a header it invented":     {proxies, "10.0.0.1:1", []string{"1.1.1.1", "192.0.2.7"}, "192.0.2.7:2", nil},
		"nonsense in the header":        {proxies, "10.0.0.1:1", []string{"192.0.2.7, unknown"}, "10.0.0.1:2", nil},
		"an empty header":               {proxies, "10.0.0.1:1", []string{""}, "10.0.0.1:2", nil},
		"with a port":                   {proxies, "10.0.0.1:1", []string{"192.0.2.7:443"}, "192.0.2.7:2", nil},
		"IPv4 within IPv6":              {proxies, "[::ffff:10.0.0.1]:1", []string{"::ffff:192.0.2.7"}, "192.0.2.7:2", nil},
		"a network of IPv6 is one":      {proxies, "[fd00::1]:1", []string{"2001:db8::1"}, "[2001:db8::ffff:ffff]:2", nil},
		"the loopback":                  {nil, "[::1]:1", nil, "[::1]:2", nil},
		"the same by another proxy":     {proxies, "10.0.0.1:1", []string{"192.0.2.7"}, "10.0.0.2:1", []string{"192.0.2.7"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			h, _ := newServer(Options{Unauthenticated: 1, TrustedProxies: tt.trusted})
			if w := get(h, "/projects/1", "", tt.from, tt.forwarded...); w.Code != 200 {
				t.Fatalf("the first: got %d", w.Code)
			}
			if w := get(h, "/projects/1", "", "198.51.100.1:1"); w.Code != 200 {
				t.Errorf("another one: got %d", w.Code)
			}
			if w := get(h, "/projects/1", "", tt.same, tt.as...); w.Code != 429 {
				t.Errorf("the same: got %d", w.Code)
			}
		})
	}
	for _, wrong := range []string{"", "10.0.0.0/33", "proxy.example", "10.0.0"} {
		if all, err := ParseProxies([]string{wrong}); err == nil || !strings.Contains(err.Error(), strconv.Quote(wrong)) {
			t.Errorf("%q: got %v, %v", wrong, all, err)
		}
	}
}

func TestHandler_needsLittleMemoryForMillionAddresses(t *testing.T) {
	soak.Only(t)
	l := New(Options{Unauthenticated: 10, Clock: clocktesting.NewFakePassiveClock(at)})
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
	refused := 0
	count := l.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if Count(r.Context()) != nil {
			refused++
		}
	}))
	before := heap()
	for i := range 1_000_000 {
		r.RemoteAddr = fmt.Sprintf("10.%d.%d.%d:1", i>>16, i>>8&255, i&255)
		count.ServeHTTP(w, r)
	}
	const most = 24 << 20
	if grown := heap() - before; grown > most {
		t.Errorf("%d MB are kept", grown>>20)
	}
	if refused > 0 {
		t.Errorf("%d were refused at their first request", refused)
	}
	// An address that sends many requests is still refused.
	r.RemoteAddr = home
	for range 11 {
		count.ServeHTTP(w, r)
	}
	if refused != 1 {
		t.Errorf("%d of 11 requests were refused, want 1", refused)
	}
	runtime.KeepAlive(l)
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m) //nolint:forbidigo // only "make soak" measures
	return int64(m.HeapAlloc)
}

func TestHandler_countsConcurrentRequests(t *testing.T) {
	h, _ := newServer(Options{Authenticated: 100})
	var served atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 50 {
				if get(h, "/projects/1", "7", home).Code == 200 {
					served.Add(1)
				}
			}
		})
	}
	all.Wait()
	if served.Load() != 100 {
		t.Errorf("%d were served, want 100", served.Load())
	}
}

func BenchmarkCount(b *testing.B) {
	clk := clocktesting.NewFakePassiveClock(at)
	l := New(Options{Authenticated: 1 << 30, Unauthenticated: 1 << 30, Clock: clk})
	for name, user := range map[string]int64{"user": 7, "address": 0} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				w := httptest.NewRecorder()
				r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
				h := l.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
					ctx := r.Context()
					if user != 0 {
						ctx = fair.With(ctx, fair.User(user))
					}
					if err := Count(ctx); err != nil {
						b.Error(err)
					}
				}))
				for pb.Next() {
					h.ServeHTTP(w, r)
				}
			})
		})
	}
}

// Before a server refuses a request, it retries the request if another server may have written something in the meantime.
func TestCount_countsRetriedRequestOnce(t *testing.T) {
	clk := clocktesting.NewFakePassiveClock(at)
	refuse := func(context.Context, endpoint.None, *idRequest) (endpoint.None, error) {
		return endpoint.None{}, endpoint.NotFound("Project")
	}
	served := func(o Options) http.Handler {
		o.Clock = clk
		again := endpoint.Options{Guard: guard{}, Log: logr.Discard(), BaseURL: &url.URL{}, Outdated: func(context.Context) (bool, error) { return true, nil }}
		return New(o).Handler(endpoint.NewHandler(again, endpoint.Table{endpoint.Get("/projects/{id}/archive", refuse).Limited(2, "archive")}))
	}
	for name, o := range map[string]Options{"of all requests": {Authenticated: 2}, "of an endpoint": {Endpoints: true}} {
		s := served(o)
		for n, want := range []int{http.StatusNotFound, http.StatusNotFound, http.StatusTooManyRequests} {
			r := httptest.NewRequest(http.MethodGet, "/projects/1/archive", http.NoBody)
			r.Header.Set("User", "7")
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r)
			if w.Code != want {
				t.Errorf("the limit %s: request %d got %d, want %d", name, n+1, w.Code, want)
			}
			if observed := w.Header().Get("Ratelimit-Observed"); o.Authenticated > 0 && observed != fmt.Sprint(n+1) {
				t.Errorf("request %d counts as %s", n+1, observed)
			}
		}
	}
	l := New(Options{GitAuthenticated: 1, Clock: clk})
	for n := range 2 {
		err := in(l, l.Handler, home, fair.User(7), func(ctx context.Context) error { return errors.Join(CountGit(ctx), CountGit(ctx)) })
		if (err != nil) != (n > 0) {
			t.Errorf("Git request %d: %v", n+1, err)
		}
	}
}

// All requests that kube-apiserver forwards come from its own address.
func TestAggregated_countsAddressInContext(t *testing.T) {
	l := New(Options{Clock: clocktesting.NewFakePassiveClock(at)})
	for name, tt := range map[string]struct{ known, want fair.Key }{
		"known":   {fair.Address(netip.MustParseAddr("203.0.113.7")), fair.Address(netip.MustParseAddr("203.0.113.7"))},
		"unknown": {fair.Key{}, fair.Address(netip.MustParseAddr("192.0.2.1"))},
	} {
		var got fair.Key
		r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
		r.RemoteAddr = home
		l.Aggregated(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = fair.From(r.Context()) })).
			ServeHTTP(httptest.NewRecorder(), r.WithContext(fair.With(r.Context(), tt.known)))
		if got != tt.want {
			t.Errorf("an address that is %s: got %v", name, got)
		}
	}
}
