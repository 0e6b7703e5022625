package runnerjobs

import (
	"context"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// interval is the time between two looks at the queue. All waiting runners share a look.
const interval = time.Second

// versioned returns a text that changes when something changes.
type versioned func(ctx context.Context) (string, error)

// queue knows when jobs begin to wait for runners, and when runners change, in any process.
type queue struct {
	versions []versioned
	clock    clock.PassiveClock

	mu     sync.Mutex
	known  string
	looked time.Time
}

// current returns the version of the queue, which is a second old at most.
func (q *queue) current(ctx context.Context) (string, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if now := q.clock.Now(); q.known == "" || now.Sub(q.looked) >= interval {
		all := make([]string, len(q.versions))
		for i, version := range q.versions {
			var err error
			if all[i], err = version(ctx); err != nil {
				return "", err
			}
		}
		q.known, q.looked = strings.Join(all, " "), now
	}
	return q.known, nil
}

// changed returns a channel that is closed when it is worth looking again.
func (q *queue) changed() <-chan struct{} {
	changed := make(chan struct{})
	time.AfterFunc(interval, func() { close(changed) })
	return changed
}
