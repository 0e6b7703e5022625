package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/forgeplane/forgeplane/apiserver"
	"github.com/forgeplane/forgeplane/apiserver/ratelimit"
)

// rates are the flags that limit the number of requests per minute, and the number of connections.
type rates struct {
	perMinute   ratelimit.Options
	connections int
	proxies     []string
	// flags are the flags of the command line, which know whether they were set.
	flags *pflag.FlagSet
}

func defaultRates() rates {
	return rates{connections: 1000, perMinute: ratelimit.Options{
		Authenticated: 2000, Unauthenticated: 500, GitAuthenticated: 1200, GitUnauthenticated: 300, FailedSignIns: 30, Endpoints: true,
	}}
}

// rate is a flag with a number.
type rate struct {
	flag, usage string
	perMinute   *int
}

func numbersOf(o *ratelimit.Options) []rate {
	return []rate{
		{"rate-limit-authenticated", "REST requests of a user that are served in a minute", &o.Authenticated},
		{"rate-limit-unauthenticated", "REST requests from an address without a valid token that are served in a minute", &o.Unauthenticated},
		{"rate-limit-git-authenticated", "Git requests of a user that are served in a minute; a clone takes three", &o.GitAuthenticated},
		{"rate-limit-git-unauthenticated", "Git requests from an address, by callers who are not signed in, that are served in a minute", &o.GitUnauthenticated},
		{"rate-limit-failed-sign-ins", "Git requests with an invalid token that an address can send in a minute", &o.FailedSignIns},
	}
}

func (r *rates) bind(f *pflag.FlagSet) {
	r.flags = f
	for _, n := range numbersOf(&r.perMinute) {
		f.IntVar(n.perMinute, n.flag, *n.perMinute, n.usage+"; 0 for any number")
	}
	f.StringToIntVar(&r.perMinute.Costly, "rate-limit-costly", nil, "number of costly requests in a minute, by kind ("+strings.Join(apiserver.Costly(), ", ")+
		"), as in archive=20,changelog=0; the page rest.md of the documentation has the defaults; 0 for any number")
}

// bindConnections binds the flags of all processes with clients.
func (r *rates) bindConnections(f *pflag.FlagSet) {
	f.IntVar(&r.connections, "max-connections-per-address", r.connections, "number of connections that an address can have at once, except a trusted proxy; 0 for any number")
	f.StringSliceVar(&r.proxies, "trusted-proxies", nil, "networks of proxies whose header X-Forwarded-For is trusted, as in 10.0.0.0/8")
}

// limits returns the limits. In development, there are no default limits, only the limits that flags set.
func (r *rates) limits(development bool) (ratelimit.Options, error) {
	limits := r.perMinute
	if r.connections < 0 {
		return limits, errors.New("--max-connections-per-address must be 0 or more")
	}
	limits.Costly = maps.Clone(limits.Costly)
	for _, n := range numbersOf(&limits) {
		if *n.perMinute < 0 {
			return limits, fmt.Errorf("--%s must be 0 or more", n.flag)
		}
		if development && !r.given(n.flag) {
			*n.perMinute = 0
		}
	}
	for what, perMinute := range limits.Costly {
		if !slices.Contains(apiserver.Costly(), what) || perMinute < 0 {
			return limits, fmt.Errorf("--rate-limit-costly: %s=%d is not one of %s with a number that is 0 or more", what, perMinute, strings.Join(apiserver.Costly(), ", "))
		}
	}
	if development {
		// All other limits come from the endpoints.
		none := map[string]int{}
		for _, what := range apiserver.Costly() {
			none[what] = 0
		}
		maps.Copy(none, limits.Costly)
		limits.Costly = none
	}
	proxies, err := ratelimit.ParseProxies(r.proxies)
	if err != nil {
		return limits, fmt.Errorf("--trusted-proxies: %w", err)
	}
	limits.TrustedProxies = proxies
	return limits, nil
}

// given reports whether a flag was set. A process without a server has none of these flags.
func (r *rates) given(flag string) bool { return r.flags != nil && r.flags.Changed(flag) }
