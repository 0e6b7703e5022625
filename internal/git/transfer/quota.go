package transfer

import (
	"context"
	"path/filepath"
	"slices"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/internal/process"
	"github.com/forgeplane/forgeplane/internal/git/object"
	"github.com/forgeplane/forgeplane/internal/git/update"
)

// CheckPush returns a *git.LimitError if a push exceeds the limits of the server: if unpacked objects are too large, or the repository would
// be. A push that only removes refs always passes, so that a full repository can be made smaller.
func CheckPush(ctx context.Context, r *git.Repository, q *git.Quarantine, updates ...update.Ref) error {
	if q == nil {
		return checkRemoval(ctx, r, updates)
	}
	l := r.Engine().Limits()
	if err := admit(ctx, r, admission{
		objects: filepath.Join("objects", q.Name()), each: l.Push, together: l.PushUnpacked,
		large: "the server takes in one push",
		much:  process.Limitf("The objects of the push have more than the %s together that the server takes in one push when they are unpacked.", process.FormatBytes(l.PushUnpacked)),
	}); err != nil {
		return err
	}
	return r.Measure(ctx) // with the quarantine
}

// checkRemoval returns a *git.LimitError if the repository is full and the updates do anything other than remove existing refs.
func checkRemoval(ctx context.Context, r *git.Repository, updates []update.Ref) error {
	full := r.CheckRoom(ctx)
	if git.LimitReached(full) == "" {
		return full
	}
	names := make([]string, len(updates))
	for i, u := range updates {
		if names[i] = u.Name; !u.Deletes() || object.CheckRefName(u.Name) != nil {
			return full
		}
	}
	found, err := r.Objects(ctx, names...)
	if err != nil {
		return err
	}
	if len(found) == 0 || slices.ContainsFunc(found, func(o git.Object) bool { return o.ID == "" }) {
		return full
	}
	return nil
}
