package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/forgeplane/forgeplane/internal/git/internal/disk"
)

// A repository is retired when another copy of it is the live one. A retired repository refuses writes until it is removed or reinstated, even
// after the process that retired it has ended and released the locks of the fence. The mark is a symbolic link, which appears and changes
// atomically. Its target names the one who retired the repository.
const (
	retiredMark = "forgeplane-retired"
	// nextMark becomes the mark. It is named like a lock file, so that maintenance removes what a crash leaves.
	nextMark = retiredMark + ".lock"
	// readsPause is the interval at which RemoveRetired looks for readers.
	readsPause = 20 * time.Millisecond
)

// Bound reports whether a path in a repository is a part of its fence, or its mark as retired. A copy must not have it.
func Bound(path string) bool {
	return path == gateFile || path == writesFile || path == retiredMark || path == nextMark
}

// Retire makes the repository refuse writes until it is removed, or reinstated by the same name. The caller must have closed the repository.
func (r *Repository) Retire(by string) error {
	if err := r.retire(by); err != nil {
		return fmt.Errorf("retiring %s: %w", r.dir, err)
	}
	return nil
}

func (r *Repository) retire(by string) error {
	if by == "" || strings.ContainsRune(by, 0) {
		return fmt.Errorf("%q is not a name; give the name of the one who retires it", by)
	}
	next := filepath.Join(r.dir, nextMark)
	if err := os.Remove(next); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Symlink(by, next); err != nil {
		return err
	}
	if err := os.Rename(next, filepath.Join(r.dir, retiredMark)); err != nil {
		return err
	}
	return disk.SyncDir(r.dir)
}

// RetiredBy returns the name by which the repository is retired. It is empty if the repository is not retired or does not exist.
func (r *Repository) RetiredBy() (by string, err error) {
	// On a network file system, looking at the directory makes a mark visible that another machine has just made.
	if _, err = disk.Look(r.dir); err == nil {
		by, err = os.Readlink(filepath.Join(r.dir, retiredMark))
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("reading whether %s is retired: %w", r.dir, err)
	}
	return by, nil
}

// live returns ErrClosed if the repository is retired.
func (r *Repository) live() error {
	by, err := r.RetiredBy()
	if err == nil && by != "" {
		return ErrClosed
	}
	return err
}

// Reinstate lets a repository accept writes again that is retired by a name. It does nothing if the repository is not retired, and fails if
// it is retired by another name. The caller must have closed the repository.
func (r *Repository) Reinstate(by string) error {
	was, err := r.RetiredBy()
	switch {
	case err != nil:
		return err
	case was == "":
		return nil
	case was != by:
		return fmt.Errorf("reinstating %s: it is retired by %q, and not by %q", r.dir, was, by)
	}
	if err := os.Remove(filepath.Join(r.dir, retiredMark)); err != nil {
		return fmt.Errorf("reinstating %s: %w", r.dir, err)
	}
	return disk.SyncDir(r.dir)
}

// RemoveRetired removes the repository if it is retired by a name, and fails if it exists and is not. It does nothing if there is no
// repository, except that it removes what an earlier attempt has left. It waits for everyone who reads the repository, in any process. If ctx
// ends first, the error wraps its cause, and the repository stays retired.
func (r *Repository) RemoveRetired(ctx context.Context, by string) error {
	return r.RemoveRetiredIf(ctx, by, func(context.Context) error { return nil })
}

// RemoveRetiredIf is RemoveRetired, but calls confirm while the repository is closed, and removes nothing if that fails.
func (r *Repository) RemoveRetiredIf(ctx context.Context, by string, confirm func(context.Context) error) error {
	switch err := r.check(); {
	case err == nil:
		if err = r.closeAndRemove(ctx, by, confirm); err == nil || !errors.Is(r.check(), ErrNotFound) {
			return err
		}
		// Another process has removed it meanwhile.
	case !errors.Is(err, ErrNotFound):
		return fmt.Errorf("repository %s: %w", r.dir, err)
	}
	// A live copy can come into this place at any time, so only what an earlier attempt has set aside is removed.
	if err := os.RemoveAll(r.trash()); err != nil {
		return fmt.Errorf("emptying %s: %w", r.trash(), err)
	}
	return nil
}

// closeAndRemove is RemoveRetiredIf for a repository that exists.
func (r *Repository) closeAndRemove(ctx context.Context, by string, confirm func(context.Context) error) error {
	if err := r.mustBeRetired(by); err != nil {
		return err
	}
	ctx, stop := r.engine.processes.Limited(ctx)
	defer stop()
	unlock, err := r.awaitReaders(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	open, err := r.CloseSoon(ctx)
	if err != nil {
		return err
	}
	defer open()
	if err := r.mustBeRetired(by); err != nil {
		return err
	}
	if err := confirm(ctx); err != nil {
		return err
	}
	return r.remove()
}

func (r *Repository) mustBeRetired(by string) error {
	switch was, err := r.RetiredBy(); {
	case err != nil:
		return err
	case was == "" || was != by:
		return fmt.Errorf("removing %s: it must be retired by %q, but is retired by %q, so this can be the live copy", r.dir, by, was)
	}
	return nil
}

// awaitReaders waits until no read of the repository is running, and prevents new reads until unlock is called.
func (r *Repository) awaitReaders(ctx context.Context) (unlock func(), err error) {
	config, err := os.OpenFile(filepath.Join(r.dir, configFile), os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("removing %s: %w", r.dir, err)
	}
	unlock = func() { unlockFile(config); _ = config.Close() }
	ticker := time.NewTicker(readsPause)
	defer ticker.Stop()
	for {
		r.Evict()
		err := tryLock(config, syscall.LOCK_EX)
		if err == nil {
			return unlock, nil
		}
		if !errors.Is(err, ErrClosed) {
			unlock()
			return nil, fmt.Errorf("removing %s: %w", r.dir, err)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			unlock()
			return nil, fmt.Errorf("removing %s: it is still being read: %w", r.dir, context.Cause(ctx))
		}
	}
}
