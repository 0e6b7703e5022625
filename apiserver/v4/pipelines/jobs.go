package pipelines

import (
	"context"
	"strconv"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/internal/pipeline"
)

// jobFilters select jobs.
type jobFilters struct {
	Scope []string `param:"scope" comma:"" values:"created,waiting_for_resource,preparing,pending,running,success,failed,canceled,skipped,manual,scheduled" doc:"Only jobs with one of these statuses."`
}

func (r *jobFilters) statuses() []pipeline.Status {
	all := make([]pipeline.Status, len(r.Scope))
	for i, s := range r.Scope {
		all[i] = pipeline.Status(s)
	}
	return all
}

type jobsOfRequest struct {
	endpoint.Paging
	jobFilters
	Retried bool `param:"include_retried" default:"false" doc:"Whether jobs are included that were replaced by a retry."`
}

func (f *Family) jobsOf(ctx context.Context, s auth.ProjectRecord[found], r *jobsOfRequest) (endpoint.List[Job], error) {
	page, err := f.page(ctx, r.Paging, pipeline.JobQuery{
		Project: s.Scope.Project.UID, Pipeline: s.Record.ID, Statuses: r.statuses(), Retried: r.Retried,
	})
	if err != nil {
		return endpoint.List[Job]{}, err
	}
	return endpoint.Each(page, func(rows []pipeline.Job) ([]Job, error) { return f.showJobs(ctx, s.Subject, rows) })
}

func (f *Family) bridgesOf(ctx context.Context, s auth.ProjectRecord[found], r *jobsOfRequest) (endpoint.List[Bridge], error) {
	page, err := f.page(ctx, r.Paging, pipeline.JobQuery{
		Project: s.Scope.Project.UID, Pipeline: s.Record.ID, Statuses: r.statuses(), Retried: r.Retried, Bridges: true,
	})
	if err != nil {
		return endpoint.List[Bridge]{}, err
	}
	return endpoint.Each(page, func(rows []pipeline.Job) ([]Bridge, error) { return f.showBridges(ctx, s.Subject, rows) })
}

// page reads the page of a list of jobs.
func (f *Family) page(ctx context.Context, p endpoint.Paging, q pipeline.JobQuery) (endpoint.List[pipeline.Job], error) {
	return endpoint.Counted(ctx, p, endpoint.Source[pipeline.Job]{
		Rows: func(ctx context.Context, skip, most int) ([]pipeline.Job, error) {
			return f.Activity.Pipelines.ListJobs(ctx, q, skip, most)
		},
		Count: func(ctx context.Context, most int) (n int, err error) {
			if q.Version, err = f.Activity.Revisions.Version(ctx, pipeline.JobKind, q.Project); err != nil {
				return 0, err
			}
			return f.Activity.Pipelines.CountJobs(ctx, q, most)
		},
	}, func(j pipeline.Job) pipeline.Job { return j })
}

type jobsRequest struct {
	endpoint.Paging
	jobFilters
	Pagination string `param:"pagination" values:"legacy,keyset" default:"legacy" doc:"legacy for pages by number, keyset for pages by cursor."`
	Cursor     int64  `param:"cursor" doc:"The id of the last job of the page before."`
}

func (f *Family) jobs(ctx context.Context, s auth.Project, r *jobsRequest) (endpoint.List[Job], error) {
	q := pipeline.JobQuery{Project: s.Scope.Project.UID, Statuses: r.statuses(), Retried: true}
	var page endpoint.List[pipeline.Job]
	var err error
	if r.Pagination == "keyset" {
		var rows []pipeline.Job
		q.Before = r.Cursor
		rows, err = f.Activity.Pipelines.ListJobs(ctx, q, 0, r.Ahead())
		page = endpoint.Following(r.Paging, rows, func(j pipeline.Job) string { return strconv.FormatInt(j.ID, 10) }, func(j pipeline.Job) pipeline.Job { return j })
	} else {
		page, err = f.page(ctx, r.Paging, q)
	}
	if err != nil {
		return endpoint.List[Job]{}, err
	}
	return endpoint.Each(page, func(rows []pipeline.Job) ([]Job, error) { return f.showJobs(ctx, s.Subject, rows) })
}

func (f *Family) getJob(ctx context.Context, s auth.ProjectRecord[foundJob], _ *endpoint.None) (Job, error) {
	return f.showJob(ctx, s.Subject, s.Record.Job)
}
