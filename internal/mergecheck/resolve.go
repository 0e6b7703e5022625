package mergecheck

import (
	"context"
	"errors"
	"time"

	"github.com/uptrace/bun"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/history"
	"github.com/forgeplane/forgeplane/internal/mergerequest"
	"github.com/forgeplane/forgeplane/internal/stateevent"
)

// interrupted is the time after which a merge is taken for interrupted. A write of refs takes at most a minute.
const interrupted = 2 * time.Minute

// resolve finishes a merge that Git has made. It undoes one that was interrupted before.
func (c *Checker) resolve(ctx context.Context, m mergerequest.MergeRequest, b Branches) (mergerequest.MergeRequest, error) {
	done, err := b.contain(ctx, m.PlannedCommit)
	switch {
	case err != nil:
		return m, err
	case done:
		return c.finishInterrupted(ctx, m)
	case c.clock.Since(m.Updated) < interrupted:
		return m, nil
	}
	if b.Repository != nil {
		// A merge plans and changes the branch in one write. So while the repository is closed, no planned merge can still happen.
		open, err := b.Repository.CloseSoon(ctx)
		if errors.Is(err, git.ErrClosed) {
			return m, nil
		}
		if err != nil {
			return m, err
		}
		defer open()
		if b, err = c.Branches(ctx, m); err != nil {
			return m, err
		}
		if done, err = b.contain(ctx, m.PlannedCommit); err != nil {
			return m, err
		}
	}
	if done {
		return c.finishInterrupted(ctx, m)
	}
	if err := c.stores.MergeRequests.Unlock(ctx, m.ID, m.PlannedCommit, "The merge was interrupted. Please try again."); err != nil {
		return m, err
	}
	return c.stores.MergeRequests.WithID(ctx, m.ID)
}

// contain reports whether the target branch contains a commit.
func (b Branches) contain(ctx context.Context, commit string) (bool, error) {
	if b.Target == "" {
		return false, nil
	}
	return contains(ctx, b.Repository, commit, b.Target)
}

// contains reports whether a head of a repository contains a commit, which the repository need not have.
func contains(ctx context.Context, r *git.Repository, commit, head string) (bool, error) {
	if _, err := r.ReadCommit(ctx, commit); errors.Is(err, git.ErrObjectNotFound) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	return history.IsAncestor(ctx, r, commit, head, nil)
}

// finishInterrupted is Finish for a merge that may not have deleted the source branch.
func (c *Checker) finishInterrupted(ctx context.Context, m mergerequest.MergeRequest) (mergerequest.MergeRequest, error) {
	if c.removeSource != nil {
		_ = c.removeSource(ctx, m) // the merge has succeeded, whatever happens to the branch
	}
	return c.Finish(ctx, m)
}

// Finish marks a locked merge request as merged, after Git has merged it, and returns it. It does nothing if that has already happened.
func (c *Checker) Finish(ctx context.Context, m mergerequest.MergeRequest) (now mergerequest.MergeRequest, err error) {
	err = c.stores.Database.Atomically(ctx, "finishing a merge", func(ctx context.Context, _ bun.IDB) error {
		var merged bool
		now, merged, err = c.stores.MergeRequests.Finish(ctx, m.ID)
		if err != nil || !merged {
			return err
		}
		return c.recordMerge(ctx, now)
	})
	return now, err
}

// recordMerge records that a merge request was merged, and closes the issues that it closes. It is part of the transaction of the merge.
func (c *Checker) recordMerge(ctx context.Context, m mergerequest.MergeRequest) error {
	if err := c.stores.RecordState(ctx, m.In, m.Item(), stateevent.Merged, m.Merger, m.MergedAt); err != nil {
		return err
	}
	return c.closeIssues(ctx, m)
}
