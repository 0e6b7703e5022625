// Package ratelimit refuses callers of the REST API and of Git who send too many requests. Users and Kubernetes identities are counted by
// identity, and all others by address. The windows are minutes of the clock, as the rate limit headers tell clients. Each process counts
// separately.
package ratelimit

import (
	"context"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus" // the library that controller-runtime's own metrics are made with
	"k8s.io/utils/clock"

	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/internal/fair"
)

// window is the time in which requests are counted together.
const window = time.Minute

// Options say what is limited.
type Options struct {
	// Authenticated is the maximum number of requests of a user per minute. 0 means no limit.
	Authenticated int
	// Unauthenticated is the same limit for an address, for requests without a token or with an invalid one. An IPv6 network of 64 bits
	// counts as one address.
	Unauthenticated int
	// GitAuthenticated is the maximum number of Git requests of a user per minute. GitUnauthenticated is the same limit for an address, for
	// callers who have not signed in. 0 means no limit. A clone takes three requests.
	GitAuthenticated, GitUnauthenticated int
	// FailedSignIns is the maximum number of Git requests with an invalid token from an address per minute. 0 means no limit. Beyond the
	// limit, valid tokens are still accepted, because a token cannot be guessed.
	FailedSignIns int
	// Endpoints enforces the limits of single endpoints, such as endpoint.Limited.
	Endpoints bool
	// Costly replaces limits of endpoints, by the name of the limited resource: requests per minute of a user about a project. 0 means no limit.
	Costly map[string]int
	// TrustedProxies are the networks whose X-Forwarded-For is believed.
	TrustedProxies []netip.Prefix
	Clock          clock.PassiveClock
}

// Limiter counts requests. It is safe for use by several goroutines, and a collector of metrics.
type Limiter struct {
	users, addresses throttle
	gitUsers         int
	gitAddresses     int
	failedSignIns    int
	endpoints        bool
	costly           map[string]int
	proxies          []netip.Prefix
	clock            clock.PassiveClock
	requests         *counter
	current          atomic.Pointer[minute]
	refused          *prometheus.CounterVec
}

// New returns a limiter.
func New(o Options) *Limiter {
	return &Limiter{
		users:     newThrottle(o.Authenticated, "throttle_authenticated_api"),
		addresses: newThrottle(o.Unauthenticated, "throttle_unauthenticated_api"),
		gitUsers:  o.GitAuthenticated, gitAddresses: o.GitUnauthenticated, failedSignIns: o.FailedSignIns,
		endpoints: o.Endpoints, costly: o.Costly, proxies: o.TrustedProxies, clock: o.Clock, requests: newCounter(),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "forgeplane_rate_limited_requests_total",
			Help: "How many requests were refused because their caller had made too many in a minute, by the limit.",
		}, []string{"limit"}),
	}
}

// Describe implements prometheus.Collector.
func (l *Limiter) Describe(ch chan<- *prometheus.Desc) { l.refused.Describe(ch) }

// Collect implements prometheus.Collector.
func (l *Limiter) Collect(ch chan<- prometheus.Metric) { l.refused.Collect(ch) }

// throttle is a limit with the values of its headers.
type throttle struct {
	limit int
	// The values of the headers. They share the slices, which nothing can append to.
	limits, name []string
}

func newThrottle(limit int, name string) throttle {
	return throttle{limit: limit, limits: slices.Clip([]string{strconv.Itoa(limit)}), name: slices.Clip([]string{name})}
}

// minute is a window.
type minute struct {
	number           int64
	ends             time.Time
	reset, resetTime []string
}

// minute returns the window of now.
func (l *Limiter) minute(now time.Time) *minute {
	number := now.Unix() / int64(window/time.Second)
	if m := l.current.Load(); m != nil && m.number == number {
		return m
	}
	ends := time.Unix((number+1)*int64(window/time.Second), 0)
	m := &minute{
		number: number, ends: ends,
		reset:     slices.Clip([]string{strconv.FormatInt(ends.Unix(), 10)}),
		resetTime: slices.Clip([]string{ends.UTC().Format(http.TimeFormat)}),
	}
	l.current.Store(m)
	return m
}

// request has the data for counting a request.
type request struct {
	limiter *Limiter
	answer  http.Header
	// costly is true if only the limits of endpoints apply.
	costly bool
	// counted are the counts to which the request was added. The first of them are in room, which saves allocations.
	mu      sync.Mutex
	counted []observation
	room    [2]observation
}

// observation is the number of requests under a key in the current minute, including this request.
type observation struct {
	key    uint64
	number int
}

