package branches

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/ref"
	"github.com/forgeplane/forgeplane/internal/change"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/refs"
	"github.com/forgeplane/forgeplane/internal/git/update"
)

func (f *Family) remove(ctx context.Context, s auth.Project, r *branchRequest) (none endpoint.None, err error) {
	repo, b, err := f.find(ctx, s, r.Branch)
	if err != nil {
		return none, err
	}
	if err := ref.Unmodified(ctx, repo, b.Object); err != nil {
		return none, err
	}
	var refused *ref.RefusedError
	switch err := f.Refs.Update(ctx, s, repo, update.Ref{Name: b.Name, Old: b.Object}); {
	case errors.As(err, &refused):
		return none, endpoint.Message(http.StatusForbidden, "Protected branch can't be removed").Describe("%s", refused.Reason)
	case errors.Is(err, change.ErrDefaultBranch):
		return none, endpoint.Message(http.StatusBadRequest, "The default branch of a project cannot be deleted.")
	case errors.Is(err, refs.ErrMoved):
		return none, endpoint.Conflict("The branch has changed in the meantime")
	default:
		return none, err
	}
}

// Accepted is the response after the merged branches were deleted.
type Accepted struct {
	Message string `json:"message"`
}

// attempts limits how often merged branches are looked up again after concurrent changes.
const attempts = 3

func (f *Family) removeMerged(ctx context.Context, s auth.Project, _ *endpoint.None) (none Accepted, err error) {
	repo, err := f.repository(ctx, s)
	for range attempts {
		if err == nil {
			err = f.removeMergedFrom(ctx, s, repo)
		}
		if !errors.Is(err, refs.ErrMoved) {
			break
		}
		err = nil
	}
	if err != nil && !ref.Missing(err) {
		return none, err
	}
	return Accepted{Message: "202 Accepted"}, nil
}

func (f *Family) removeMergedFrom(ctx context.Context, s auth.Project, repo *git.Repository) error {
	head, err := refs.ReadHead(ctx, repo)
	if err != nil || head.Commit == "" {
		return err
	}
	merged, err := refs.Merged(ctx, repo, head.Commit, ref.Branches)
	if err != nil {
		return err
	}
	rules, err := f.Guard.Rules(ctx, s, names(merged))
	if err != nil {
		return err
	}
	merged = slices.DeleteFunc(merged, func(b refs.Ref) bool {
		return b.Name == ref.Branches+head.Branch || protectionsOf(rules, b).any()
	})
	if len(merged) == 0 {
		return nil
	}
	updates := make([]update.Ref, len(merged))
	for i, b := range merged {
		updates[i] = update.Ref{Name: b.Name, Old: b.Object}
	}
	err = f.Refs.Update(ctx, s, repo, updates...)
	if refused := (*ref.RefusedError)(nil); errors.As(err, &refused) {
		return refused.Answer()
	}
	return err
}
