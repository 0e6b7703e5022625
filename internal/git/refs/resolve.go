package refs

import (
	"context"
	"fmt"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/object"
)

// Commit returns the id of the commit that a revision names: a commit id or its beginning, a tag, a branch, HEAD, or one of these followed
// by ^ and ~ with numbers. If a tag and a branch have the same name, the tag is used, as in Git. Other syntax of Git's revisions is not
// supported, because some of it is slow and some of it leads to objects that clients must not see. The error is ErrNotFound, also for
// commits that clients cannot see.
func Commit(ctx context.Context, r *git.Repository, revision string) (string, error) {
	names := object.Candidates(revision)
	if len(names) == 0 {
		return "", fmt.Errorf("%.100q: %w", revision, ErrNotFound)
	}
	found, err := r.Objects(ctx, names...)
	if err != nil {
		return "", fmt.Errorf("looking up revision %.100q: %w", revision, err)
	}
	for _, o := range found {
		if o.ID != "" {
			return o.ID, nil
		}
	}
	return "", fmt.Errorf("%.100q: %w", revision, ErrNotFound)
}
