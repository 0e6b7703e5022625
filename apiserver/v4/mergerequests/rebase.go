package mergerequests

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/item"
	"github.com/forgeplane/forgeplane/apiserver/ref"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/edit"
	"github.com/forgeplane/forgeplane/internal/git/history"
	"github.com/forgeplane/forgeplane/internal/git/merge"
	"github.com/forgeplane/forgeplane/internal/git/object"
	"github.com/forgeplane/forgeplane/internal/git/refs"
	"github.com/forgeplane/forgeplane/internal/git/transfer"
	"github.com/forgeplane/forgeplane/internal/git/update"
	"github.com/forgeplane/forgeplane/internal/mergecheck"
	"github.com/forgeplane/forgeplane/internal/mergerequest"
)

// diverged adds the number of commits that only the target branch has to a shown merge request.
func (f *Family) diverged(ctx context.Context, m mergerequest.MergeRequest, d Detailed) (Detailed, error) {
	n := 0
	d.DivergedCommitsCount = &n
	if m.Head == "" {
		return d, nil
	}
	b, err := f.checker.Branches(ctx, m)
	if git.OutOfReach(err) {
		return d, nil
	}
	if err == nil && b.Target != "" {
		n, err = history.CountBetween(ctx, b.Repository, m.Head, b.Target)
	}
	return d, err
}

// MergeRef is the commit that a merge would make.
type MergeRef struct {
	CommitID string `json:"commit_id"`
}

func (f *Family) mergeRef(ctx context.Context, s auth.ProjectRecord[item.MergeRequest], _ *endpoint.None) (MergeRef, error) {
	m, err := f.refresh(ctx, s.Record.MergeRequest)
	if err != nil {
		return MergeRef{}, err
	}
	b, err := f.checker.Branches(ctx, m)
	if err != nil && !git.OutOfReach(err) {
		return MergeRef{}, err
	}
	if m.MergeStatus != mergerequest.CanBeMerged || b.Merged == "" {
		return MergeRef{}, endpoint.Message(http.StatusBadRequest, "Merge request is not mergeable")
	}
	return MergeRef{b.Merged}, nil
}

type rebaseRequest struct {
	SkipCI bool `param:"skip_ci" default:"false" doc:"Ignored."`
}

// Rebase says that a rebase has been accepted.
type Rebase struct {
	RebaseInProgress bool `json:"rebase_in_progress" doc:"Always true. The merge request shows in merge_error whether the rebase has failed."`
}

// rebasePatience limits the time for rebasing.
const rebasePatience = time.Minute

var errSlowRebase = fmt.Errorf("it takes longer than %s", rebasePatience)

func (f *Family) rebase(ctx context.Context, s auth.ProjectRecord[item.MergeRequest], _ *rebaseRequest) (none Rebase, err error) {
	u, err := s.Caller.Person()
	if err != nil {
		return none, err
	}
	m := s.Record.MergeRequest
	if m.Source.UID == m.In.UID {
		if err := f.pushesToBranch(ctx, s.Subject, m.SourceBranch); err != nil {
			return none, err
		}
	}
	if m, err = f.refresh(ctx, m); err != nil {
		return none, err
	}
	b, err := f.checker.Branches(ctx, m)
	if err != nil {
		return none, err
	}
	if m.State != mergerequest.Opened || !b.Exist() {
		return none, endpoint.Forbidden("Source branch does not exist").Describe("Only an open merge request whose branches exist can be rebased.")
	}
	err = f.writeRebased(ctx, s.Subject, m, b, object.Signature{Name: catalog.DisplayName(u), Email: u.Spec.Email, When: f.Clock.Now()})
	var refused *ref.RefusedError
	if errors.As(err, &refused) {
		return none, endpoint.Forbidden("Cannot push to source branch").Describe("%s", refused.Reason)
	}
	failure := rebaseFailure(err)
	if err != nil && failure == "" {
		return none, ref.Uncommitted(err)
	}
	m, err = f.Activity.MergeRequests.Update(ctx, m.In.UID, m.IID, func(m *mergerequest.MergeRequest) error {
		m.MergeError = failure
		return nil
	})
	if err != nil {
		return none, answer(err)
	}
	did(ctx, "rebase", s.Scope, m)
	_, err = f.refresh(ctx, m)
	return Rebase{RebaseInProgress: true}, err
}

// pushesToBranch refuses callers who cannot push to a branch of the project of a request.
func (f *Family) pushesToBranch(ctx context.Context, s auth.Subject, branch string) error {
	if !s.Has(s.Access, auth.PushCode) {
		return s.Denied(auth.PushCode)
	}
	may, err := f.Refs.MayPush(ctx, auth.Project{Subject: s}, ref.Branches+branch)
	if err == nil && !may.Allowed {
		err = endpoint.Forbidden("Cannot push to source branch").Describe("%s", may.Reason)
	}
	return err
}

// writeRebased rebases the source branch of a merge request. In a fork, callers who can push there can do so, and with allow_collaboration those
// who can merge into the target branch.
func (f *Family) writeRebased(ctx context.Context, s auth.Subject, m mergerequest.MergeRequest, b mergecheck.Branches, committer object.Signature) error {
	in, repo := auth.Project{Subject: s}, b.SourceRepository()
	prepare := func(ctx context.Context) ([]update.Ref, error) {
		ctx, cancel := context.WithTimeoutCause(ctx, rebasePatience, errSlowRebase)
		defer cancel()
		if repo != b.Repository {
			if err := transfer.Bring(ctx, repo, b.Repository, b.Target); err != nil {
				return nil, fmt.Errorf("bringing the target branch to the fork: %w", err)
			}
		}
		head, err := merge.Rebase(ctx, repo, b.Source, b.Target, committer)
		if err != nil || head == b.Source {
			return nil, err
		}
		return []update.Ref{{Name: ref.Branches + m.SourceBranch, Old: b.Source, New: head}}, nil
	}
	if repo == b.Repository {
		return f.Refs.Write(ctx, in, repo, prepare)
	}
	who := func(ctx context.Context) (auth.Caller, error) { return f.Guard.Current(ctx, s.Caller) }
	return f.Refs.WriteSource(ctx, who, m.Source, m.SourceBranch, repo, prepare)
}

// rebaseFailure returns the value of merge_error after a rebase; empty for an error that is not about the branches.
func rebaseFailure(err error) string {
	var conflict *merge.ConflictError
	switch {
	case errors.As(err, &conflict):
		return "Rebase failed: Rebase locally, resolve all conflicts, then push the branch."
	case errors.Is(err, merge.ErrTooMany), errors.Is(err, errSlowRebase), errors.Is(err, edit.ErrTooLarge), errors.As(err, new(*edit.RefusedObjectError)):
		return fmt.Sprintf("Rebase failed: %s. Rebase locally, then push the branch.", err)
	case errors.Is(err, refs.ErrMoved):
		return "Rebase failed: the source branch has changed meanwhile. Please try again."
	default:
		return ""
	}
}
