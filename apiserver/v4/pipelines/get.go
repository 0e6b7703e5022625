package pipelines

import (
	"context"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/ref"
	"github.com/forgeplane/forgeplane/internal/git/refs"
	"github.com/forgeplane/forgeplane/internal/pipeline"
)

type latestRequest struct {
	Ref string `param:"ref" doc:"Name of a branch or tag; the default branch if it is not given."`
}

func (f *Family) latest(ctx context.Context, s auth.Project, r *latestRequest) (Detailed, error) {
	name := r.Ref
	if name == "" {
		repo, err := f.Repositories.Content(ctx, s.Scope.Project)
		if ref.Missing(err) {
			return Detailed{}, endpoint.NotFound("Pipeline")
		} else if err != nil {
			return Detailed{}, err
		}
		head, err := refs.ReadHead(ctx, repo)
		if err != nil {
			return Detailed{}, err
		}
		name = head.Branch
	}
	sha, tag, err := f.launcher.Resolve(ctx, s.Scope.Project, name)
	if ref.Missing(err) {
		return Detailed{}, endpoint.NotFound("Pipeline")
	} else if err != nil {
		return Detailed{}, err
	}
	newest, err := f.Activity.Pipelines.List(ctx, pipeline.Query{
		Project: s.Scope.Project.UID, Order: pipeline.ByID, Conditions: []pipeline.Condition{pipeline.Of(name), pipeline.At(sha), pipeline.Tagged(tag), pipeline.Independent()},
	}, 0, 1)
	if err == nil && len(newest) == 0 {
		err = endpoint.NotFound("Pipeline")
	}
	if err != nil {
		return Detailed{}, err
	}
	return f.detail(ctx, s.Subject, newest[0])
}

func (f *Family) get(ctx context.Context, s auth.ProjectRecord[found], _ *endpoint.None) (Detailed, error) {
	return f.detail(ctx, s.Subject, s.Record.Pipeline)
}

// Variable is a variable of a pipeline.
type Variable struct {
	Type  pipeline.VariableType `json:"variable_type"`
	Key   string                `json:"key"`
	Value string                `json:"value"`
}

func (f *Family) variables(ctx context.Context, s auth.ProjectRecord[found], _ *endpoint.None) ([]Variable, error) {
	if !administers(s.Subject, s.Record.User) {
		return nil, endpoint.Forbidden("")
	}
	all, err := f.Activity.Pipelines.Variables(ctx, s.Record.ID)
	shown := make([]Variable, len(all))
	for i, v := range all {
		shown[i] = Variable{v.Type, v.Key, v.Value}
	}
	return shown, err
}
