package ratelimit_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	. "github.com/forgeplane/forgeplane/apiserver/ratelimit"
	"github.com/forgeplane/forgeplane/internal/fair"
)

// in calls a function with the context of a request from an address. The request is anonymous if caller is empty.
func in(l *Limiter, enter func(http.Handler) http.Handler, address string, caller fair.Key, do func(context.Context) error) (err error) {
	r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
	r.RemoteAddr = address
	enter(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		ctx := r.Context()
		if caller != (fair.Key{}) {
			ctx = fair.With(ctx, caller)
		}
		err = do(ctx)
	})).ServeHTTP(httptest.NewRecorder(), r)
	return err
}

func TestCountGit_limitsUsersAndAddresses(t *testing.T) {
	l := New(Options{GitAuthenticated: 3, GitUnauthenticated: 2, FailedSignIns: 1, Clock: clocktesting.NewFakePassiveClock(at)})
	nobody := fair.Key{}
	for i, tt := range []struct {
		address string
		caller  fair.Key
		count   func(context.Context) error
		want    string
	}{
		{home, nobody, CountGit, ""},
		{home, nobody, CountGit, ""},
		{home, nobody, CountGit, "Your address has made more than the 2 Git requests that are allowed in a minute. Please try again in 40 seconds."},
		{"192.0.2.2:1", nobody, CountGit, ""},
		{home, fair.User(7), CountGit, ""},
		{home, fair.User(7), CountGit, ""},
		{"192.0.2.2:1", fair.User(7), CountGit, ""},
		{"192.0.2.2:1", fair.User(7), CountGit, "You have made more than the 3 Git requests that are allowed in a minute. Please try again in 40 seconds."},
		{home, fair.User(8), CountGit, ""},
		{home, nobody, CountFailedSignIn, ""},
		{home, nobody, CountFailedSignIn, "Your address has made more than the 1 Git requests with a token that is not valid that are allowed in a minute. Please try again in 40 seconds."},
		{"192.0.2.2:1", nobody, CountFailedSignIn, ""},
	} {
		err := in(l, l.Handler, tt.address, tt.caller, tt.count)
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%d: got %q, want %q", i, got, tt.want)
		}
	}
	if got := refused(t, l); got["git"] != 2 || got["failed-sign-in"] != 1 {
		t.Errorf("the metrics are %v", got)
	}
}

func TestCountGit_countsNothingWithoutLimits(t *testing.T) {
	l := New(Options{Clock: clocktesting.NewFakePassiveClock(at)})
	for range 100 {
		if err := errors.Join(in(l, l.Handler, home, fair.Key{}, CountGit), in(l, l.Handler, home, fair.Key{}, CountFailedSignIn)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAggregated_limitsCostlyRequestsByIdentity(t *testing.T) {
	l := New(Options{Authenticated: 1, Unauthenticated: 1, Endpoints: true, Clock: clocktesting.NewFakePassiveClock(at)})
	archive := func(ctx context.Context) error {
		return CountThing(ctx, 2, "archive", func() string { return "group/project" })
	}
	const apiserver = "10.0.0.1:1"
	for i, tt := range []struct {
		caller fair.Key
		count  func(context.Context) error
		status int
	}{
		{fair.Identity("ann"), Count, 0}, {fair.Identity("ann"), Count, 0}, {fair.Identity("ann"), Count, 0},
		{fair.Identity("ann"), archive, 0}, {fair.Identity("ann"), archive, 0}, {fair.Identity("ann"), archive, 429},
		{fair.Identity("bob"), archive, 0}, {fair.User(7), archive, 0},
	} {
		err := in(l, l.Aggregated, apiserver, tt.caller, tt.count)
		var answer *endpoint.Error
		if (err == nil) != (tt.status == 0) || err != nil && (!errors.As(err, &answer) || answer.Status != tt.status) {
			t.Errorf("%d: got %v, want %d", i, err, tt.status)
		}
	}
}

// refused returns the metric of refused requests, by limit.
func refused(t *testing.T, l *Limiter) map[string]float64 {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(l)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			all[m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
		}
	}
	return all
}
