package pipelines

import (
	"context"
	"fmt"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/item"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/pipeline"
)

func (f *Family) cancelJob(ctx context.Context, s auth.ProjectRecord[foundJob], _ *endpoint.None) (Job, error) {
	return f.changeJob(ctx, s, "cancel", func(j pipeline.Job, _ database.User) (pipeline.Job, error) {
		return f.Activity.Pipelines.CancelJob(ctx, j)
	})
}

func (f *Family) retryJob(ctx context.Context, s auth.ProjectRecord[foundJob], _ *endpoint.None) (Job, error) {
	return f.changeJob(ctx, s, "retry", func(j pipeline.Job, by database.User) (pipeline.Job, error) {
		return f.Activity.Pipelines.RetryJob(ctx, j, by)
	})
}

type playRequest struct {
	Variables []jobVariable `param:"job_variables_attributes" doc:"Variables of the job."`
}

type jobVariable struct {
	Key   string `param:"key" required:"" example:"TARGET" doc:"Name of the variable."`
	Value string `param:"value" required:"" example:"staging" doc:"Value of the variable."`
}

func (f *Family) playJob(ctx context.Context, s auth.ProjectRecord[foundJob], r *playRequest) (Job, error) {
	given := make([]variable, len(r.Variables))
	for i, v := range r.Variables {
		given[i] = variable{Key: v.Key, Value: v.Value, Type: string(pipeline.EnvVar)}
	}
	checked, err := variables(given)
	if err != nil {
		return Job{}, err
	}
	return f.changeJob(ctx, s, "play", func(j pipeline.Job, by database.User) (pipeline.Job, error) {
		return f.Activity.Pipelines.Play(ctx, j, by, checked)
	})
}

func (f *Family) eraseJob(ctx context.Context, s auth.ProjectRecord[foundJob], _ *endpoint.None) (Job, error) {
	if !administers(s.Subject, s.Record.User) {
		return Job{}, endpoint.Forbidden("")
	}
	return f.changeJob(ctx, s, "erase", func(j pipeline.Job, by database.User) (pipeline.Job, error) {
		return f.Activity.Pipelines.Erase(ctx, j, by)
	})
}

// changeJob changes a job, if the caller can change the jobs of its pipeline.
func (f *Family) changeJob(
	ctx context.Context, s auth.ProjectRecord[foundJob], verb string, do func(j pipeline.Job, by database.User) (pipeline.Job, error),
) (Job, error) {
	u, err := s.Caller.Person()
	if err != nil {
		return Job{}, err
	}
	if err := f.admit(ctx, s.Subject, s.Record.of); err != nil {
		return Job{}, err
	}
	j, err := do(s.Record.Job, item.User(u))
	if err != nil {
		return Job{}, answer(err)
	}
	audit.From(ctx).Did(verb, audit.Job, fmt.Sprintf("%s/-/jobs/%d", s.Scope.Path(), j.ID), j.ID)
	return f.showJob(ctx, s.Subject, j)
}
