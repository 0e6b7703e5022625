package watermark

import (
	"context"
	"sync"
	"time"
)

// turns runs something for many who ask at once: one run at a time, and each run for all who asked before it began.
type turns[R any] struct {
	run func() R
	// pause is the least time from the beginning of a run to that of the next.
	pause time.Duration

	mu      sync.Mutex
	next    *turn[R]
	running bool
}

// turn is one run.
type turn[R any] struct {
	done   chan struct{}
	result R
}

// take returns the result of a run that begins after it was called; the zero value when ctx ends before.
func (t *turns[R]) take(ctx context.Context) (none R) {
	t.mu.Lock()
	if t.next == nil {
		t.next = &turn[R]{done: make(chan struct{})}
	}
	mine := t.next
	if !t.running {
		t.running = true
		go t.work()
	}
	t.mu.Unlock()
	select {
	case <-mine.done:
		return mine.result
	case <-ctx.Done():
		return none
	}
}

// work runs until no caller asks any more.
func (t *turns[R]) work() {
	for {
		t.mu.Lock()
		now := t.next
		t.next = nil
		if now == nil {
			t.running = false
			t.mu.Unlock()
			return
		}
		t.mu.Unlock()
		begun := time.Now()
		now.result = t.run()
		close(now.done)
		<-time.After(t.pause - time.Since(begun))
	}
}
