package git

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/semaphore"
)

// ErrBusy is returned for what has not had its turn in time, or not enough of it. It may have it later.
var ErrBusy = errors.New("there is too much to do")

// streamWait is how long one waits for its turn.
const streamWait = 30 * time.Second

// streams are the slots of what a process writes as fast as somebody receives it.
type streams struct {
	slots    *semaphore.Weighted
	patience time.Duration
}

// enter waits for a slot, which is held until leave. The error is ErrBusy where that takes too long.
func (s streams) enter(ctx context.Context) error {
	queue, stop := context.WithTimeoutCause(ctx, s.patience, ErrBusy)
	defer stop()
	if err := s.slots.Acquire(queue, 1); err != nil {
		return context.Cause(queue)
	}
	return nil
}

func (s streams) leave() { s.slots.Release(1) }
