package endpoint

import (
	"context"
	"net/http"
	"time"
)

// Polls allows the handler to wait with Poll until something happens, for at most limit. The body is limited to 64 KiB, which are held in
// memory during the wait.
func (e *Endpoint) Polls(limit time.Duration) *Endpoint {
	e.polls, e.maxBody = limit, min(e.maxBody, freeBody)
	return e
}

// Waits returns how long the handler may wait with Poll; 0 means that it does not wait.
func (e *Endpoint) Waits() time.Duration { return e.polls }

type pollKey struct{}

// polling has the state of a request that Poll needs.
type polling struct {
	// until is the time at which the wait ends. stopped is closed when it must end earlier.
	until   time.Time
	stopped <-chan struct{}
	// again asks the Guard again, and fresh is the maximum age of its decision when something is found.
	again func() error
	fresh time.Duration
}

// withPolling returns the context of a handler that can wait.
func (h *Handler) withPolling(ctx context.Context, r *http.Request, e *Endpoint, a *answer) context.Context {
	if e.polls == 0 {
		return ctx
	}
	return context.WithValue(ctx, pollKey{}, polling{
		until: time.Now().Add(e.polls), stopped: h.options.Stopping, fresh: h.options.Fresh,
		again: func() error {
			_, _, err := h.options.Guard.Admit(r, e, a.known)
			return err
		},
	})
}

// Poll calls look until it finds something, until the limit of Endpoint.Polls has passed, or until the server stops. changed returns a
// channel that is closed at the next change; Poll calls it before each look, so that it misses no change. found is false if nothing was
// found. Poll returns an error when the client disconnects or is no longer allowed to ask. It holds no shared resources while it waits.
func Poll[T any](ctx context.Context, changed func() <-chan struct{}, look func(context.Context) (what T, found bool, err error)) (what T, found bool, err error) {
	p, _ := ctx.Value(pollKey{}).(polling)
	asked := time.Now()
	over := time.NewTimer(time.Until(p.until))
	defer over.Stop()
	for {
		change := changed()
		if time.Since(asked) > p.fresh && p.again != nil {
			if err := p.again(); err != nil {
				return *new(T), false, err
			}
			asked = time.Now()
		}
		if what, found, err = look(ctx); found || err != nil {
			return what, found, err
		}
		select {
		case <-change:
		case <-over.C:
			return *new(T), false, nil
		case <-p.stopped:
			return *new(T), false, nil
		case <-ctx.Done():
			return *new(T), false, ctx.Err()
		}
	}
}
