package mergerequests

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/uptrace/bun"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/family"
	"github.com/forgeplane/forgeplane/apiserver/item"
	"github.com/forgeplane/forgeplane/apiserver/ref"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/change"
	"github.com/forgeplane/forgeplane/internal/git/merge"
	"github.com/forgeplane/forgeplane/internal/git/object"
	"github.com/forgeplane/forgeplane/internal/git/refs"
	"github.com/forgeplane/forgeplane/internal/git/update"
	"github.com/forgeplane/forgeplane/internal/mergecheck"
	"github.com/forgeplane/forgeplane/internal/mergerequest"
)

func (f *Family) mergeTable() endpoint.Table {
	return endpoint.Table{
		f.mergeEndpoint(),
		endpoint.Post(one+"/cancel_merge_when_pipeline_succeeds", f.cancelAutoMerge).Needs(auth.UpdateMergeRequests).Found(f.items.MergeRequest).
			Also(http.StatusMethodNotAllowed, http.StatusNotAcceptable).Doc("Cancel a merge that waits for a pipeline."),
		endpoint.Get(one+"/pipelines", f.pipelines).Needs(auth.ReadMergeRequests).Found(f.items.MergeRequest).Anonymous(endpoint.Served).
			Doc("List the pipelines of the versions of a merge request."),
		endpoint.Post(one+"/pipelines", f.createPipeline).Needs(auth.ReadMergeRequests).Found(f.items.MergeRequest).
			Doc("Create a pipeline that is about a merge request. The caller must be able to run pipelines of the source branch."),
		endpoint.Get(one+"/merge_ref", f.mergeRef).Needs(auth.ReadMergeRequests).Found(f.items.MergeRequest).Anonymous(endpoint.Served).
			Doc("Get the commit that a merge would make, which clients can fetch as refs/merge-requests/{iid}/merge."),
		endpoint.Put(one+"/rebase", f.rebase).Needs(auth.ReadMergeRequests).Asks(auth.PushCode).Found(f.items.MergeRequest).Status(http.StatusAccepted).
			Doc("Rebase the source branch onto the target branch. The caller must be able to push to the source branch."),
	}
}

type mergeRequest struct {
	CommitMessage    string                  `param:"merge_commit_message" doc:"Message of the merge commit."`
	SquashMessage    string                  `param:"squash_commit_message" doc:"Message of the squashed commit; the title if it is not given."`
	Squash           endpoint.Optional[bool] `param:"squash" doc:"Whether to squash the commits into one; as the merge request says if it is not given. squash_option of the project can override it."`
	RemoveSource     endpoint.Optional[bool] `param:"should_remove_source_branch" doc:"Whether to delete the source branch, unless it is protected or the default branch."`
	SHA              string                  `param:"sha" doc:"Id that the head of the source branch must have."`
	PipelineSucceeds bool                    `param:"merge_when_pipeline_succeeds" default:"false" doc:"Deprecated for auto_merge."`
	AutoMerge        bool                    `param:"auto_merge" default:"false" doc:"Whether to merge once the pipeline succeeds. Without a pipeline that runs or has succeeded, true is refused."`
}

// mergeEndpoint is also the endpoint of a merge that has waited for a pipeline.
func (f *Family) mergeEndpoint() *endpoint.Endpoint {
	return endpoint.Put(one+"/merge", f.merge).Needs(auth.MergeMergeRequests).Denies(endpoint.Unauthorized("")).Found(f.items.MergeRequest).
		Also(http.StatusMethodNotAllowed, http.StatusConflict, http.StatusUnprocessableEntity, http.StatusRequestEntityTooLarge).
		Doc("Merge a merge request. The caller must be able to merge into or push to the target branch.")
}

// mergeAttempts limits how often a merge is made again because its target branch has moved. Between two attempts, another change of the branch
// succeeds.
const mergeAttempts = 10

func (f *Family) merge(ctx context.Context, s auth.ProjectRecord[item.MergeRequest], r *mergeRequest) (none Detailed, err error) {
	u, err := s.Caller.Person()
	if err != nil {
		return none, err
	}
	in, m := auth.Project{Subject: s.Subject}, s.Record.MergeRequest
	may, err := f.mayMerge(ctx, in, m.TargetBranch)
	if err != nil {
		return none, err
	}
	if !may.Allowed {
		return none, endpoint.Unauthorized("").Describe("%s", may.Reason)
	}
	if r.PipelineSucceeds || r.AutoMerge {
		if waiting, err := f.awaitPipeline(ctx, s.Subject, m, u, r); err != nil || waiting.AutoMerge != nil {
			return f.merged(ctx, s.Subject, waiting, err)
		}
	}
	for range mergeAttempts {
		if m, err = f.mergeable(ctx, s.Subject, m, r); err != nil {
			return none, err
		}
		if m.TargetBranch != s.Record.TargetBranch { // the caller was admitted for that one
			return none, unmerged(mergerequest.ErrNotOpen)
		}
		r.SHA = m.Head // another attempt must not merge what is pushed from here on
		var moved bool
		if moved, err = f.mergeOnce(ctx, in, m, u, r); !moved {
			break
		}
		if m, err = f.Activity.MergeRequests.WithID(ctx, m.ID); err != nil {
			return none, unmerged(err)
		}
		err = refs.ErrMoved
	}
	if err != nil {
		return none, unmerged(err)
	}
	if m, err = f.finish(context.WithoutCancel(ctx), s.Caller, m); err != nil { // the client may be gone
		return none, answer(err)
	}
	did(ctx, "merge", s.Scope, m)
	return f.merged(ctx, s.Subject, m, nil)
}

