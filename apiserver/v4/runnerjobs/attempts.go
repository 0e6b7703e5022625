package runnerjobs

import (
	"context"
	"sync"
)

// attempts are the jobs that this process is about to give to runners. All runners find the same oldest job: without attempts, all of them would
// prepare that job, and only one of them would get it.
type attempts struct {
	mu sync.Mutex
	// of has a channel for each job, which is closed when the attempt ends.
	of map[int64]chan struct{}
}

// begin begins an attempt to give a job to a runner, until end is called. If another attempt is under way, it waits for its end, or returns nil at
// once unless wait is set.
func (a *attempts) begin(ctx context.Context, job int64, wait bool) (end func(), err error) {
	for {
		other, end := a.add(job)
		if end != nil || !wait {
			return end, nil
		}
		select {
		case <-other:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// add adds an attempt, or returns the channel of the one that is under way.
func (a *attempts) add(job int64) (other <-chan struct{}, end func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c := a.of[job]; c != nil {
		return c, nil
	}
	mine := make(chan struct{})
	a.of[job] = mine
	return nil, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.of, job)
		close(mine)
	}
}
