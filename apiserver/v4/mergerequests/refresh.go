package mergerequests

import (
	"context"
	"errors"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/item"
	"github.com/forgeplane/forgeplane/apiserver/ref"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/mergerequest"
	"github.com/forgeplane/forgeplane/internal/protection"
)

// refresh brings a merge request up to date with its branches, and returns it. It returns the merge request as it was if a repository is not
// available, read-only or full at the moment, or if the branches move too often meanwhile.
func (f *Family) refresh(ctx context.Context, m mergerequest.MergeRequest) (mergerequest.MergeRequest, error) {
	now, err := f.checker.Refresh(ctx, m)
	if git.OutOfReach(err) || ref.Missing(err) || errors.Is(err, git.ErrClosed) || errors.Is(err, git.ErrBusy) || errors.Is(err, mergerequest.ErrOutdated) ||
		git.LimitReached(err) != "" {
		return m, nil
	}
	if errors.Is(err, mergerequest.ErrNotFound) { // deleted meanwhile
		return m, item.MergeRequest{}.Missing()
	}
	return now, err
}

// canMerge reports whether the caller can merge into the target branch of a merge request.
func (f *Family) canMerge(ctx context.Context, s auth.Subject, m mergerequest.MergeRequest) (bool, error) {
	if s.Caller.User == nil {
		return false, nil
	}
	may, err := f.mayMerge(ctx, auth.Project{Subject: s}, m.TargetBranch)
	return may.Allowed, err
}

// mayMerge decides whether the caller may merge into a branch.
func (f *Family) mayMerge(ctx context.Context, s auth.Project, branch string) (protection.Verdict, error) {
	rules, err := f.Guard.Rules(ctx, s, []string{branch})
	if err != nil {
		return protection.Verdict{}, err
	}
	return protection.MayMerge(ctx, rules, f.Guard.Actor(s.Subject), ref.Branches+branch)
}