// merged is the answer to a merge.
func (f *Family) merged(ctx context.Context, s auth.Subject, m mergerequest.MergeRequest, err error) (Detailed, error) {
	if err != nil {
		return Detailed{}, err
	}
	d, err := f.detail(ctx, s, m)
	if err != nil {
		return Detailed{}, err
	}
	return f.diverged(ctx, m, d)
}

// mergeable brings a merge request up to date, and returns it, or the answer if it must not be merged (API behaviour, section 2.5).
func (f *Family) mergeable(ctx context.Context, s auth.Subject, m mergerequest.MergeRequest, r *mergeRequest) (mergerequest.MergeRequest, error) {
	m, err := f.refresh(ctx, m)
	if err != nil {
		return m, err
	}
	shown, err := f.showOne(ctx, s, m)
	if err != nil {
		return m, err
	}
	return m, r.check(m, shown.DetailedMergeStatus)
}

// check returns the answer if a merge request with a detailed status must not be merged.
func (r *mergeRequest) check(m mergerequest.MergeRequest, status string) error {
	switch {
	case status == "broken_status":
		return conflicting()
	case status != "mergeable":
		return notAllowed("The merge request cannot be merged: its detailed_merge_status is " + status + ".")
	case r.SHA != "" && r.SHA != m.Head:
		return endpoint.Message(http.StatusConflict, "SHA does not match HEAD of source branch: %s", m.Head)
	default:
		return nil
	}
}

func notAllowed(reason string) *endpoint.Error {
	return endpoint.Message(http.StatusMethodNotAllowed, "405 Method Not Allowed").Describe("%s", reason)
}

func conflicting() *endpoint.Error {
	return endpoint.Message(http.StatusUnprocessableEntity, "Branch cannot be merged")
}

// unmerged converts an error of a merge.
func unmerged(err error) error {
	var refused *ref.RefusedError
	switch {
	case errors.Is(err, mergerequest.ErrNotFound):
		return answer(err)
	case errors.Is(err, mergerequest.ErrNotOpen):
		return notAllowed("The merge request has changed meanwhile.")
	case errors.As(err, &refused):
		return conflicting().Describe("%s", refused.Reason)
	case ref.Missing(err):
		return conflicting().Describe("One of the branches does not exist any more.")
	case errors.Is(err, refs.ErrMoved):
		return conflicting().Describe("The branches change too often at the moment. Please try again.")
	case mergecheck.Hopeless(err):
		return conflicting().Describe("%s.", err)
	}
	return ref.Uncommitted(err)
}

// mergeOnce merges an open merge request in Git, and locks it before. moved says that a branch has moved, so that the merge request is open again
// and another attempt can succeed if that was the target branch. If it is not known whether Git has changed the target branch, the merge request
// stays locked, and a later refresh finishes or undoes the merge.
func (f *Family) mergeOnce(ctx context.Context, in auth.Project, m mergerequest.MergeRequest, u *v1alpha1.User, r *mergeRequest) (moved bool, err error) {
	before, err := f.checker.Branches(ctx, m)
	if err != nil {
		return false, err
	}
	if !before.Exist() {
		return false, refs.ErrNotFound
	}
	planned := ""
	err = f.Refs.Merge(ctx, in, before.Repository, f.ownerApprovals(in.Scope, m), func(ctx context.Context) ([]update.Ref, error) {
		b, err := f.checker.Branches(ctx, m)
		if err != nil {
			return nil, err
		}
		if b.Source != m.Head || b.Target == "" {
			return nil, refs.ErrMoved
		}
		made, err := merge.Commits(ctx, b.Repository, f.planned(in, m, b, u, r))
		if err != nil {
			return nil, err
		}
		plan := mergerequest.Plan{Commit: made.Commit, Squash: made.Squash, Merger: item.User(u), RemoveSource: r.removes()}
		if err := f.lock(ctx, in.Scope, m, plan); err != nil {
			return nil, err
		}
		planned = made.Commit
		return []update.Ref{{Name: ref.Branches + m.TargetBranch, Old: b.Target, New: made.Commit}}, nil
	})
	moved = errors.Is(err, refs.ErrMoved)
	if planned != "" && (moved || certain(err)) {
		// The client may be gone.
		if failed := f.Activity.MergeRequests.Unlock(context.WithoutCancel(ctx), m.ID, planned, reopened(err)); failed != nil {
			return false, failed
		}
	}
	return moved, err
}

