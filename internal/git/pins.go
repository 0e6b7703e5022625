package git

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/forgeplane/forgeplane/internal/git/internal/process"
)

// configFile is the file that readers of a repository lock shared, and RemoveRetired exclusively. Every repository has it, and nothing
// replaces it.
const configFile = "config"

// pins are open files whose locks keep repositories from being removed. Processes that inherit them keep the locks.
type pins []*os.File

// release closes the files. It does not unlock them, because that would also release the locks of processes that have inherited them.
func (p pins) release() {
	for _, f := range p {
		_ = f.Close()
	}
}

// BeginRead begins a read of several files or by several processes. RemoveRetired does not remove the repository until end is called and
// every git process has ended that was started with the returned context. A single command on the repository needs no BeginRead. If there is
// no repository, BeginRead returns the error of Check.
func (r *Repository) BeginRead(ctx context.Context) (in context.Context, end func(), err error) {
	held, err := r.pin(ctx)
	if err != nil {
		return nil, nil, err
	}
	return process.Inherit(ctx, held...), held.release, nil
}

// pin checks that the repository exists, and pins it.
func (r *Repository) pin(ctx context.Context) (held pins, err error) {
	defer func() {
		if err != nil {
			held.release()
		}
	}()
	f, err := r.pinned(ctx)
	if err != nil {
		return nil, err
	}
	held = pins{f}
	for _, other := range r.joined {
		if f, err = other.pinned(ctx); err != nil {
			return held, err
		}
		held = append(held, f)
	}
	return held, nil
}

// pinned is pin without the joined repositories.
func (r *Repository) pinned(ctx context.Context) (*os.File, error) {
	for {
		if err := r.Check(); err != nil {
			return nil, err
		}
		f, err := os.Open(filepath.Join(r.dir, configFile))
		if err != nil {
			return nil, fmt.Errorf("reading the repository %s: %w", r.dir, cmp.Or(r.check(), err))
		}
		if err := shareLock(ctx, f); err != nil {
			return nil, fmt.Errorf("reading the repository %s: %w", r.dir, errors.Join(err, f.Close()))
		}
		if same, err := sameFile(f, filepath.Join(r.dir, configFile)); err != nil || same {
			return f, err
		}
		_ = f.Close()
	}
}

// shareLock locks a file shared. A process that holds it exclusively is about to remove the repository.
func shareLock(ctx context.Context, f *os.File) error {
	err := tryLock(f, syscall.LOCK_SH)
	if !errors.Is(err, ErrClosed) {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, gatePatience, ErrNotFound)
	defer cancel()
	return awaitLock(ctx, f, syscall.LOCK_SH, gatePause)
}

// sameFile reports whether a path still has an open file.
func sameFile(f *os.File, path string) (bool, error) {
	opened, err := f.Stat()
	if err != nil {
		return false, err
	}
	there, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(opened, there), err
}
