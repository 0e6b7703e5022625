package variables

import (
	"context"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
)

// Variable is a CI variable in the REST API.
type Variable struct {
	Key              string  `json:"key"`
	Value            *string `json:"value" doc:"Null if the variable is hidden, or while it has no value."`
	VariableType     string  `json:"variable_type" doc:"env_var or file."`
	Protected        bool    `json:"protected" doc:"Whether only pipelines of protected branches and tags get the variable."`
	Masked           bool    `json:"masked" doc:"Whether the value is replaced in job logs."`
	Hidden           bool    `json:"hidden" doc:"Whether the value is never shown."`
	Raw              bool    `json:"raw" doc:"Whether references to other variables in the value stay as they are."`
	EnvironmentScope string  `json:"environment_scope" doc:"Environments whose jobs get the variable; * for all jobs."`
	Description      *string `json:"description"`
}

// types maps the types of the REST API to those of the declaration.
var types = map[string]v1alpha1.VariableType{"env_var": v1alpha1.VariableEnvVar, "file": v1alpha1.VariableFile}

// show returns a variable with its value, unless that is hidden.
func (f *Family) show(ctx context.Context, v *v1alpha1.Variable) (Variable, error) {
	spec := &v.Spec
	shown := Variable{
		Key: spec.Key, VariableType: "env_var", Protected: spec.Protected, Masked: spec.Masked, Hidden: spec.Hidden, Raw: spec.Raw,
		EnvironmentScope: spec.EnvironmentScope,
	}
	if spec.Type == v1alpha1.VariableFile {
		shown.VariableType = "file"
	}
	if spec.Description != "" {
		shown.Description = &spec.Description
	}
	if spec.Hidden {
		return shown, nil
	}
	value, ok, err := f.Credentials.Variable(ctx, v)
	if ok {
		shown.Value = &value
	}
	return shown, err
}
