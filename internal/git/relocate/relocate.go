// Package relocate moves the repositories of a project to another storage while they are in use.
//
// A move copies the files while the source is writable, then closes it, copies what has changed since, and lets the caller switch to the
// copy. The source is retired before the switch: from then on it refuses writes, whatever happens to the process that moves it. So there is
// never more than one copy that accepts writes, and no accepted write is missing in it.
package relocate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/forgeplane/forgeplane/internal/git"
)

// Pair is a repository and its future place on another storage.
type Pair struct{ From, To *git.Repository }

// Options configure Move.
type Options struct {
	// By is unique for each attempt. It consists of lower-case letters, digits and hyphens, at most 100.
	By string
	// Drain limits how long the running writes of the source are waited for. The default is 30 seconds.
	Drain time.Duration
	// Pause limits how long the sources are closed. The default is a minute. The time for Switch does not count.
	Pause time.Duration
	// Confirm is called with the sources closed, before anything of this attempt is put into place. An error ends the move. It may be nil.
	Confirm func(ctx context.Context) error
	// Report is called when the phase changes, and a few times a second while files are copied. It may be nil.
	Report func(Progress)
	// Switch makes the destination the live copy, durably. All sources are closed and retired then, and all destinations are in place. It
	// returns nil if the destination is live, and an error that wraps ErrUndecided if it could not find out. Any other error means that the
	// destination is not live and that this attempt can no longer make it so.
	Switch func(ctx context.Context) error
	// Reached is for tests: it is called at each point of a move, with the name of the point. It may be nil.
	Reached func(point string)
}

// The points of a move. Those up to PointRetired are reached once for each repository.
const (
	PointStaged    = "staged"
	PointCopied    = "copied"
	PointChecked   = "checked"
	PointSynced    = "synced"
	PointClosed    = "closed"
	PointCaughtUp  = "caught-up"
	PointVerified  = "verified"
	PointFlushed   = "flushed"
	PointPlaced    = "placed"
	PointRetired   = "retired"
	PointSwitching = "switching"
	PointSwitched  = "switched"
	PointOpened    = "opened"
	// These are reached if a move is undone.
	PointWithdrawn  = "withdrawn"
	PointReinstated = "reinstated"
	PointUndone     = "undone"
)

// ErrUndecided is wrapped by the error of Options.Switch, and then of Move, if it is not known whether the destination is live. All copies
// stay, and the sources stay retired.
var ErrUndecided = errors.New("it is not known which copy is live")

// defaultDrain is the default of Options.Drain.
const defaultDrain = 30 * time.Second

// defaultPause is the default of Options.Pause.
const defaultPause = time.Minute

var nameOfAttempt = regexp.MustCompile(`^[a-z0-9-]{1,100}$`)

// Move copies the repositories of a project, in the order in which they must be listed, to their new places, and calls Options.Switch.
// The first one must exist; others that do not exist are skipped. After an error, the sources are as before and nothing is left at the destinations, unless the
// error wraps ErrUndecided or says what could not be undone. After success, the sources are retired by Options.By, and can be removed with
// git.Repository.RemoveRetired.
func Move(ctx context.Context, pairs []Pair, o Options) error {
	if !nameOfAttempt.MatchString(o.By) {
		return fmt.Errorf("the name of the attempt is %q; it must consist of 1 to 100 lower-case letters, digits and hyphens", o.By)
	}
	m := &move{Options: o, told: reporter{tell: o.Report}}
	m.Drain, m.Pause = cmp.Or(o.Drain, defaultDrain), cmp.Or(o.Pause, defaultPause)
	defer m.release()
	err := m.begin(ctx, pairs)
	if err == nil {
		err = m.replicate(ctx)
	}
	if err == nil {
		err = m.handOver(ctx)
	}
	if err == nil || errors.Is(err, ErrUndecided) {
		return err
	}
	for _, r := range m.moving {
		err = errors.Join(err, r.discard(o.By))
	}
	m.reach(PointUndone)
	return err
}

// move is a move that runs.
type move struct {
	Options
	told   reporter
	moving []*replica
	// absent are the pairs whose source does not exist.
	absent []Pair
}

func (m *move) reach(point string) {
	if m.Reached != nil {
		m.Reached(point)
	}
}

// each calls do for each repository, and reports a point.
func (m *move) each(ctx context.Context, point string, do func(context.Context, *replica) error) error {
	for _, r := range m.moving {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := do(ctx, r); err != nil {
			return r.explain(err)
		}
		m.reach(point)
	}
	return nil
}

// begin finds out what to move, and checks that it can be moved.
func (m *move) begin(ctx context.Context, pairs []Pair) error {
	for i, p := range pairs {
		if err := p.To.Check(); !errors.Is(err, git.ErrNotFound) {
			return cmp.Or(missing(err), fmt.Errorf("moving %s: there is already something at %s; undo the attempt that has left it", p.From.Dir(), p.To.Dir()))
		}
		err := p.From.Check()
		if errors.Is(err, git.ErrNotFound) && i > 0 {
			m.absent = append(m.absent, p)
			continue
		}
		if err == nil {
			err = unretired(p.From)
		}
		if err != nil {
			return err
		}
		m.moving = append(m.moving, &replica{from: p.From, to: p.To, told: &m.told})
	}
	for _, r := range m.moving {
		if err := r.measure(ctx); err != nil {
			return err
		}
	}
	return nil
}