// observe counts the request under a key, at most once, and returns the number of requests under the key in the minute.
func (r *request) observe(key uint64, m *minute) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, o := range r.counted {
		if o.key == key {
			return o.number
		}
	}
	if r.counted == nil {
		r.counted = r.room[:0]
	}
	number := r.limiter.requests.add(key, m.number)
	r.counted = append(r.counted, observation{key, number})
	return number
}

type requestKey struct{}

// Handler serves with next, and makes the limiter available to the functions that count. The context initially has the key of the client
// address. Code that identifies the caller sets the caller's key with fair.With.
func (l *Limiter) Handler(next http.Handler) http.Handler { return l.handler(next, false) }

// Aggregated is Handler for requests that come through kube-apiserver, which limits their number itself: only the limits of endpoints apply.
// The client address is the one that the aggregated API server has set with fair.With, or otherwise the address of the connection.
func (l *Limiter) Aggregated(next http.Handler) http.Handler { return l.handler(next, true) }

func (l *Limiter) handler(next http.Handler, costly bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := r.Context()
		if !costly || fair.From(ctx) == (fair.Key{}) {
			ctx = fair.With(ctx, fair.Address(l.Client(r)))
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(ctx, requestKey{}, &request{limiter: l, answer: w.Header(), costly: costly})))
	})
}

// Count counts the request that ctx belongs to, for the caller of ctx, and sets the rate limit headers of the response. A request counts
// once, even if Count is called again. The error is 429 if the caller has sent too many requests.
func Count(ctx context.Context) error {
	r, ok := ctx.Value(requestKey{}).(*request)
	if !ok || r.costly {
		return nil
	}
	caller := fair.From(ctx)
	l, t := r.limiter, &r.limiter.users
	if caller.Anonymous() {
		t = &r.limiter.addresses
	}
	if t.limit == 0 {
		return nil
	}
	now := l.clock.Now()
	m := l.minute(now)
	observed := r.observe(l.key(caller, "", ""), m)
	r.tell(t, observed, m)
	if observed > t.limit {
		l.refused.WithLabelValues(t.name[0]).Inc()
		return endpoint.Throttled(m.ends.Sub(now))
	}
	return nil
}

// tell sets the rate limit headers of the response.
func (r *request) tell(t *throttle, observed int, m *minute) {
	left := [...]string{strconv.Itoa(observed), strconv.Itoa(max(t.limit-observed, 0))}
	r.answer["Ratelimit-Limit"] = t.limits
	r.answer["Ratelimit-Name"] = t.name
	r.answer["Ratelimit-Observed"] = left[0:1:1]
	r.answer["Ratelimit-Remaining"] = left[1:2:2]
	r.answer["Ratelimit-Reset"] = m.reset
	r.answer["Ratelimit-Resettime"] = m.resetTime
}

// CountEndpoint counts the request that ctx belongs to against the limit of an endpoint, if it has one, for the caller of ctx.
// subject names the project or group that the request is about. Endpoints with the same limited resource share the count. The error is 429 if
// the caller has sent too many requests.
func CountEndpoint(ctx context.Context, e *endpoint.Endpoint, subject func() string) error {
	limit, what := e.Limit()
	if limit == 0 {
		return nil
	}
	return CountThing(ctx, limit, what, subject)
}

// CountThing is CountEndpoint for a resource whose limit is known only after a lookup. perMinute is the limit, and what names the resource.
func CountThing(ctx context.Context, perMinute int, what string, subject func() string) error {
	r, perMinute := enforced(ctx, perMinute, what)
	if perMinute == 0 {
		return nil
	}
	if wait, ok := r.count(fair.From(ctx), what, subject(), perMinute); !ok {
		return endpoint.TooManyRequests(what, wait)
	}
	return nil
}

// enforced returns the request of ctx and the limit per minute; 0 means no limit.
func enforced(ctx context.Context, perMinute int, what string) (*request, int) {
	r, ok := ctx.Value(requestKey{}).(*request)
	if !ok || !r.limiter.endpoints {
		return nil, 0
	}
	if chosen, ok := r.limiter.costly[what]; ok {
		perMinute = chosen
	}
	return r, perMinute
}

// count counts the request of a caller for the resource named what, and reports whether it is within the limit. If not, wait is the time until
// the end of the minute.
func (r *request) count(caller fair.Key, what, subject string, perMinute int) (wait time.Duration, ok bool) {
	l := r.limiter
	now := l.clock.Now()
	m := l.minute(now)
	if r.observe(l.key(caller, what, subject), m) <= perMinute {
		return 0, true
	}
	l.refused.WithLabelValues(what).Inc()
	return m.ends.Sub(now), false
}
