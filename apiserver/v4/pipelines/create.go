package pipelines

import (
	"context"
	"fmt"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/launch"
	"github.com/forgeplane/forgeplane/apiserver/ref"
	"github.com/forgeplane/forgeplane/internal/pipeline"
)

// refused returns 400 with the reason why there is no pipeline.
func refused(reasons ...string) error { return endpoint.Invalid(map[string][]string{"base": reasons}) }

// noReference is the answer for a ref that is neither a branch nor a tag.
const noReference = "Reference not found"

type createRequest struct {
	Ref       string     `param:"ref" required:"" blank:"refuse" example:"main" doc:"Name of a branch or tag."`
	Variables []variable `param:"variables" doc:"Variables, which replace those of the configuration."`
}

type variable struct {
	Key   string `param:"key" required:"" example:"TARGET" doc:"Name of the variable."`
	Value string `param:"value" example:"staging" doc:"Value of the variable."`
	Type  string `param:"variable_type" values:"env_var,file" default:"env_var" doc:"Whether jobs get the value, or the path of a file with the value."`
}

// maxVariables is the maximum number of variables in a request.
const maxVariables = 100

// variables checks the variables of a request.
func variables(given []variable) ([]pipeline.Variable, error) {
	if len(given) > maxVariables {
		return nil, refused(fmt.Sprintf("Too many variables: %d is the maximum", maxVariables))
	}
	all, known := make([]pipeline.Variable, len(given)), map[string]bool{}
	for i, v := range given {
		if wrong := launch.CheckVariable(v.Key, v.Value); wrong != "" {
			return nil, refused(wrong)
		}
		if known[v.Key] {
			return nil, refused("Duplicate variable name: " + v.Key)
		}
		all[i], known[v.Key] = pipeline.Variable{Key: v.Key, Value: v.Value, Type: pipeline.VariableType(v.Type)}, true
	}
	return all, nil
}

func (f *Family) create(ctx context.Context, s auth.Project, r *createRequest) (Detailed, error) {
	if _, err := s.Caller.Person(); err != nil {
		return Detailed{}, err
	}
	given, err := variables(r.Variables)
	if err != nil {
		return Detailed{}, err
	}
	return f.launch(ctx, s, launch.Request{Ref: r.Ref, Source: launch.SourceAPI, Variables: given})
}

// launch creates the pipeline of a request for a branch or tag, if the caller can run jobs there. It completes the request.
func (f *Family) launch(ctx context.Context, s auth.Project, r launch.Request) (Detailed, error) {
	if s.Scope.Project.Spec.Archived {
		return Detailed{}, endpoint.Forbidden("")
	}
	r.In, r.By = s.Scope, s.Caller
	var err error
	r.SHA, r.Tag, err = f.launcher.Resolve(ctx, s.Scope.Project, r.Ref)
	if ref.Missing(err) {
		return Detailed{}, refused(noReference)
	} else if err != nil {
		return Detailed{}, err
	}
	if may, err := f.launcher.MayRun(ctx, s.Subject, r.Ref, r.Tag); err != nil {
		return Detailed{}, err
	} else if !may {
		return Detailed{}, refused(fmt.Sprintf("You do not have sufficient permission to run a pipeline on '%s'. "+
			"Please select a different branch or contact your administrator for assistance.", r.Ref))
	}
	p, err := f.launcher.Launch(ctx, r)
	if err != nil {
		return Detailed{}, launch.Refused(err)
	}
	did(ctx, "create", s.Subject, p)
	return f.detail(ctx, s.Subject, p)
}
