package git

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/forgeplane/forgeplane/internal/git/internal/disk"
)

func (r *Repository) staging() string { return r.dir + ".new" }

// Untouched reports whether there is neither a repository nor anything that was staged or set aside for one.
func (r *Repository) Untouched() bool {
	for _, path := range []string{r.dir, r.staging(), r.trash()} {
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			return false
		}
	}
	return true
}

// Stage creates a staging directory, whose name must be new, and returns the repository in it, which does not exist yet. Nothing may exist
// at the place of r. Place or Unstage removes the directory.
func (r *Repository) Stage(name string) (staged *Repository, err error) {
	if err := r.vacant(); err != nil {
		return nil, fmt.Errorf("staging %s: %w", r.dir, err)
	}
	own, err := r.makeStaging(name)
	if err != nil {
		_ = os.Remove(r.staging()) // others can use it
		return nil, fmt.Errorf("staging %s: %w", r.dir, err)
	}
	for dir := own; dir != r.storage; {
		dir = filepath.Dir(dir)
		if err := disk.SyncDir(dir); err != nil {
			return nil, errors.Join(err, r.Unstage(name))
		}
	}
	return &Repository{engine: r.engine, storage: r.storage, dir: filepath.Join(own, "git")}, nil
}

// makeStaging creates a staging directory, and the directories above it, but never the storage.
func (r *Repository) makeStaging(name string) (own string, err error) {
	storage, err := os.OpenRoot(r.storage)
	if errors.Is(err, fs.ErrNotExist) {
		err = ErrStorageMissing
	}
	if err != nil {
		return "", err
	}
	defer storage.Close()
	own = filepath.Join(r.staging(), name)
	inside, err := filepath.Rel(r.storage, own)
	if err != nil {
		return "", err
	}
	if err := storage.MkdirAll(filepath.Dir(inside), 0o755); err != nil {
		return "", err
	}
	return own, storage.Mkdir(inside, 0o700)
}

// vacant returns an error unless the storage exists and has nothing at the place of the repository.
func (r *Repository) vacant() error {
	switch err := r.check(); {
	case errors.Is(err, ErrNotFound):
		return nil
	case err == nil, errors.Is(err, ErrNotRepository):
		return fs.ErrExist
	default:
		return err
	}
}

// Place puts a repository that Stage has returned, and whose files are durable, into place, where nothing may exist. withdraw takes it back to
// the staging directory, unless another repository is in place by then. If only making the place durable fails, there is both a withdraw and
// an error.
func (r *Repository) Place(staged *Repository) (withdraw func() error, err error) {
	placed, err := os.Lstat(staged.dir)
	if err == nil {
		err = r.vacant()
	}
	if err == nil {
		err = os.Rename(staged.dir, r.dir)
	}
	if err != nil {
		return nil, fmt.Errorf("putting %s into place: %w", r.dir, err)
	}
	r.forget()
	own := filepath.Dir(staged.dir)
	_, _ = os.Remove(own), os.Remove(r.staging())
	withdraw = func() error {
		now, err := os.Lstat(r.dir)
		if errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(now, placed) {
			return nil
		}
		defer r.forget()
		if err == nil {
			_, err = r.makeStaging(filepath.Base(own))
		}
		if err == nil {
			err = os.Rename(r.dir, staged.dir)
		}
		if err != nil {
			return fmt.Errorf("withdrawing %s: %w", r.dir, err)
		}
		return disk.SyncDir(filepath.Dir(r.dir))
	}
	return withdraw, disk.SyncDir(filepath.Dir(r.dir))
}

// Unstage removes a staging directory, if it exists.
func (r *Repository) Unstage(name string) error {
	if err := os.RemoveAll(filepath.Join(r.staging(), name)); err != nil {
		return fmt.Errorf("removing what was staged for %s: %w", r.dir, err)
	}
	_ = os.Remove(r.staging()) // others can use it
	return nil
}

// forget ends the processes that have the repository open, and forgets what is remembered about it.
func (r *Repository) forget() {
	r.Evict()
	r.engine.answers.Forget(r.dir)
}
