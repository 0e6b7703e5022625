package schedules

import (
	"context"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/launch"
	"github.com/forgeplane/forgeplane/internal/schedule"
)

type addVariableRequest struct {
	Key   string `param:"key" required:"" example:"TARGET" doc:"Name of the variable."`
	Value string `param:"value" required:"" example:"staging" doc:"Value of the variable."`
	Type  string `param:"variable_type" values:"env_var,file" default:"env_var" doc:"Whether jobs get the value, or the path of a file with the value."`
}

func (f *Family) addVariable(ctx context.Context, s auth.ProjectRecord[found], r *addVariableRequest) (Variable, error) {
	return f.setVariable(ctx, s, schedule.Variable{ScheduleID: s.Record.ID, Key: r.Key, Value: r.Value, Type: r.Type}, f.Activity.Schedules.AddVariable)
}

type changeVariableRequest struct {
	Key   string                    `param:"key" doc:"Name of the variable."`
	Value string                    `param:"value" required:"" example:"staging" doc:"Value of the variable."`
	Type  endpoint.Optional[string] `param:"variable_type" values:"env_var,file" doc:"Whether jobs get the value, or the path of a file with the value."`
}

func (f *Family) changeVariable(ctx context.Context, s auth.ProjectRecord[found], r *changeVariableRequest) (Variable, error) {
	if err := admit(s); err != nil {
		return Variable{}, err
	}
	was, err := f.variable(ctx, s, r.Key)
	if err != nil {
		return Variable{}, err
	}
	was.Value, was.Type = r.Value, r.Type.Or(was.Type)
	return f.setVariable(ctx, s, was, f.Activity.Schedules.ChangeVariable)
}

// setVariable checks and writes a variable.
func (f *Family) setVariable(
	ctx context.Context, s auth.ProjectRecord[found], v schedule.Variable, write func(context.Context, schedule.Variable) error,
) (Variable, error) {
	if err := admit(s); err != nil {
		return Variable{}, err
	}
	if wrong := launch.CheckVariable(v.Key, v.Value); wrong != "" {
		return Variable{}, endpoint.Invalid(map[string][]string{"base": {wrong}})
	}
	if err := write(ctx, v); err != nil {
		return Variable{}, answer(err)
	}
	did(ctx, "update", s.Subject, s.Record.Schedule)
	return showVariable(v), nil
}

// variable returns a variable of the schedule of a request.
func (f *Family) variable(ctx context.Context, s auth.ProjectRecord[found], key string) (schedule.Variable, error) {
	all, err := f.Activity.Schedules.Variables(ctx, s.Record.ID)
	if err != nil {
		return schedule.Variable{}, err
	}
	for _, v := range all {
		if v.Key == key {
			return v, nil
		}
	}
	return schedule.Variable{}, endpoint.NotFound("Variable")
}

type removeVariableRequest struct {
	Key string `param:"key" doc:"Name of the variable."`
}

func (f *Family) removeVariable(ctx context.Context, s auth.ProjectRecord[found], r *removeVariableRequest) (Variable, error) {
	if err := admit(s); err != nil {
		return Variable{}, err
	}
	was, err := f.variable(ctx, s, r.Key)
	if err != nil {
		return Variable{}, err
	}
	if err := f.Activity.Schedules.RemoveVariable(ctx, s.Record.ID, r.Key); err != nil {
		return Variable{}, answer(err)
	}
	did(ctx, "update", s.Subject, s.Record.Schedule)
	return showVariable(was), nil
}
