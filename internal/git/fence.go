package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// The fence of a repository lets one process make it read-only for all processes at once, on whatever machines, and wait for the writes
// that run. It is two files in the repository, which are locked by flock(2):
//
//   - The gate is locked exclusively for as long as the repository is closed, and shared for the moment in which a write begins.
//   - The file of writes is locked shared by each write that runs, and exclusively, behind the gate, by whoever closes the repository.
//
// So a write that has begun is waited for, one that begins later is refused, and nothing gets in between. The processes of git that
// write have the lock as well, as they inherit the open file. The kernel gives a lock up when the last process that has the file open
// has ended, in whatever way, and the server of a volume does so for a machine that is gone. Hence nobody keeps a repository closed, or
// others waiting, by being killed; and it is not taken for closed while a process of git is left that may still write, even if whoever
// has started that is gone. There is no clock in it and no list of processes.
//
// Rows in the database with heartbeats were considered. They say nothing of a process of git that outlives the one that has started it,
// take the clocks and the pauses of processes into account by waiting, and each write would go through the database. What can write can
// reach the volume, so it is the volume that tells.
const (
	gateFile   = "forgeplane-gate"
	writesFile = "forgeplane-writes"
)

const (
	// gatePatience is how long the gate is tried: whoever begins a write has it for a moment, and whoever has closed the repository longer.
	gatePatience = time.Second
	// closePatience is how long CloseSoon waits for the writes that run.
	closePatience = 10 * time.Second
	// gatePause and writesPause are the time between two tries. Locks of several processes have no queue.
	gatePause, writesPause = 5 * time.Millisecond, 20 * time.Millisecond
	// yieldPause is how often what gives way looks whether it is to.
	yieldPause = time.Second
)

// ErrClosed is returned for a repository that takes no changes for now.
var ErrClosed = errors.New("the repository takes no changes for now")

// Write is one write of a repository, or several that belong together.
type Write struct {
	repository   *Repository
	gate, writes *os.File
}

// PrepareWrite returns a write that has not begun. The caller ends it.
func (r *Repository) PrepareWrite() (*Write, error) {
	gate, err := r.openLock(gateFile, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	writes, err := r.openLock(writesFile, os.O_RDONLY)
	if err != nil {
		return nil, errors.Join(err, gate.Close())
	}
	return &Write{repository: r, gate: gate, writes: writes}, nil
}

func (r *Repository) openLock(name string, how int) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(r.dir, name), how|os.O_CREATE, 0o644)
	if missing := r.Check(); err != nil && missing != nil {
		err = missing
	}
	if err != nil {
		return nil, fmt.Errorf("opening the fence of %s: %w", r.dir, err)
	}
	return f, nil
}

// Begin counts the write among those that run, until End. It is ErrClosed where the repository is closed, or is not in its place any
// more. It does not wait.
func (w *Write) Begin() error {
	if err := tryLock(w.gate, syscall.LOCK_SH); err != nil {
		return err
	}
	defer unlockFile(w.gate)
	if err := tryLock(w.writes, syscall.LOCK_SH); err != nil {
		return err // whoever has closed it is just ending
	}
	if err := w.inPlace(); err != nil {
		unlockFile(w.writes)
		return err
	}
	return nil
}

// inPlace is ErrClosed where another repository, or none, is in the place of the one that the write was prepared for.
func (w *Write) inPlace() error {
	locked, err := w.writes.Stat()
	if err != nil {
		return fmt.Errorf("looking at the fence of %s: %w", w.repository.dir, err)
	}
	there, err := os.Stat(filepath.Join(w.repository.dir, writesFile))
	if errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(locked, there) {
		return ErrClosed
	}
	if err != nil {
		return fmt.Errorf("looking at the fence of %s: %w", w.repository.dir, err)
	}
	return nil
}

// End says that the write has ended, or does not begin. It may be called more than once.
func (w *Write) End() {
	// A process that is just being started has a copy of the file for a moment.
	unlockFile(w.writes)
	_, _ = w.writes.Close(), w.gate.Close()
}

// writing is the key of the write of a context.
type writing struct{}

// In returns a context whose processes of git count as the write does, also those that are started before it begins.
func (w *Write) In(ctx context.Context) context.Context {
	return context.WithValue(ctx, writing{}, w)
}

