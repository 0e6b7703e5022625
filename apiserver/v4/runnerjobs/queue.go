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
	// change is the channel of all waiting runners; nil without any. It is closed when the version is not from any more.
	change chan struct{}
	from   string
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

// changed returns a channel that is closed when the version changes, or when it cannot be read.
func (q *queue) changed() <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.change == nil {
		q.change, q.from = make(chan struct{}), q.known
		time.AfterFunc(interval, q.watch)
	}
	return q.change
}

// watch closes the channel of changed, or looks again later.
func (q *queue) watch() {
	version, err := q.current(context.Background())
	q.mu.Lock()
	defer q.mu.Unlock()
	if err == nil && version == q.from {
		time.AfterFunc(interval, q.watch)
		return
	}
	close(q.change)
	q.change = nil
}
