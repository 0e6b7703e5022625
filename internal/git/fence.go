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

	"github.com/forgeplane/forgeplane/internal/git/internal/process"
)

// The fence of a repository lets one process make it read-only for all processes on all machines, and wait for the running writes. It
// consists of two files in the repository, which are locked with flock(2):
//
//   - The gate is locked exclusively while the repository is closed, and shared for the moment in which a write begins.
//   - The file of writes is locked shared by each running write, and exclusively, behind the gate, by the process that closes the repository.
//
// So closing waits for writes that have begun and refuses those that begin later, and nothing gets in between. The git processes of a write
// hold its lock too, because they inherit the open file. The kernel releases a lock when the last process that has the file open ends for
// any reason, and the server of a volume does so for a machine that is gone. Hence a killed process neither keeps a repository closed nor
// makes others wait. And as long as a git process is left that may still write, the repository does not count as closed, even if the
// process that started it is gone. No clock and no list of processes is involved.
//
// The alternative, rows in the database with heartbeats, was rejected: they do not cover a git process that outlives its parent, they must
// allow for clock skew and pauses of processes by waiting, and each write would need the database. A process that can write can reach the
// volume, so the volume is the right place for the lock.
const (
	gateFile   = "forgeplane-gate"
	writesFile = "forgeplane-writes"
)

const (
	// gatePatience is the time for which locking the gate is retried. A write holds it only for a moment; a process that closes the
	// repository holds it longer.
	gatePatience = time.Second
	// closePatience is the time for which CloseSoon waits for running writes.
	closePatience = 10 * time.Second
	// gatePause and writesPause are the intervals between retries, because locks between processes have no queue.
	gatePause, writesPause = 5 * time.Millisecond, 20 * time.Millisecond
	// yieldPause is the interval at which a yielding write checks whether it must end.
	yieldPause = time.Second
)

// ErrClosed is returned for a repository that is temporarily read-only, or that another copy has replaced.
var ErrClosed = errors.New("the repository does not accept changes at the moment")

// Write is one write to a repository, or several that belong together.
type Write struct {
	repository   *Repository
	gate, writes *os.File
}

// PrepareWrite returns a write that has not begun. The caller must call End.
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

// Begin counts the write as running, until End. It returns ErrClosed if the repository is closed, retired or has been moved. It does not
// wait.
func (w *Write) Begin() error {
	if err := tryLock(w.gate, syscall.LOCK_SH); err != nil {
		return err
	}
	defer unlockFile(w.gate)
	if err := tryLock(w.writes, syscall.LOCK_SH); err != nil {
		return err // the closing process is just ending
	}
	err := w.inPlace()
	if err == nil {
		err = w.repository.live()
	}
	if err != nil {
		unlockFile(w.writes)
	}
	return err
}

// inPlace returns ErrClosed if the directory no longer has the repository for which the write was prepared.
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

// End ends the write, or cancels it if it has not begun. It can be called more than once.
func (w *Write) End() {
	// A process that is just being started holds a copy of the file for a moment.
	unlockFile(w.writes)
	_, _ = w.writes.Close(), w.gate.Close()
}

// In returns a context whose git processes belong to the write, even if they are started before it begins.
func (w *Write) In(ctx context.Context) context.Context { return process.Inherit(ctx, w.writes) }

// BeginWrite begins a write, which end ends. If this process is killed first, the write ends with the last git process that was started
// with the returned context. The error is ErrClosed if the repository is closed.
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

// BeginYielding is BeginWrite for a write that yields: its context ends with ErrClosed when the repository is closed.
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

// Closed reports whether a write that begins now would be refused because the repository is closed or retired.
func (r *Repository) Closed() bool {
	if errors.Is(r.live(), ErrClosed) {
		return true
	}
	gate, err := os.Open(filepath.Join(r.dir, gateFile))
	if err != nil {
		return false // either nothing was ever written, or the write itself reports the problem
	}
	defer gate.Close()
	err = tryLock(gate, syscall.LOCK_SH)
	if err == nil {
		unlockFile(gate)
	}
	return errors.Is(err, ErrClosed)
}

// Close prevents writes from beginning, in all processes, until open is called or this process ends, and waits for the running writes. If
// ctx ends first, writes can begin again. The error is ErrClosed if the repository is already closed.
//
// To replace or move the repository, move it away before calling open, because other processes may still use the former path for a while.
func (r *Repository) Close(ctx context.Context) (open func(), err error) {
	gate, err := r.openLock(gateFile, os.O_RDWR)
	if err != nil {
		return nil, err
	}
	patient, cancel := context.WithTimeoutCause(ctx, gatePatience, ErrClosed)
	defer cancel()
	if err := awaitLock(patient, gate, syscall.LOCK_EX, gatePause); err != nil {
		return nil, fmt.Errorf("closing %s: %w", r.dir, errors.Join(err, gate.Close()))
	}
	openGate := func() { unlockFile(gate); _ = gate.Close() }
	writes, err := r.openLock(writesFile, os.O_RDWR)
	if err != nil {
		openGate()
		return nil, err
	}
	ctx, stop := r.engine.processes.Limited(ctx)
	defer stop()
	if err := awaitLock(ctx, writes, syscall.LOCK_EX, writesPause); err != nil {
		openGate()
		return nil, fmt.Errorf("waiting for the writes of %s that run: %w", r.dir, errors.Join(err, writes.Close()))
	}
	return sync.OnceFunc(func() {
		unlockFile(writes)
		_ = writes.Close()
		openGate()
	}), nil
}

// CloseSoon is Close for callers that can retry: it returns ErrBusy if the running writes take longer than ten seconds.
func (r *Repository) CloseSoon(ctx context.Context) (open func(), err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, closePatience, fmt.Errorf("they took longer than %s: %w", closePatience, process.ErrBusy))
	defer cancel()
	return r.Close(ctx)
}

// awaitLock takes a lock, and waits for it until ctx ends.
func awaitLock(ctx context.Context, f *os.File, how int, pause time.Duration) error {
	ticker := time.NewTicker(pause)
	defer ticker.Stop()
	for {
		if err := tryLock(f, how); !errors.Is(err, ErrClosed) {
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// tryLock returns ErrClosed if a conflicting lock is held.
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
