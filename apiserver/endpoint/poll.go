package endpoint

import (
	"context"
	"net/http"
	"time"
)

// Polls lets the handler wait by Poll until something happens, for at most so long. A body has 64 KiB, which are held meanwhile.
func (e *Endpoint) Polls(limit time.Duration) *Endpoint {
	e.polls, e.maxBody = limit, min(e.maxBody, freeBody)
	return e
}

// Waits is for how long the handler may wait by Poll; 0 where it does not.
func (e *Endpoint) Waits() time.Duration { return e.polls }

type pollKey struct{}

// polling is what Poll knows of a request.
type polling struct {
	// until is when it ends, and stopped is closed when it has to end before.
	until   time.Time
	stopped <-chan struct{}
	// again asks the Guard once more, and fresh is how old its decision may be when something is found.
	again func() error
	fresh time.Duration
}

// withPolling returns the context of a handler that may wait.
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

// Poll looks for something, and again whenever there may be something new, until it is found or the time is over that Endpoint.Polls gives,
// or the server stops. changed returns a channel that is closed at the next change; it is asked before each look, so that none is
// missed. Where nothing was found, found is false. When the client leaves, or may not ask any more, Poll ends with an error. Nothing that
// others need is held while it waits.
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
