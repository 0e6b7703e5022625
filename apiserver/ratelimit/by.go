package ratelimit

import (
	"context"

	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/internal/fair"
)

// CountBy counts the request that ctx belongs to against a limit of an endpoint by address or credential. caller is the address, or
// who calls, and credential what they are known by; empty for nothing. The error is the answer when there were too many, whose headers
// are about this limit then: those of all other answers stay about the one of all requests together, by which clients pace themselves.
func CountBy(ctx context.Context, l endpoint.LimitBy, caller fair.Key, credential string) error {
	r, perMinute := enforced(ctx, l.PerMinute, l.What)
	if perMinute == 0 {
		return nil
	}
	now := r.limiter.clock.Now()
	m := r.limiter.minute(now)
	// No path of a project or group begins so.
	observed := r.observe(r.limiter.key(caller, l.What, "\x00"+string(l.By)+"\x00"+credential), m)
	if observed <= perMinute {
		return nil
	}
	t := newThrottle(perMinute, "throttle_"+l.What+"_by_"+string(l.By))
	r.tell(&t, observed, m)
	r.limiter.refused.WithLabelValues(t.name[0]).Inc()
	return endpoint.TooManyRequests(l.What, m.ends.Sub(now))
}
