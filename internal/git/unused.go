package git

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// RemoveUnused removes the repository like Remove, if it has neither a ref nor an object, and reports whether the repository is gone. It
// closes the repository meanwhile, so that no concurrent write is lost.
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

// unused reports whether a repository has neither a ref nor an object nor a quarantine.
func unused(dir string) (bool, error) {
	if none, err := refless(dir); err != nil || !none {
		return false, err
	}
	entries, err := os.ReadDir(filepath.Join(dir, "objects"))
	if err != nil {
		return false, fmt.Errorf("looking for objects: %w", err)
	}
	for _, e := range entries {
		const fanOut = 2 // the length of the names of directories of loose objects
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

// refless reports whether a repository has no ref. Git packs a ref before it removes its file.
func refless(dir string) (bool, error) {
	if refs, err := hasFileBelow(filepath.Join(dir, "refs")); err != nil || refs {
		return false, err
	}
	refs, err := packsRef(filepath.Join(dir, "packed-refs"), "refs/")
	return err == nil && !refs, err
}