// inherited are the files that a process of git has open for those who begin it with a context.
func inherited(ctx context.Context) []*os.File {
	if w, ok := ctx.Value(writing{}).(*Write); ok {
		return []*os.File{w.writes}
	}
	return nil
}

// BeginWrite begins a write, which ends with end. Should this process be killed before, it ends with the last process of git that was
// started with the context that BeginWrite returns. It is ErrClosed where the repository is closed.
func (r *Repository) BeginWrite(ctx context.Context) (in context.Context, end func(), err error) {
	w, err := r.PrepareWrite()
	if err != nil {
		return nil, nil, err
	}
	if err := w.Begin(); err != nil {
		w.End()
		return nil, nil, err
	}
	return w.In(ctx), sync.OnceFunc(w.End), nil
}

// BeginYielding is BeginWrite for a write that gives way: the context ends with ErrClosed when somebody closes the repository.
func (r *Repository) BeginYielding(ctx context.Context) (in context.Context, end func(), err error) {
	in, leave, err := r.BeginWrite(ctx)
	if err != nil {
		return nil, nil, err
	}
	in, cancel := context.WithCancelCause(in)
	var watch sync.WaitGroup
	watch.Go(func() {
		ticker := time.NewTicker(yieldPause)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				if r.Closed() {
					cancel(ErrClosed)
					return
				}
			case <-in.Done():
				return
			}
		}
	})
	return in, func() {
		cancel(nil)
		watch.Wait()
		leave()
	}, nil
}

// Closed reports whether a write that begins now would be refused as the repository is closed.
func (r *Repository) Closed() bool {
	gate, err := os.Open(filepath.Join(r.dir, gateFile))
	if err != nil {
		return false // nothing was changed yet; or else the write itself says what is wrong
	}
	defer gate.Close()
	err = tryLock(gate, syscall.LOCK_SH)
	if err == nil {
		unlockFile(gate)
	}
	return errors.Is(err, ErrClosed)
}

// Close lets no further write begin, in whatever process, until open is called or this process ends; and it waits for those that run.
// If ctx ends first, writes may begin again. A repository that somebody else has closed is ErrClosed.
//
// Whoever closes it to put another one in its place, or to move it, takes it away before open: other processes may know the former
// place for a while.
func (r *Repository) Close(ctx context.Context) (open func(), err error) {
	gate, err := r.openLock(gateFile, os.O_RDWR)
	if err != nil {
		return nil, err
	}
	patient, cancel := context.WithTimeoutCause(ctx, gatePatience, ErrClosed)
	defer cancel()
	if err := awaitLock(patient, gate, gatePause); err != nil {
		return nil, fmt.Errorf("closing %s: %w", r.dir, errors.Join(err, gate.Close()))
	}
	openGate := func() { unlockFile(gate); _ = gate.Close() }
	writes, err := r.openLock(writesFile, os.O_RDWR)
	if err != nil {
		openGate()
		return nil, err
	}
	ctx, stop := r.engine.limited(ctx)
	defer stop()
	if err := awaitLock(ctx, writes, writesPause); err != nil {
		openGate()
		return nil, fmt.Errorf("waiting for the writes of %s that run: %w", r.dir, errors.Join(err, writes.Close()))
	}
	return sync.OnceFunc(func() {
		unlockFile(writes)
		_ = writes.Close()
		openGate()
	}), nil
}

// CloseSoon is Close for whoever can try again: where the writes that run take longer than ten seconds, it is ErrBusy.
func (r *Repository) CloseSoon(ctx context.Context) (open func(), err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, closePatience, fmt.Errorf("they took longer than %s: %w", closePatience, ErrBusy))
	defer cancel()
	return r.Close(ctx)
}

// awaitLock takes a lock exclusively, until ctx ends.
func awaitLock(ctx context.Context, f *os.File, pause time.Duration) error {
	ticker := time.NewTicker(pause)
	defer ticker.Stop()
	for {
		if err := tryLock(f, syscall.LOCK_EX); !errors.Is(err, ErrClosed) {
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// tryLock is ErrClosed where somebody else has a lock that excludes this one.
func tryLock(f *os.File, how int) error {
	for {
		err := syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case errors.Is(err, syscall.EWOULDBLOCK):
			return ErrClosed
		case err != nil:
			return fmt.Errorf("locking %s: %w", f.Name(), err)
		}
		return nil
	}
}

func unlockFile(f *os.File) { _ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }
