package history

import (
	"context"
	"errors"
	"strings"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/internal/process"
	"github.com/forgeplane/forgeplane/internal/git/object"
)

// IsAncestor reports whether the commit ancestor is reachable from the commit of.
func IsAncestor(ctx context.Context, r *git.Repository, ancestor, of string, q *git.Quarantine) (bool, error) {
	if err := object.CheckIDs(ancestor, of); err != nil {
		return false, err
	}
	_, err := r.Output(ctx, 1024, quarantined(r, q, "merge-base", "--is-ancestor", ancestor, of))
	if failed := (*process.Error)(nil); errors.As(err, &failed) && failed.ExitCode == 1 {
		return false, nil
	}
	return err == nil, err
}

// MergeBase returns the best common ancestor of two commits, or "" if they have none.
func MergeBase(ctx context.Context, r *git.Repository, a, b string, q *git.Quarantine) (string, error) {
	if err := object.CheckIDs(a, b); err != nil {
		return "", err
	}
	out, err := r.Output(ctx, 1024, quarantined(r, q, "merge-base", a, b))
	if failed := (*process.Error)(nil); errors.As(err, &failed) && failed.ExitCode == 1 {
		return "", nil
	}
	return strings.TrimSpace(string(out)), err
}

// ChangedPaths returns the paths that differ between two commits or trees: added, changed and removed paths; a renamed file counts with
// both names. An empty from stands for the empty tree. The error is git.ErrOutputTooLarge if the paths, plus one byte for each, exceed limit
// bytes.
func ChangedPaths(ctx context.Context, r *git.Repository, from, to string, limit int, q *git.Quarantine) ([]string, error) {
	c := quarantined(r, q, "diff-tree", "-r", "-z", "--name-only", "--no-renames", "--no-ext-diff", "--no-commit-id",
		"--ignore-submodules=none", from, to)
	if from == "" {
		c = quarantined(r, q, "ls-tree", "-r", "-z", "--name-only", to)
	} else if err := object.CheckIDs(from); err != nil {
		return nil, err
	}
	if err := object.CheckIDs(to); err != nil {
		return nil, err
	}
	out, err := r.Output(ctx, limit, c)
	if err != nil {
		return nil, err
	}
	if len(out) == 0 {
		return nil, nil
	}
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00"), nil
}

// quarantined returns a command that also sees the objects of a push.
func quarantined(r *git.Repository, q *git.Quarantine, args ...string) process.Command {
	c := process.In(r.Dir(), args...)
	c.Within = true // the push waits for the command
	if q != nil {
		// The path is relative, because some characters have a special meaning in a list of alternates.
		c.Env = append(c.Env, "GIT_OBJECT_DIRECTORY=objects/"+q.Name(), "GIT_ALTERNATE_OBJECT_DIRECTORIES=objects")
	}
	return c
}