// lock locks a merge request for a plan, unless it has changed or lost an approval since it was found mergeable. If the merge is interrupted, a task
// finishes or undoes it.
func (f *Family) lock(ctx context.Context, in catalog.Scope, m mergerequest.MergeRequest, p mergerequest.Plan) error {
	before, err := f.committersBefore(ctx, m)
	if err != nil {
		return err
	}
	return f.Activity.Database.Atomically(ctx, fmt.Sprintf("locking %s", m.Item()), func(ctx context.Context, _ bun.IDB) error {
		if err := f.Activity.MergeRequests.Lock(ctx, m, p); err != nil { // approvals wait from here on
			return err
		}
		now, err := f.Activity.MergeRequests.WithID(ctx, m.ID)
		if err != nil {
			return err
		}
		c, err := f.consent(ctx, before, now)
		if errors.Is(err, mergerequest.ErrOutdated) || err == nil && c.left() > 0 {
			err = mergerequest.ErrNotOpen
		}
		if err != nil {
			return err
		}
		task, delay := mergecheck.Resume(m.ID, f.Repositories.Tenant(in.Project))
		return f.checks.AddAfter(ctx, task, delay)
	})
}

// certain reports whether an error says that no ref was written: that the write was refused, or could not be decided.
func certain(err error) bool {
	return errors.As(err, new(*ref.RefusedError)) || errors.As(err, new(*endpoint.Error)) || errors.As(err, new(*change.DecisionError))
}

// reopened returns the value of merge_error after a merge that wrote no ref; empty if a branch has moved.
func reopened(err error) string {
	switch {
	case errors.Is(err, refs.ErrMoved):
		return ""
	case errors.As(err, new(*ref.RefusedError)), errors.As(err, new(*endpoint.Error)):
		return err.Error()
	default:
		return "The server could not check the merge. Please try again later, and tell an administrator if the problem persists."
	}
}

// removes is the value of should_remove_source_branch; nil if it was not sent.
func (r *mergeRequest) removes() *bool {
	if !r.RemoveSource.Set || r.RemoveSource.Null {
		return nil
	}
	return &r.RemoveSource.Value
}

// planned describes the commits of a merge.
func (f *Family) planned(in auth.Project, m mergerequest.MergeRequest, b mergecheck.Branches, u *v1alpha1.User, r *mergeRequest) merge.Request {
	q := merge.Request{
		Target: b.Target, Source: b.Source, Trial: b.Merged, Author: object.Signature{Name: catalog.DisplayName(u), Email: u.Spec.Email, When: f.Clock.Now()},
		Message: cmp.Or(r.CommitMessage, fmt.Sprintf("Merge branch '%s' into '%s'\n\n%s\n\nSee merge request %s!%d",
			m.SourceBranch, m.TargetBranch, m.Title, in.Scope.Path(), m.IID)),
	}
	if in.Scope.Project.Spec.MergeRequests.Squash.Decide(r.Squash.Or(m.Squash)) {
		q.SquashMessage = cmp.Or(r.SquashMessage, m.Title)
	}
	return q
}

// finish deletes the source branch of a locked merge request that Git has merged, if the merge asks for it, and then marks the merge request as merged:
// if the process ends in between, the source branch is not forgotten.
func (f *Family) finish(ctx context.Context, c auth.Caller, m mergerequest.MergeRequest) (mergerequest.MergeRequest, error) {
	m, err := f.Activity.MergeRequests.WithID(ctx, m.ID)
	if err != nil {
		return m, err
	}
	_ = removeSource(ctx, f.Kit, m, func(ctx context.Context) (auth.Caller, error) { return f.Guard.Current(ctx, c) })
	return f.checker.Finish(ctx, m)
}

// RemoveSource deletes the source branch of a merge request whose merge was interrupted, as its merger, for mergecheck.Checker.Removing.
func RemoveSource(k family.Kit) func(context.Context, mergerequest.MergeRequest) error {
	return func(ctx context.Context, m mergerequest.MergeRequest) error {
		return k.Audit.Background(ctx, "remove-source", func(ctx context.Context) error {
			return removeSource(ctx, k, m, func(ctx context.Context) (auth.Caller, error) { return k.Guard.Requester(ctx, m.Merger) })
		})
	}
}

// removeSource deletes the source branch of a merged merge request if the merge or the merge request asks for it. It leaves default branches,
// protected branches, and branches that have changed. It acts as the merger. If the merge request itself asks for the removal of a branch in a fork,
// it acts as the author: at once, or after the merger if the merge asks for the removal too and the merger cannot delete the branch.
func removeSource(ctx context.Context, k family.Kit, m mergerequest.MergeRequest, merger ref.Requester) error {
	if !m.RemovesSource() {
		return nil
	}
	byAuthor := m.Source.UID != m.In.UID && m.RemoveSourceBranch
	if !byAuthor || m.ShouldRemoveSource != nil {
		if err := k.Refs.DeleteSource(ctx, merger, m.Source, m.SourceBranch, m.Head); !byAuthor || err == nil {
			return err
		}
	}
	author := func(ctx context.Context) (auth.Caller, error) { return k.Guard.Requester(ctx, m.Author) }
	return k.Refs.DeleteSource(ctx, author, m.Source, m.SourceBranch, m.Head)
}
