package git

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Join returns a repository that has the objects of all the given ones, but no refs, and a function that removes it. It is for reading objects
// that are in different repositories together; it stores none itself. The repositories must have the same object format.
func (e *Engine) Join(ctx context.Context, objectFormat string, all ...*Repository) (joined *Repository, remove func(), err error) {
	dir, discard, err := e.ScratchDir()
	if err != nil {
		return nil, nil, err
	}
	remove = func() {
		if joined != nil {
			joined.Evict()
			e.answers.Forget(joined.dir)
		}
		discard()
	}
	joined, err = e.Repository(dir, "git")
	if err == nil {
		joined.joined = all
		err = joined.Format(ctx, InitOptions{ObjectFormat: objectFormat})
	}
	var alternates strings.Builder
	for _, r := range all {
		err = errors.Join(err, r.Check())
		alternates.WriteString(filepath.Join(r.dir, "objects") + "\n")
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(joined.dir, "objects/info/alternates"), []byte(alternates.String()), 0o600)
	}
	if NoSpace(err) { // the given repositories are only read
		err = fmt.Errorf("%w: %w", ErrScratch, err)
	}
	if err != nil {
		remove()
		return nil, nil, fmt.Errorf("joining repositories: %w", err)
	}
	return joined, remove, nil
}