// missing returns err if it is about the storage as a whole.
func missing(err error) error {
	if err == nil || errors.Is(err, git.ErrNotRepository) {
		return nil
	}
	return err
}

// unretired returns an error if another attempt has retired a repository.
func unretired(r *git.Repository) error {
	by, err := r.RetiredBy()
	if err == nil && by != "" {
		err = fmt.Errorf("moving %s: it is already retired by %q: %w", r.Dir(), by, git.ErrClosed)
	}
	return err
}

// replicate makes complete and durable copies of the sources, which are in use meanwhile.
func (m *move) replicate(ctx context.Context) error {
	m.told.enter(Copying)
	if err := m.each(ctx, PointStaged, func(_ context.Context, r *replica) error { return r.stage(m.By) }); err != nil {
		return err
	}
	if err := m.each(ctx, PointCopied, func(ctx context.Context, r *replica) error { return r.settle(ctx) }); err != nil {
		return err
	}
	if err := m.each(ctx, PointChecked, func(ctx context.Context, r *replica) error { return r.check(ctx) }); err != nil {
		return err
	}
	return m.each(ctx, PointSynced, func(ctx context.Context, r *replica) error { return r.sync(ctx) })
}

// handOver closes the sources and switches to the copies. If that fails, it undoes what it has done, except that the copies stay staged.
func (m *move) handOver(ctx context.Context) error {
	defer m.open()
	m.told.enter(Closing)
	err := m.close(ctx)
	if err == nil {
		limited, stop := context.WithTimeoutCause(ctx, m.Pause, fmt.Errorf("copying the latest changes took longer than %s: %w", m.Pause, git.ErrBusy))
		err = m.finish(limited)
		stop()
	}
	if err == nil {
		err = m.change(ctx)
	}
	switch {
	case err == nil:
		m.reach(PointSwitched)
	case !errors.Is(err, ErrUndecided):
		err = errors.Join(err, m.takeBack())
	}
	return err
}

// close closes all sources.
func (m *move) close(ctx context.Context) error {
	limited, stop := context.WithTimeoutCause(ctx, m.Drain, fmt.Errorf("they took longer than %s: %w", m.Drain, git.ErrBusy))
	defer stop()
	err := m.each(limited, PointClosed, func(ctx context.Context, r *replica) (err error) {
		if r.open, err = r.from.Close(ctx); err != nil {
			return err
		}
		return unretired(r.from)
	})
	if err != nil {
		return err
	}
	for _, p := range m.absent {
		if err := p.From.Check(); !errors.Is(err, git.ErrNotFound) {
			return cmp.Or(missing(err), fmt.Errorf("moving %s: it was created during the move; try again: %w", p.From.Dir(), git.ErrBusy))
		}
	}
	return nil
}

// finish completes the copies of closed sources, puts them into place, and retires the sources.
func (m *move) finish(ctx context.Context) error {
	m.told.enter(Finishing)
	if err := m.each(ctx, PointCaughtUp, func(ctx context.Context, r *replica) error { return r.settle(ctx) }); err != nil {
		return err
	}
	m.told.enter(Verifying)
	if err := m.each(ctx, PointVerified, func(ctx context.Context, r *replica) error { return r.verify(ctx) }); err != nil {
		return err
	}
	if err := m.each(ctx, PointFlushed, func(ctx context.Context, r *replica) error { return r.sync(ctx) }); err != nil {
		return err
	}
	if m.Confirm != nil {
		if err := m.Confirm(ctx); err != nil {
			return err
		}
	}
	if err := m.each(ctx, PointPlaced, func(_ context.Context, r *replica) error { return r.place() }); err != nil {
		return err
	}
	return m.each(ctx, PointRetired, func(_ context.Context, r *replica) error {
		if err := unretired(r.from); err != nil {
			return err
		}
		return r.from.Retire(m.By)
	})
}

// change switches to the copies.
func (m *move) change(ctx context.Context) error {
	m.told.enter(Switching)
	m.reach(PointSwitching)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return m.Switch(ctx)
}

// takeBack makes the sources live again.
func (m *move) takeBack() (err error) {
	for _, r := range m.moving {
		if r.withdraw != nil {
			err = errors.Join(err, r.withdraw())
		}
	}
	m.reach(PointWithdrawn)
	for _, r := range m.moving {
		by, failed := r.from.RetiredBy()
		if failed == nil && by == m.By {
			failed = r.from.Reinstate(m.By)
		}
		err = errors.Join(err, failed)
	}
	m.reach(PointReinstated)
	return err
}

// open opens the sources, and ends the processes that read them.
func (m *move) open() {
	for _, r := range m.moving {
		if r.open != nil {
			r.open()
			r.from.Evict()
		}
	}
	m.reach(PointOpened)
}

// release closes the files of the move.
func (m *move) release() {
	for _, r := range m.moving {
		r.release()
	}
}
