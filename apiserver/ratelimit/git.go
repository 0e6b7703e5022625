package ratelimit

import (
	"context"
	"fmt"
	"time"

	"github.com/forgeplane/forgeplane/internal/fair"
)

// Exceeded is the error for a caller who has sent too many Git requests in a minute.
type Exceeded struct {
	// Limit is the maximum number of requests, and What is their name in the plural.
	Limit int
	What  string
	// Anonymous is true for an address, false for a user.
	Anonymous bool
	// Wait is the time until the end of the minute.
	Wait time.Duration
}

// Error is a sentence for the caller.
func (e *Exceeded) Error() string {
	whose := "You have"
	if e.Anonymous {
		whose = "Your address has"
	}
	return fmt.Sprintf("%s made more than the %d %s that are allowed in a minute. Please try again in %d seconds.",
		whose, e.Limit, e.What, (e.Wait+time.Second-1)/time.Second)
}

// CountGit counts the Git request that ctx belongs to, for the caller of ctx. The error is *Exceeded when there were too many.
func CountGit(ctx context.Context) error {
	return countGit(ctx, "git", "Git requests", func(l *Limiter, k fair.Key) int {
		if k.Anonymous() {
			return l.gitAddresses
		}
		return l.gitUsers
	})
}

// CountFailedSignIn counts the Git request that ctx belongs to, which has an invalid token, for its address. The error is *Exceeded if there
// were too many.
func CountFailedSignIn(ctx context.Context) error {
	return countGit(ctx, "failed-sign-in", "Git requests with a token that is not valid", func(l *Limiter, _ fair.Key) int {
		return l.failedSignIns
	})
}

func countGit(ctx context.Context, name, what string, limit func(*Limiter, fair.Key) int) error {
	r, ok := ctx.Value(requestKey{}).(*request)
	if !ok {
		return nil
	}
	caller := fair.From(ctx)
	perMinute := limit(r.limiter, caller)
	if perMinute == 0 {
		return nil
	}
	wait, ok := r.count(caller, name, "", perMinute)
	if ok {
		return nil
	}
	return &Exceeded{Limit: perMinute, What: what, Anonymous: caller.Anonymous(), Wait: wait}
}
