package launch

import (
	"context"
	"errors"
	"fmt"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/internal/ci"
	"github.com/forgeplane/forgeplane/internal/job"
	"github.com/forgeplane/forgeplane/internal/pipeline"
	"github.com/forgeplane/forgeplane/internal/schedule"
)

// Scheduled runs a task of schedule.QueueName: it creates the pipeline of a schedule whose time has come. It creates none if the owner of the schedule
// is blocked or can no longer run pipelines of the branch, or if the project or the branch is gone.
func (l *Launcher) Scheduled(ctx context.Context, a job.Attempt, _ func(string)) error {
	of, due, err := l.Activity.Schedules.Due(ctx, a.Key)
	if err != nil || !due {
		return err
	}
	if err := ignoreGone(l.scheduled(ctx, of)); err != nil {
		return err
	}
	return l.Activity.Schedules.Done(ctx, of)
}

func (l *Launcher) scheduled(ctx context.Context, of schedule.Schedule) error {
	scope, err := l.Guard.Project(ctx, fmt.Sprint(of.In.ID))
	if err != nil || scope.Project.UID != of.In.UID {
		return err
	}
	by, err := l.Guard.Known(ctx, of.Owner)
	if err != nil {
		return err
	}
	r, err := l.OfSchedule(ctx, of, auth.Subject{Caller: by, Scope: scope})
	if err != nil {
		return err
	}
	if may, err := l.Permitted(ctx, r); err != nil || !may {
		return err
	}
	r.Origin = fmt.Sprintf("schedule/%d/%d", of.ID, of.Next.Unix())
	_, err = l.Launch(ctx, r)
	var mistakes *ConfigurationError
	if errors.As(err, &mistakes) {
		row := r.row()
		row.Status, row.Errors = pipeline.Failed, mistakes.Error()
		err = l.Activity.Pipelines.Create(ctx, &row, nil, r.Variables)
	}
	if errors.Is(err, ErrNoConfiguration) || errors.Is(err, ci.ErrFiltered) || errors.Is(err, pipeline.ErrExists) {
		return nil
	}
	return err
}

// OfSchedule returns the request for a pipeline of a schedule, as a user who can run it.
func (l *Launcher) OfSchedule(ctx context.Context, of schedule.Schedule, s auth.Subject) (r Request, err error) {
	r = Request{In: s.Scope, By: s.Caller, Ref: of.Ref, Source: SourceSchedule, Schedule: of.ID}
	if r.SHA, r.Tag, err = l.Resolve(ctx, s.Scope.Project, of.Ref); err != nil {
		return r, err
	}
	all, err := l.Activity.Schedules.Variables(ctx, of.ID)
	for _, v := range all {
		r.Variables = append(r.Variables, pipeline.Variable{Key: v.Key, Value: v.Value, Type: pipeline.VariableType(v.Type)})
	}
	return r, err
}
