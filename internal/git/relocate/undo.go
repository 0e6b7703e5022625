package relocate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/forgeplane/forgeplane/internal/git"
)

// undoTime limits what Undo does once it has begun to change something.
const undoTime = time.Minute

// Undo removes what dead attempts have left, and makes the sources live again. Pairs without To keep what is at their destinations. The caller must know that the project lives at the sources,
// and that no attempt can switch any more. While the sources are closed, Undo calls confirm to check that; if it fails, nothing is undone.
// The error is git.ErrClosed if an attempt is alive that has closed a source. Undo can be called again if it fails or is interrupted.
func Undo(ctx context.Context, pairs []Pair, confirm func(context.Context) error) (err error) {
	open, err := closeSources(ctx, pairs)
	defer open()
	if err != nil {
		return err
	}
	if err := confirm(ctx); err != nil {
		return err
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), undoTime)
	defer stop()
	for _, p := range pairs {
		if p.To != nil {
			err = errors.Join(err, p.To.Remove(ctx))
		}
	}
	if errors.Is(err, git.ErrBusy) || errors.Is(err, git.ErrClosed) {
		return err // a write to a copy is running
	}
	// The project must be writable even if the storage of the copies is not.
	for _, p := range pairs {
		by, failed := p.From.RetiredBy()
		if failed == nil && by != "" {
			failed = p.From.Reinstate(by)
		}
		err = errors.Join(err, failed)
	}
	return err
}

// closeSources closes all sources that exist. open must be called even after an error.
func closeSources(ctx context.Context, pairs []Pair) (open func(), err error) {
	var closed []func()
	open = func() {
		for _, one := range closed {
			one()
		}
	}
	for _, p := range pairs {
		if errors.Is(p.From.Check(), git.ErrNotFound) {
			// A copy whose source is gone could be the only one.
			if p.To != nil && p.To.Check() == nil {
				return open, fmt.Errorf("undoing the move of %s: it does not exist, but %s does; find out which of them is live", p.From.Dir(), p.To.Dir())
			}
			continue
		}
		one, err := p.From.CloseSoon(ctx)
		if err != nil {
			return open, err
		}
		closed = append(closed, one)
	}
	return open, nil
}
