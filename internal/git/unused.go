package git

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// RemoveUnused removes the repository as Remove does, if there is neither a ref nor an object in it. It reports whether the repository
// is gone. It is closed meanwhile, so nothing is lost that is accepted at the same time.
func (r *Repository) RemoveUnused(ctx context.Context) (gone bool, err error) {
	open, err := r.CloseSoon(ctx)
	if err != nil {
		return false, err
	}
	defer open()
	if free, err := unused(r.dir); err != nil || !free {
		return false, err
	}
	if err := r.discard(r.dir + ".new"); err != nil {
		return false, err
	}
	return true, r.remove()
}

// unused reports whether there is neither a ref nor an object in the directory of a repository, nor a place for the objects of a push.
func unused(dir string) (bool, error) {
	if none, err := refless(dir); err != nil || !none {
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

// refless reports whether there is no ref in the directory of a repository. A ref is packed before its file is removed.
func refless(dir string) (bool, error) {
	if refs, err := hasFileBelow(filepath.Join(dir, "refs")); err != nil || refs {
		return false, err
	}
	refs, err := packsRef(filepath.Join(dir, "packed-refs"), "refs/")
	return err == nil && !refs, err
}
