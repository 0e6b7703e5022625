package process

import (
	"context"
	"errors"
	"fmt"

	"github.com/forgeplane/forgeplane/internal/fair"
)

// ErrBusy is returned for an operation that did not get its turn, or enough of it, in time. A later retry may succeed. It wraps a
// *fair.Busy if there was no free slot.
var ErrBusy = errors.New("there is too much to do")

// taker takes slots on behalf of several callers.
type taker interface {
	Take(ctx context.Context, s *fair.Slots, weight int) (*fair.Hold, error)
}

type takerKey struct{}

// WithTaker returns a context for which t takes all slots.
func WithTaker(ctx context.Context, t taker) context.Context {
	return context.WithValue(ctx, takerKey{}, t)
}

// Enter waits for a slot for the caller of ctx, and holds it until leave is called.
func Enter(ctx context.Context, s *fair.Slots) (leave func(), err error) {
	h, err := take(ctx, s, 1)
	if err != nil {
		return nil, err
	}
	return h.Leave, nil
}

// take waits for a number of slots.
func take(ctx context.Context, s *fair.Slots, weight int) (*fair.Hold, error) {
	var h *fair.Hold
	var err error
	if t, ok := ctx.Value(takerKey{}).(taker); ok {
		h, err = t.Take(ctx, s, weight)
	} else {
		h, err = s.Take(ctx, weight)
	}
	var busy *fair.Busy
	if errors.As(err, &busy) {
		return nil, fmt.Errorf("%w: %w", ErrBusy, err)
	}
	return h, err
}
