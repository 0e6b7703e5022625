package variables

import (
	"context"
	"errors"
	"fmt"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/internal/variable"
)

// check validates a declaration and a value. value is nil if the value does not change. was is the present variable, or nil for a new one.
func (f *Family) check(ctx context.Context, s auth.Subject, was *v1alpha1.Variable, spec v1alpha1.VariableSpec, value *string) error {
	var a endpoint.Attributes
	if was == nil {
		checkKey(&a, spec.Key)
	}
	checkEnvironmentScope(&a, spec.EnvironmentScope)
	a.Text("description", spec.Description, variable.MaxDescription)
	if spec.Hidden && !spec.Masked {
		a.Refuse("base", "The visibility setting cannot be changed for masked and hidden variables.")
	}
	if was != nil && value != nil && was.Spec.SecretRef != nil {
		a.Refuse("value", "is declared in the Secret "+was.Spec.SecretRef.Name+" of the namespace "+was.Namespace+": change it there")
	} else if err := f.checkValue(ctx, &a, was, spec, value); err != nil {
		return err
	}
	if err := a.Err(); err != nil {
		return err
	}
	if was != nil && was.Spec.EnvironmentScope == spec.EnvironmentScope {
		return nil
	}
	holder, err := f.declared.Holder(ctx, s.Scope, spec.Key, spec.EnvironmentScope)
	if err == nil && holder != nil {
		err = taken(spec.Key)
	}
	return err
}

func taken(key string) error {
	return endpoint.Invalid(map[string][]string{"key": {fmt.Sprintf("(%s) has already been taken", key)}})
}

func checkKey(a *endpoint.Attributes, key string) {
	if key == "" {
		a.Refuse("key", "can't be blank")
	}
	if !variable.IsKey(key) {
		a.Refuse("key", "can contain only letters, digits and '_'.")
	}
	a.Text("key", key, variable.MaxKey)
}

func checkEnvironmentScope(a *endpoint.Attributes, scope string) {
	if scope == "" {
		a.Refuse("environment_scope", "can't be blank")
	}
	if !variable.IsEnvironmentScope(scope) {
		a.Refuse("environment_scope", "can contain only letters, digits, '-', '_', '/', '$', '{', '}', '.', '*' and spaces")
	}
	a.Text("environment_scope", scope, variable.MaxEnvironmentScope)
}

// checkValue checks the new value, or whether the present value can be masked if that is wanted now.
func (f *Family) checkValue(ctx context.Context, a *endpoint.Attributes, was *v1alpha1.Variable, spec v1alpha1.VariableSpec, value *string) error {
	if value == nil {
		present, ok, err := f.Credentials.Variable(ctx, was)
		if err != nil || !ok || was.Spec.Masked == spec.Masked && was.Spec.Raw == spec.Raw {
			return err
		}
		value = &present
	}
	switch err := variable.Check(&spec, *value); {
	case errors.Is(err, variable.ErrTooLong):
		a.Refuse("value", fmt.Sprintf("is too long (maximum is %d characters)", variable.MaxValue))
	case err != nil:
		a.Refuse("value", "is invalid")
		a.Describe("The value is refused: " + err.Error() + ".")
	}
	return nil
}
