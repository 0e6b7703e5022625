package git

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// asideUnused is how the places in the trash begin whose content RemoveUnused has still to look at.
const asideUnused = "unused-"

// RemoveUnused removes the repository as Remove does, if there is neither a ref nor an object in it. It reports whether the repository
// is gone. A push that has begun has objects before it is decided, so nothing is lost that is accepted at the same time; after a crash
// in the middle PutBack finds it.
func (r *Repository) RemoveUnused() (gone bool, err error) {
	if err := r.Check(); err != nil {
		return false, err
	}
	if free, err := unused(r.dir); err != nil || !free {
		return false, err
	}
	r.Evict()
	if err := r.setAside(r.dir, asideUnused); err != nil {
		return false, err
	}
	if used, err := r.PutBack(); err != nil || used {
		return false, err
	}
	return true, r.Remove()
}

// PutBack puts the repository back into place that RemoveUnused has set aside, if there is something in it after all. It reports
// whether it did. Whoever is going to remove what a crash may have left calls it first.
func (r *Repository) PutBack() (used bool, err error) {
	places, err := os.ReadDir(r.trash())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("looking into %s: %w", r.trash(), err)
	}
	for _, place := range places {
		if !strings.HasPrefix(place.Name(), asideUnused) {
			continue
		}
		aside := filepath.Join(r.trash(), place.Name(), "git")
		free, err := unused(aside)
		if free || errors.Is(err, fs.ErrNotExist) {
			continue // it may be removed, or is being removed
		}
		if err == nil {
			err = os.Rename(aside, r.dir)
		}
		if err != nil {
			return false, fmt.Errorf("putting %s back: %w", r.dir, err)
		}
		_, _ = os.Remove(filepath.Dir(aside)), os.Remove(r.trash()) // as far as they are empty
		return true, syncDir(filepath.Dir(r.dir))
	}
	return false, nil
}

// unused reports whether there is neither a ref nor an object in the directory of a repository, nor a place for the objects of a push.
func unused(dir string) (bool, error) {
	if refs, err := hasFileBelow(filepath.Join(dir, "refs")); err != nil || refs {
		return false, err
	}
	if refs, err := packsRef(filepath.Join(dir, "packed-refs"), "refs/"); err != nil || refs {
		return false, err
	}
	entries, err := os.ReadDir(filepath.Join(dir, "objects"))
	if err != nil {
		return false, fmt.Errorf("looking for objects: %w", err)
	}
	for _, e := range entries {
		const fanOut = 2 // the digits of the directories of loose objects
		switch {
		case e.Name() == "info":
		case e.Name() != "pack" && len(e.Name()) != fanOut:
			return false, nil
		default:
			if objects, err := hasFileBelow(filepath.Join(dir, "objects", e.Name())); err != nil || objects {
				return false, err
			}
		}
	}
	return true, nil
}
