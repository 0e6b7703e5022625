package git

import (
	"context"

	"github.com/forgeplane/forgeplane/internal/git/internal/disk"
)

// RemoveUnused removes the repository like Remove, if it has neither a ref nor an object, and reports whether the repository is gone. It
// closes the repository meanwhile, so that no concurrent write is lost.
func (r *Repository) RemoveUnused(ctx context.Context) (gone bool, err error) {
	open, err := r.CloseSoon(ctx)
	if err != nil {
		return false, err
	}
	defer open()
	if free, err := disk.Unused(r.dir); err != nil || !free {
		return false, err
	}
	if err := r.discard(r.dir + ".new"); err != nil {
		return false, err
	}
	return true, r.remove()
}
