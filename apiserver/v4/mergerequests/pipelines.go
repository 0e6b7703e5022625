package mergerequests

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/entity"
	"github.com/forgeplane/forgeplane/apiserver/item"
	"github.com/forgeplane/forgeplane/apiserver/launch"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/mergerequest"
	"github.com/forgeplane/forgeplane/internal/pipeline"
)

// headPipelines returns the newest pipelines of the last versions of merge requests, by the ids of the merge requests. They are in the source projects.
func (f *Family) headPipelines(ctx context.Context, some ...mergerequest.MergeRequest) (map[int64]pipeline.Pipeline, error) {
	heads := make([]pipeline.Head, 0, len(some))
	for _, m := range some {
		if m.Head != "" {
			heads = append(heads, headOf(m))
		}
	}
	found, err := f.Activity.Pipelines.Heads(ctx, heads...)
	if err != nil {
		return nil, err
	}
	of := map[int64]pipeline.Pipeline{}
	for _, m := range some {
		if p, ok := found[headOf(m)]; ok {
			of[m.ID] = p
		}
	}
	return of, nil
}

func headOf(m mergerequest.MergeRequest) pipeline.Head {
	return pipeline.Head{Project: m.Source.UID, Branch: m.SourceBranch, SHA: m.Head, MergeRequest: m.ID}
}

// requiredPipelines is headPipelines for the open merge requests of projects that need a pipeline for a merge.
func (f *Family) requiredPipelines(ctx context.Context, in map[types.UID]catalog.Scope, some []mergerequest.MergeRequest) (map[int64]pipeline.Pipeline, error) {
	var needed []mergerequest.MergeRequest
	for _, m := range some {
		if m.State == mergerequest.Opened && in[m.In.UID].Project.Spec.MergeRequests.RequirePipeline {
			needed = append(needed, m)
		}
	}
	return f.headPipelines(ctx, needed...)
}

// pipelineStatus returns the detailed status of a merge request whose pipeline must succeed before a merge; empty if it has, or need not.
func (v *shower) pipelineStatus(in *v1alpha1.Project, m mergerequest.MergeRequest) string {
	p, exists := v.pipelines[m.ID]
	switch {
	case !in.Spec.MergeRequests.RequirePipeline, exists && succeeded(in, p):
		return ""
	case exists && !p.Status.Ended() && p.Status != pipeline.Manual:
		return "ci_still_running"
	default:
		return "ci_must_pass"
	}
}

// succeeded reports whether a pipeline counts as successful for merges in a project.
func succeeded(in *v1alpha1.Project, p pipeline.Pipeline) bool {
	return p.Status == pipeline.Success || p.Status == pipeline.Skipped && in.Spec.MergeRequests.AllowSkippedPipeline
}

// source returns the project that has the source branch of a merge request, if the caller can see its pipelines. Otherwise, the error is
// catalog.ErrNotFound.
func (f *Family) source(ctx context.Context, s auth.Subject, m mergerequest.MergeRequest) (catalog.Scope, error) {
	in, access := s.Scope, s.Access
	if m.Source.UID != m.In.UID {
		var err error
		if in, err = f.Guard.Project(ctx, fmt.Sprint(m.Source.ID)); err != nil {
			return in, err
		}
		if access, err = f.Guard.Access(ctx, s.Caller, in); err != nil {
			return in, err
		}
	}
	if in.Project.UID != m.Source.UID || !access.SeesPipelines() {
		return in, catalog.ErrNotFound
	}
	return in, nil
}

// showPipeline adds the pipeline of the last version to a shown merge request, if the caller can see it.
func (f *Family) showPipeline(ctx context.Context, s auth.Subject, m mergerequest.MergeRequest, d *Detailed) error {
	heads, err := f.headPipelines(ctx, m)
	p, exists := heads[m.ID]
	if err != nil || !exists {
		return err
	}
	in, err := f.source(ctx, s, m)
	if err != nil {
		return catalog.IgnoreNotFound(err)
	}
	shown, err := f.describe(ctx, p, in)
	if err != nil {
		return err
	}
	d.HeadPipeline, d.Pipeline = &shown, &shown.Pipeline
	d.LatestBuildStartedAt, d.LatestBuildFinishedAt = shown.StartedAt, shown.FinishedAt
	return nil
}

