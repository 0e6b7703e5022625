package git

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/forgeplane/forgeplane/internal/fair"
)

// ErrBusy is returned for what has not had its turn in time, or not enough of it. It may have it later. It comes with a *fair.Busy
// where there was no slot.
var ErrBusy = errors.New("there is too much to do")

// Slots are what callers share: how many of each is done at once. Those that are not set have defaults.
type Slots struct {
	// Archives and Blobs are written as fast as somebody receives them: archives, and blobs that are too large to be in memory.
	Archives, Blobs fair.Limits
	// Walks are commands that walk through history, or compare: each may take a processor for itself, and much memory.
	Walks fair.Limits
}

// DefaultSlots are the slots of an engine that nobody has set: a quarter for one caller, a quarter for those who have signed in.
func DefaultSlots() Slots {
	const share, reserved = 25, 25
	return Slots{
		Archives: fair.Of(maxArchives, share, reserved), Blobs: fair.Of(maxBlobs, share, reserved), Walks: fair.Of(maxWalks, share, reserved),
	}
}

// share makes the slots of an engine.
func (e *Engine) share(s Slots) {
	defaults := DefaultSlots()
	e.archives = fair.New("archives", "archives", cmp.Or(s.Archives, defaults.Archives))
	e.blobs = fair.New("blobs", "large files", cmp.Or(s.Blobs, defaults.Blobs))
	e.walks = fair.New("walks", "requests for history and comparisons", cmp.Or(s.Walks, defaults.Walks))
}

// Slots returns the slots of the engine, which are collectors of metrics.
func (e *Engine) Slots() []*fair.Slots {
	return []*fair.Slots{e.archives, e.blobs, e.walks, e.readers.slots, e.memory.heavy, e.memory.light}
}

// enter waits for a slot for the caller of ctx, which is held until leave.
func enter(ctx context.Context, s *fair.Slots) (leave func(), err error) {
	h, err := take(ctx, s, 1)
	if err != nil {
		return nil, err
	}
	return h.Leave, nil
}

// take waits for a weight of slots.
func take(ctx context.Context, s *fair.Slots, weight int) (*fair.Hold, error) {
	var h *fair.Hold
	var err error
	if a, ok := ctx.Value(attemptKey{}).(*attempt); ok {
		h, err = a.take(ctx, s, weight)
	} else {
		h, err = s.Take(ctx, weight)
	}
	var busy *fair.Busy
	if errors.As(err, &busy) {
		return nil, fmt.Errorf("%w: %w", ErrBusy, err)
	}
	return h, err
}
