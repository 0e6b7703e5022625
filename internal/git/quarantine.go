package git

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/forgeplane/forgeplane/internal/git/internal/process"
)

// Quarantine is the directory of a push's objects until the push is accepted. A nil Quarantine is for a push without objects.
type Quarantine struct{ name string }

// Quarantine returns the quarantine at a path that a hook has reported, or nil if that is empty. Only the last part of the
// path is used, so it cannot lead out of the repository.
func (r *Repository) Quarantine(path string) (*Quarantine, error) {
	if path == "" {
		return nil, nil
	}
	name := filepath.Base(path)
	if !process.IsQuarantine(name) {
		return nil, fmt.Errorf("%q does not name a quarantine directory", name)
	}
	dir := filepath.Join(r.dir, "objects", name)
	if info, err := os.Lstat(dir); err != nil {
		return nil, fmt.Errorf("quarantine directory: %w", err)
	} else if !info.IsDir() {
		return nil, fmt.Errorf("quarantine %s is not a directory", dir)
	}
	return &Quarantine{name: name}, nil
}

// Name returns the name of the directory.
func (q *Quarantine) Name() string { return q.name }
