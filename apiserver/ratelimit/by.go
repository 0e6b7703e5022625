package ratelimit

import (
	"context"

	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/internal/fair"
)

// CountBy counts the request that ctx belongs to against a limit of an endpoint by address or credential. caller is the address or the
// caller. credential identifies the credential, and is empty without one. The error is 429 if there were too many requests. Only then do the
// rate limit headers describe this limit: in all other responses they describe the limit of all requests, by which clients pace themselves.
func CountBy(ctx context.Context, l endpoint.LimitBy, caller fair.Key, credential string) error {
	r, perMinute := enforced(ctx, l.PerMinute, l.What)
	if perMinute == 0 {
		return nil
	}
	now := r.limiter.clock.Now()
	m := r.limiter.minute(now)
	// No path of a project or group begins with a zero byte.
	observed := r.observe(r.limiter.key(caller, l.What, "\x00"+string(l.By)+"\x00"+credential), m)
	if observed <= perMinute {
		return nil
	}
	t := newThrottle(perMinute, "throttle_"+l.What+"_by_"+string(l.By))
	r.tell(&t, observed, m)
	r.limiter.refused.WithLabelValues(t.name[0]).Inc()
	return endpoint.TooManyRequests(l.What, m.ends.Sub(now))
}
