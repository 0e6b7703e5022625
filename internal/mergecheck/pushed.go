package mergecheck

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/uptrace/bun"

	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/history"
	"github.com/forgeplane/forgeplane/internal/git/refs"
	"github.com/forgeplane/forgeplane/internal/git/update"
	"github.com/forgeplane/forgeplane/internal/mergerequest"
)

// push is an update of the target branch of a merge request. It is the payload of a task.
type push struct {
	Branch string `json:"branch"`
	// Head is the head of the source branch at that time, or the last known one if the branch did not exist.
	Head string        `json:"head"`
	Old  string        `json:"old"`
	By   database.User `json:"by"`
}

// pushed marks an open merge request as merged if a push to the target branch has brought the head of the source branch, and reports whether it
// has. The source branch need not exist any more, but must not have lost the head since the push.
func (c *Checker) pushed(ctx context.Context, m mergerequest.MergeRequest, p push) (bool, error) {
	if m.State != mergerequest.Opened || m.TargetBranch != p.Branch {
		return false, nil
	}
	b, err := c.Branches(ctx, m)
	if err != nil {
		return false, err
	}
	v := mergerequest.Version{Head: p.Head, Start: p.Old}
	if v.Head == "" {
		return false, nil
	}
	if b.Source != "" {
		if remains, err := contains(ctx, b.source, v.Head, b.Source); !remains || err != nil {
			return false, err
		}
	}
	if contains, err := b.contain(ctx, v.Head); !contains || err != nil {
		return false, err
	}
	if _, err := b.Repository.ReadCommit(ctx, p.Old); errors.Is(err, git.ErrObjectNotFound) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	if v.Base, err = history.CommonAncestor(ctx, b.Repository, v.Head, p.Old); err != nil || v.Base == "" || v.Base == v.Head {
		return false, err
	}
	_, err = c.finishPushed(ctx, m, b, v, p.By)
	return err == nil, err
}

// arrived reports whether a push to the target branch has brought the head of the source branch since the last check.
func (b Branches) arrived(m mergerequest.MergeRequest) bool {
	return b.Source == m.Head && m.Base != m.Head && m.MergeStatus != mergerequest.Unchecked
}

// overdue reports whether a merge request waits too long for the task of the push that has merged it: the process ended before it added the task,
// or the queue is that late.
func (c *Checker) overdue(m mergerequest.MergeRequest) bool {
	return m.MergeStatus == mergerequest.Checking && c.clock.Since(m.Updated) >= interrupted
}

// finishPushed marks a merge request as merged whose head the target branch contains, and returns it.
func (c *Checker) finishPushed(
	ctx context.Context, m mergerequest.MergeRequest, b Branches, v mergerequest.Version, by database.User,
) (now mergerequest.MergeRequest, err error) {
	changes, err := count(ctx, b.Repository, v.Base, v.Head)
	if err != nil {
		return m, err
	}
	commit, err := mergeCommit(ctx, b.Repository, v.Head, b.Target)
	if err != nil {
		return m, err
	}
	if v.KeepApprovals, err = c.keepsApprovals(ctx, m.In); err != nil {
		return m, err
	}
	if err := keep(ctx, b.Repository, update.Ref{Name: Head(m.IID), Old: b.keptHead, New: v.Head}); err != nil {
		return m, fmt.Errorf("keeping the head of merge request %d: %w", m.ID, err)
	}
	err = c.stores.Database.Atomically(ctx, "finishing a merge by a push", func(ctx context.Context, _ bun.IDB) error {
		var merged bool
		now, merged, err = c.stores.MergeRequests.FinishPushed(ctx, m, v, changes, commit, by)
		if err != nil || !merged {
			return err
		}
		return c.recordMerge(ctx, now)
	})
	return now, err
}

// keep writes a ref of a merge request, unless it has its value. The error is mergerequest.ErrOutdated if another check was faster.
func keep(ctx context.Context, r *git.Repository, u update.Ref) error {
	if u.Old == u.New {
		return nil
	}
	ctx, end, err := r.BeginWrite(ctx)
	if err != nil {
		return err
	}
	defer end()
	if err = refs.Apply(ctx, r, u); errors.Is(err, refs.ErrMoved) {
		err = mergerequest.ErrOutdated
	}
	return err
}

// maxFirstParents is the maximum number of commits of the target branch among which the merge commit is looked for.
const maxFirstParents = 1000

// mergeCommit returns the commit with which a branch has got a head: the head itself after a fast-forward.
func mergeCommit(ctx context.Context, r *git.Repository, head, branch string) (string, error) {
	since, _, err := history.List(ctx, r, history.Log{Tips: []string{branch}, Without: []string{head}, FirstParent: true, Limit: maxFirstParents})
	if err != nil || len(since) == 0 {
		return head, err
	}
	ids := make([]string, len(since))
	for i, c := range since {
		ids[i] = c.ID
	}
	later, err := history.Descendants(ctx, r, head, ids...)
	for _, c := range slices.Backward(since) {
		if later[c.ID] && c.Parents[0] != head {
			return c.ID, err
		} else if later[c.ID] {
			break
		}
	}
	return head, err
}
