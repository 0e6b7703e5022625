package git

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/forgeplane/forgeplane/internal/fair"
)

// ErrBusy is returned for an operation that did not get its turn, or enough of it, in time. A later retry may succeed. It wraps a
// *fair.Busy if there was no free slot.
var ErrBusy = errors.New("there is too much to do")

// Slots limit how many operations of each kind run at once, and share them among callers. Fields that are not set have defaults.
type Slots struct {
	// Archives and Blobs limit the archives, and the blobs that are too large for memory, that are being written. Their duration depends on
	// how fast the receiver is.
	Archives, Blobs fair.Limits
	// Walks limit the commands that walk through history or compare: each can use up to one processor and much memory.
	Walks fair.Limits
}

// DefaultSlots returns the default slots: one caller can have a quarter of them, and a quarter is reserved for callers who have signed in.
func DefaultSlots() Slots {
	const share, reserved = 25, 25
	return Slots{
		Archives: fair.Of(maxArchives, share, reserved), Blobs: fair.Of(maxBlobs, share, reserved), Walks: fair.Of(maxWalks, share, reserved),
	}
}

// share creates the slots of an engine.
func (e *Engine) share(s Slots) {
	defaults := DefaultSlots()
	e.archives = fair.New("archives", "archives", cmp.Or(s.Archives, defaults.Archives))
	e.blobs = fair.New("blobs", "large files", cmp.Or(s.Blobs, defaults.Blobs))
	e.walks = fair.New("walks", "requests for history and comparisons", cmp.Or(s.Walks, defaults.Walks))
}

// Slots returns the slots of the engine, which are metrics collectors.
func (e *Engine) Slots() []*fair.Slots {
	return []*fair.Slots{e.archives, e.blobs, e.walks, e.readers.slots, e.memory.heavy, e.memory.light}
}

// enter waits for a slot for the caller of ctx, and holds it until leave is called.
func enter(ctx context.Context, s *fair.Slots) (leave func(), err error) {
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
