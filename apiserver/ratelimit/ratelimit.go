// Package ratelimit refuses callers of the REST API who call too often: users by who they are, and everybody else by the
// address. It counts in windows of a minute of the clock, as the headers that tell clients of it have it, and for this process
// alone.
package ratelimit

import (
	"context"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"

	"github.com/forgeplane/forgeplane/apiserver/endpoint"
)

// window is the time in which requests are counted together.
const window = time.Minute

// Options say what is limited.
type Options struct {
	// Authenticated is how many requests of a user are served in a minute; 0 for any number.
	Authenticated int
	// Unauthenticated is the same for an address, of requests without a token and of those with one that is not good. An
	// IPv6 network of 64 bits counts as one address.
	Unauthenticated int
	// Endpoints says whether those that are endpoint.Limited are.
	Endpoints bool
	// Costly replaces, by the name of what they are limited for, how often a minute a user has it of a project; 0 for any number.
	Costly map[string]int
	// TrustedProxies are the networks whose X-Forwarded-For is believed.
	TrustedProxies []netip.Prefix
	Clock          clock.PassiveClock
}

// Limiter counts requests. It is safe for use by several goroutines.
type Limiter struct {
	users, addresses throttle
	endpoints        bool
	costly           map[string]int
	proxies          []netip.Prefix
	clock            clock.PassiveClock
	requests         *counter
	current          atomic.Pointer[minute]
}

// New returns a limiter.
func New(o Options) *Limiter {
	return &Limiter{
		users:     newThrottle(o.Authenticated, "throttle_authenticated_api"),
		addresses: newThrottle(o.Unauthenticated, "throttle_unauthenticated_api"),
		endpoints: o.Endpoints, costly: o.Costly, proxies: o.TrustedProxies, clock: o.Clock, requests: newCounter(),
	}
}

// throttle is a limit of all requests together.
type throttle struct {
	limit int
	// What headers say of it. They share the slices, which nothing can append to.
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

// request is what counting one takes.
type request struct {
	limiter *Limiter
	sent    *http.Request
	answer  http.Header
}

type requestKey struct{}

// Handler serves with next, where Count and CountEndpoint find the limiter.
func (l *Limiter) Handler(next http.Handler) http.Handler {
	if l.users.limit == 0 && l.addresses.limit == 0 && !l.endpoints {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), requestKey{}, &request{l, r, w.Header()})))
	})
}

// Count counts the request that ctx belongs to, for the user who has an id, or for the address where it is 0. It says in the
// headers of the answer how many are left. The error is the answer when there were too many.
func Count(ctx context.Context, user int64) error {
	r, ok := ctx.Value(requestKey{}).(*request)
	if !ok {
		return nil
	}
	l, t := r.limiter, &r.limiter.addresses
	if user != 0 {
		t = &r.limiter.users
	}
	if t.limit == 0 {
		return nil
	}
	now := l.clock.Now()
	m := l.minute(now)
	observed := l.requests.add(r.key(user, "", ""), m.number)
	left := [...]string{strconv.Itoa(observed), strconv.Itoa(max(t.limit-observed, 0))}
	r.answer["Ratelimit-Limit"] = t.limits
	r.answer["Ratelimit-Name"] = t.name
	r.answer["Ratelimit-Observed"] = left[0:1:1]
	r.answer["Ratelimit-Remaining"] = left[1:2:2]
	r.answer["Ratelimit-Reset"] = m.reset
	r.answer["Ratelimit-Resettime"] = m.resetTime
	if observed > t.limit {
		return endpoint.Throttled(m.ends.Sub(now))
	}
	return nil
}

// CountEndpoint counts the request that ctx belongs to against the limit of an endpoint, if it has one. The user is as in Count;
// subject names the project or group that the request is about. Endpoints that are limited for the same thing share the count.
// The error is the answer when there were too many.
func CountEndpoint(ctx context.Context, e *endpoint.Endpoint, user int64, subject func() string) error {
	limit, what := e.Limit()
	if limit == 0 {
		return nil
	}
	return CountThing(ctx, limit, what, user, subject)
}

// CountThing is CountEndpoint for what turns out to be limited only when it is looked at: what it is, and how often a minute it
// is to be had.
func CountThing(ctx context.Context, perMinute int, what string, user int64, subject func() string) error {
	r, ok := ctx.Value(requestKey{}).(*request)
	if !ok || !r.limiter.endpoints {
		return nil
	}
	if chosen, ok := r.limiter.costly[what]; ok {
		perMinute = chosen
	}
	if perMinute == 0 {
		return nil
	}
	now := r.limiter.clock.Now()
	m := r.limiter.minute(now)
	if r.limiter.requests.add(r.key(user, what, subject()), m.number) > perMinute {
		return endpoint.TooManyRequests(what, m.ends.Sub(now))
	}
	return nil
}
