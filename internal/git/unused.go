package git

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// RemoveUnused removes the repository as Remove does, if there is neither a ref nor an object in it. It reports whether the repository
// is gone. A push that has begun has objects before it is decided, so nothing is lost that is accepted at the same time.
func (r *Repository) RemoveUnused() (gone bool, err error) {
	if err := r.Check(); err != nil {
		return false, err
	}
	if free, err := unused(r.dir); err != nil || !free {
		return false, err
	}
	r.Evict()
	aside, err := r.setAside(r.dir)
	if err != nil {
		return false, err
	}
	if aside != "" {
		free, err := unused(aside)
		if err != nil || !free {
			return false, errors.Join(err, os.Rename(aside, r.dir))
		}
	}
	return true, r.Remove()
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
