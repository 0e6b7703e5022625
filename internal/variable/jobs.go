package variable

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
)

// Values reads the values of variables. credential.Store implements it.
type Values interface {
	// Variable returns the value in force, and false if the variable has no value.
	Variable(ctx context.Context, o *v1alpha1.Variable) (value string, ok bool, err error)
}

// Job describes a job for which variables are wanted.
type Job struct {
	// Protected is true if the branch or tag of the pipeline is protected.
	Protected bool
	// Environment is the name of the environment of the job. It is empty if the job has none.
	Environment string
}

// Variable is a variable that a job gets.
type Variable struct {
	Key, Value string
	// File is true if the job gets the value in a file.
	File bool
	// Masked is true if the value must be replaced in logs.
	Masked bool
	// Raw is true if references to other variables in the value stay as they are.
	Raw bool
}

// For returns the variables that a job of a project gets from the installation, the groups of the project, and the project itself. A variable
// of a project takes precedence over one of its groups with the same key, a lower group over a higher one, and a group over the installation.
// In each of them, the most specific environment scope that matches takes precedence. Only the variable with the highest precedence is
// returned for each key; the order is from the installation to the project, and by key. A variable without a valid value is left out, as if
// it were not declared.
func (v *Variables) For(ctx context.Context, values Values, s catalog.Scope, j Job) ([]Variable, error) {
	var all []Variable
	taken := sets.Set[string]{}
	for _, level := range append(s.Levels(), catalog.Scope{}) {
		own, err := v.ofLevel(ctx, values, level, j)
		if err != nil {
			return nil, err
		}
		own = slices.DeleteFunc(own, func(o Variable) bool { return taken.Has(o.Key) })
		for _, o := range own {
			taken.Insert(o.Key)
		}
		all = append(own, all...)
	}
	return all, nil
}

// ofLevel returns the variables that a job gets from a project, a group or the installation itself, by key.
func (v *Variables) ofLevel(ctx context.Context, values Values, level catalog.Scope, j Job) ([]Variable, error) {
	declared, err := v.Of(ctx, level)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(declared, func(a, b *v1alpha1.Variable) int {
		switch key := strings.Compare(a.Spec.Key, b.Spec.Key); {
		case key != 0:
			return key
		case moreSpecific(a.Spec.EnvironmentScope, b.Spec.EnvironmentScope, j.Environment):
			return -1
		default:
			return 1
		}
	})
	var own []Variable
	for _, o := range declared {
		if len(own) > 0 && own[len(own)-1].Key == o.Spec.Key || !o.DeletionTimestamp.IsZero() || o.Spec.Protected && !j.Protected ||
			!matches(o.Spec.EnvironmentScope, j.Environment) {
			continue
		}
		value, ok, err := values.Variable(ctx, o)
		if err != nil {
			return nil, err
		}
		if ok && Check(&o.Spec, value) == nil {
			own = append(own, Variable{
				Key: o.Spec.Key, Value: value, File: o.Spec.Type == v1alpha1.VariableFile, Masked: o.Spec.Masked, Raw: o.Spec.Raw,
			})
		}
	}
	return own, nil
}