// describe shows a pipeline of a project.
func (f *Family) describe(ctx context.Context, p pipeline.Pipeline, in catalog.Scope) (entity.PipelineDetails, error) {
	users, err := item.Users(ctx, f.Catalog, f.WebURL, p.User)
	if err != nil {
		return entity.PipelineDetails{}, err
	}
	sum, err := f.Activity.Pipelines.Summarize(ctx, p.ID)
	return entity.DescribePipeline(p, sum, users[p.User.UID], in, f.WebURL), err
}

// createPipeline creates a pipeline that is about the last version of a merge request.
func (f *Family) createPipeline(ctx context.Context, s auth.ProjectRecord[item.MergeRequest], _ *endpoint.None) (none entity.PipelineDetails, err error) {
	if _, err := s.Caller.Person(); err != nil {
		return none, err
	}
	r, err := f.launcher.OfMergeRequest(ctx, s.Record.MergeRequest, s.Caller)
	if errors.Is(err, catalog.ErrNotFound) {
		return none, noSource()
	} else if err != nil {
		return none, err
	}
	may, err := f.launcher.Permitted(ctx, r)
	if err != nil {
		return none, err
	}
	if !may {
		return none, endpoint.Forbidden("")
	}
	m, err := f.refresh(ctx, s.Record.MergeRequest)
	if err != nil {
		return none, err
	}
	if m.Head == "" {
		return none, noSource()
	}
	r.SHA, r.MergeRequest = m.Head, &m
	p, err := f.launcher.Launch(ctx, r)
	if err != nil {
		return none, launch.Refused(err)
	}
	audit.From(ctx).Did("create", audit.Pipeline, fmt.Sprintf("%s/-/pipelines/%d", r.In.Path(), p.ID), p.ID)
	return f.describe(ctx, p, r.In)
}

func noSource() error {
	return endpoint.Invalid(map[string][]string{"base": {"The source branch does not exist"}})
}

// maxVersions is the maximum number of versions whose pipelines are listed.
const maxVersions = 100

type pipelinesRequest struct{ endpoint.Paging }

func (f *Family) pipelines(ctx context.Context, s auth.ProjectRecord[item.MergeRequest], r *pipelinesRequest) (none endpoint.List[entity.Pipeline], err error) {
	m := s.Record.MergeRequest
	in, err := f.source(ctx, s.Subject, m)
	if errors.Is(err, catalog.ErrNotFound) {
		return none, endpoint.Forbidden("")
	} else if err != nil {
		return none, err
	}
	versions, _, err := f.Activity.MergeRequests.Versions(ctx, m.ID, 0, maxVersions)
	if err != nil {
		return none, err
	}
	heads := make([]string, len(versions))
	for i, v := range versions {
		heads[i] = v.Head
	}
	q := pipeline.Query{Project: m.Source.UID, Order: pipeline.ByID, Conditions: []database.Condition{
		pipeline.Tagged(false), pipeline.Independent(),
		database.Or(pipeline.OfMergeRequest(m.ID), database.And(pipeline.Of(m.SourceBranch), pipeline.AtAny(heads))),
	}}
	return endpoint.Counted(ctx, r.Paging, endpoint.Source[pipeline.Pipeline]{
		Rows: func(ctx context.Context, skip, most int) ([]pipeline.Pipeline, error) {
			return f.Activity.Pipelines.List(ctx, q, skip, most)
		},
		Count: func(ctx context.Context, most int) (int, error) { return f.Activity.Pipelines.Count(ctx, q, most) },
	}, func(p pipeline.Pipeline) entity.Pipeline { return entity.SummarizePipeline(p, in, f.WebURL) })
}
