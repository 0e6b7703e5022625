package pipelines

import (
	"context"
	"fmt"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/item"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/pipeline"
)

func (f *Family) retry(ctx context.Context, s auth.ProjectRecord[found], _ *endpoint.None) (Detailed, error) {
	u, err := s.Caller.Person()
	if err != nil {
		return Detailed{}, err
	}
	return f.change(ctx, s, "retry", func(id int64) (pipeline.Pipeline, error) { return f.Activity.Pipelines.Retry(ctx, id, item.User(u)) })
}

func (f *Family) cancel(ctx context.Context, s auth.ProjectRecord[found], _ *endpoint.None) (Detailed, error) {
	return f.change(ctx, s, "cancel", func(id int64) (pipeline.Pipeline, error) { return f.Activity.Pipelines.Cancel(ctx, id) })
}

// change changes a pipeline, if the caller can change its jobs.
func (f *Family) change(ctx context.Context, s auth.ProjectRecord[found], verb string, do func(id int64) (pipeline.Pipeline, error)) (Detailed, error) {
	if err := f.admit(ctx, s.Subject, s.Record.Pipeline); err != nil {
		return Detailed{}, err
	}
	p, err := do(s.Record.ID)
	if err != nil {
		return Detailed{}, answer(err)
	}
	did(ctx, verb, s.Subject, p)
	return f.detail(ctx, s.Subject, p)
}

func (f *Family) remove(ctx context.Context, s auth.ProjectRecord[found], _ *endpoint.None) (endpoint.None, error) {
	if err := item.CheckUnmodified(ctx, s.Record.Updated); err != nil {
		return endpoint.None{}, err
	}
	if err := f.Activity.Pipelines.Delete(ctx, s.Record.ID); err != nil {
		return endpoint.None{}, answer(err)
	}
	did(ctx, "delete", s.Subject, s.Record.Pipeline)
	return endpoint.None{}, nil
}

// did records a write for the audit.
func did(ctx context.Context, verb string, s auth.Subject, p pipeline.Pipeline) {
	audit.From(ctx).Did(verb, audit.Pipeline, fmt.Sprintf("%s/-/pipelines/%d", s.Scope.Path(), p.ID), p.ID)
}
