package mergerequests

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/uptrace/bun"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/item"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/job"
	"github.com/forgeplane/forgeplane/internal/mergerequest"
	"github.com/forgeplane/forgeplane/internal/pipeline"
)

// awaitPipeline lets a merge wait for the pipeline of the head, and returns the merge request. It has no AutoMerge if the pipeline has succeeded, so that
// the merge can begin at once (API behaviour, section 2.5).
func (f *Family) awaitPipeline(ctx context.Context, s auth.Subject, m mergerequest.MergeRequest, u *v1alpha1.User, r *mergeRequest) (mergerequest.MergeRequest, error) {
	m, err := f.refresh(ctx, m)
	if err != nil {
		return m, err
	}
	for range mergeAttempts {
		heads, err := f.headPipelines(ctx, m)
		if err != nil {
			return m, err
		}
		p, exists := heads[m.ID]
		switch {
		case !exists:
			return m, notAllowed("The merge request has no pipeline that the merge could wait for.")
		case succeeded(s.Scope.Project, p):
			m.AutoMerge = nil
			return m, nil
		case p.Status.Ended():
			return m, notAllowed("The pipeline of the merge request has not succeeded: its status is " + string(p.Status) + ".")
		}
		shown, err := f.detail(ctx, s, m)
		if err != nil {
			return m, err
		}
		status := shown.DetailedMergeStatus
		if status == "ci_still_running" || status == "ci_must_pass" {
			status = "mergeable"
		}
		if err := r.check(m, status); err != nil {
			return m, err
		}
		if err = f.wait(ctx, m, p, r.later(item.User(u))); errors.Is(err, pipeline.ErrEnded) {
			continue
		} else if err != nil {
			return m, unmerged(err)
		}
		did(ctx, "merge_later", s.Scope, m)
		return f.Activity.MergeRequests.WithID(ctx, m.ID)
	}
	return m, unmerged(mergerequest.ErrNotOpen)
}

// later returns the options of a merge request that waits for its pipeline.
func (r *mergeRequest) later(by database.User) mergerequest.AutoMerge {
	a := mergerequest.AutoMerge{User: by, CommitMessage: r.CommitMessage, SquashMessage: r.SquashMessage, RemoveSource: r.removes()}
	if r.Squash.Set && !r.Squash.Null {
		a.Squash = &r.Squash.Value
	}
	return a
}

// wait lets a merge wait for a pipeline. The error is pipeline.ErrEnded if the pipeline has ended, and mergerequest.ErrNotOpen if the merge request has
// changed.
func (f *Family) wait(ctx context.Context, m mergerequest.MergeRequest, p pipeline.Pipeline, a mergerequest.AutoMerge) error {
	return f.Activity.Database.Atomically(ctx, fmt.Sprintf("letting %s wait", m.Item()), func(ctx context.Context, _ bun.IDB) error {
		if err := f.Activity.Pipelines.Await(ctx, p.ID); err != nil {
			return err
		}
		return f.Activity.MergeRequests.Wait(ctx, m, p.ID, a)
	})
}

func (f *Family) cancelAutoMerge(ctx context.Context, s auth.ProjectRecord[item.MergeRequest], _ *endpoint.None) (none Detailed, err error) {
	m := s.Record.MergeRequest
	if m.State != mergerequest.Opened {
		return none, notAllowed("The merge request is not open.")
	}
	stopped, err := f.Activity.MergeRequests.StopWaiting(ctx, m.ID, "")
	if err != nil {
		return none, err
	}
	if !stopped {
		return none, endpoint.Message(http.StatusNotAcceptable, "Can't cancel the automatic merge").Describe("No merge of the merge request waits for a pipeline.")
	}
	did(ctx, "cancel_merge", s.Scope, m)
	if m, err = f.Activity.MergeRequests.WithID(ctx, m.ID); err != nil {
		return none, answer(err)
	}
	return f.detail(ctx, s.Subject, m)
}

// pipelineEnded runs a task of pipeline.AwaitQueue: it begins the merges that have waited for the pipeline.
func (f *Family) pipelineEnded(ctx context.Context, a job.Attempt, _ func(string)) error {
	id, err := strconv.ParseInt(a.Key, 10, 64)
	if err != nil {
		return fmt.Errorf("reading the id of a pipeline: %w", err)
	}
	waiting, err := f.Activity.MergeRequests.Waiting(ctx, id)
	for _, m := range waiting {
		err = errors.Join(err, f.Audit.Background(ctx, "merge", func(ctx context.Context) error { return f.endWait(ctx, m) }))
	}
	return err
}

// endWait merges a merge request whose pipeline has succeeded. If another pipeline of the same commit was created meanwhile, the merge waits for that
// one. After a failure, it goes on waiting, because the pipeline can be retried.
func (f *Family) endWait(ctx context.Context, m mergerequest.MergeRequest) error {
	heads, err := f.headPipelines(ctx, m)
	if err != nil {
		return err
	}
	p, exists := heads[m.ID]
	if !exists {
		_, err = f.Activity.MergeRequests.StopWaiting(ctx, m.ID, "The pipeline does not exist any more.")
		return err
	}
	if p.ID != m.AutoMergePipeline {
		switch err := f.wait(ctx, m, p, *m.AutoMerge); {
		case errors.Is(err, mergerequest.ErrNotOpen): // it has changed meanwhile
			return nil
		case !errors.Is(err, pipeline.ErrEnded):
			return err
		}
	}
	err = f.mergeWaiting(ctx, m, p)
	var refused *endpoint.Error
	switch {
	case errors.As(err, &refused) && refused.Status < http.StatusInternalServerError:
		_, err = f.Activity.MergeRequests.StopWaiting(ctx, m.ID, refused.Error())
	case errors.Is(err, catalog.ErrNotFound):
		_, err = f.Activity.MergeRequests.StopWaiting(ctx, m.ID, "The user who wanted the merge, or the project, does not exist any more.")
	}
	return err
}

// mergeWaiting merges a merge request whose head has a pipeline, with the present rights of the user whose merge has waited.
func (f *Family) mergeWaiting(ctx context.Context, m mergerequest.MergeRequest, p pipeline.Pipeline) error {
	by, err := f.Guard.Known(ctx, m.AutoMerge.User)
	if err != nil {
		return err
	}
	audit.From(ctx).User(by.User)
	s, err := f.Guard.For(ctx, by, f.mergeEndpoint(), fmt.Sprint(m.In.ID), fmt.Sprint(m.IID))
	if err != nil {
		return err
	}
	if s.Scope.Project.UID != m.In.UID {
		return catalog.ErrNotFound
	}
	if !succeeded(s.Scope.Project, p) {
		return nil
	}
	if m, err = f.checker.Refresh(ctx, m); err != nil { // it must be known whether it can be merged
		return err
	}
	if m.AutoMerge == nil || m.State != mergerequest.Opened { // there was a push
		return nil
	}
	r := mergeRequest{SHA: m.Head, CommitMessage: m.AutoMerge.CommitMessage, SquashMessage: m.AutoMerge.SquashMessage}
	if q := m.AutoMerge.Squash; q != nil {
		r.Squash = endpoint.Optional[bool]{Set: true, Value: *q}
	}
	if q := m.AutoMerge.RemoveSource; q != nil {
		r.RemoveSource = endpoint.Optional[bool]{Set: true, Value: *q}
	}
	_, err = f.merge(ctx, auth.ProjectRecord[item.MergeRequest]{Subject: s, Record: item.MergeRequest{MergeRequest: m}}, &r)
	return err
}
