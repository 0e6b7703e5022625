// Package variables is the family of the CI variables of projects, groups and the installation.
package variables

import (
	"context"
	"errors"
	"net/http"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/family"
	"github.com/forgeplane/forgeplane/apiserver/store"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/credential"
	"github.com/forgeplane/forgeplane/internal/variable"
)

// +kubebuilder:rbac:groups=forgeplane.dev,resources=variables,verbs=get;create;patch;delete,roleName=forgeplane-apiserver
// +kubebuilder:rbac:groups=forgeplane.dev,resources=variables/status,verbs=patch,roleName=forgeplane-apiserver
// +kubebuilder:rbac:groups="",namespace=forgeplane-system,resources=secrets,verbs=list;watch;create;patch;delete,roleName=forgeplane-apiserver

// Family serves variables.
type Family struct {
	family.Kit
	declared  *variable.Variables
	variables *store.Store[which, *v1alpha1.Variable]
}

// New returns the family.
func New(k family.Kit) *Family {
	f := &Family{Kit: k, declared: variable.New(k.Catalog, k.Namespace)}
	f.variables = store.New(k.Writer, f.find).Named("Variable", "Variable")
	return f
}

// Table lists the endpoints. The interface documents describe variables only as part of a pipeline.
func (f *Family) Table() endpoint.Table {
	return slices.Concat(
		table[auth.Project](f, "/projects/{id}/variables", "a project", auth.ManageVariables),
		table[auth.Group](f, "/groups/{id}/variables", "a group", auth.ManageGroupVariables),
		table[auth.Instance](f, "/admin/ci/variables", "the installation", auth.AdminInstance))
}

func table[S auth.Form](f *Family, path, of string, manage endpoint.Ability) endpoint.Table {
	return endpoint.Table{
		endpoint.Get(path, auth.On[S](f.list)).Needs(manage).
			Doc("List the CI variables of " + of + " itself."),
		endpoint.Get(path+"/{key}", auth.On[S](f.get)).Needs(manage).Also(http.StatusConflict).
			Doc("Get a CI variable of " + of + " itself."),
		endpoint.Post(path, auth.On[S](f.create)).Needs(manage).
			Doc("Create a CI variable of " + of + ". Its value is stored in a Secret."),
		endpoint.Put(path+"/{key}", auth.On[S](f.update)).Needs(manage).Also(http.StatusConflict).
			Doc("Update a CI variable of " + of + " itself. Its key cannot change."),
		endpoint.Delete(path+"/{key}", auth.On[S](f.remove)).Needs(manage).Also(http.StatusConflict).
			Doc("Delete a CI variable of " + of + " itself."),
	}
}

type listRequest struct {
	endpoint.Paging
}

func (f *Family) list(ctx context.Context, s auth.Subject, r *listRequest) (endpoint.List[Variable], error) {
	all, err := f.declared.Of(ctx, s.Scope)
	if err != nil {
		return endpoint.List[Variable]{}, err
	}
	return endpoint.Each(endpoint.Page(r.Paging, all, func(v *v1alpha1.Variable) *v1alpha1.Variable { return v }), func(page []*v1alpha1.Variable) ([]Variable, error) {
		shown := make([]Variable, len(page))
		for i, v := range page {
			if shown[i], err = f.show(ctx, v); err != nil {
				return nil, err
			}
		}
		return shown, nil
	})
}

// which names a variable.
type which struct {
	Key    string `param:"key" doc:"Key of the variable."`
	Filter filter `param:"filter" doc:"Which of several variables with the key."`
}

type filter struct {
	EnvironmentScope endpoint.Optional[string] `param:"environment_scope" doc:"Environment scope of the variable; needed if several variables have the key."`
}

// find returns the variable that a request names. The error is 409 if there are several.
func (f *Family) find(ctx context.Context, of auth.Subject, w which) (*v1alpha1.Variable, error) {
	found, err := f.declared.WithKey(ctx, of.Scope, w.Key)
	if err != nil {
		return nil, err
	}
	if scope := w.Filter.EnvironmentScope; scope.Set && !scope.Null {
		found = slices.DeleteFunc(found, func(v *v1alpha1.Variable) bool { return v.Spec.EnvironmentScope != scope.Value })
	}
	switch len(found) {
	case 0:
		return nil, catalog.ErrNotFound
	case 1:
		return found[0], nil
	default:
		return nil, endpoint.Conflict("There are multiple variables with provided parameters. Please use 'filter[environment_scope]'")
	}
}

func (f *Family) get(ctx context.Context, s auth.Subject, r *which) (Variable, error) {
	v, err := f.variables.Get(ctx, s, *r)
	if err != nil {
		return Variable{}, err
	}
	return f.show(ctx, v)
}

type createRequest struct {
	Key              string                    `param:"key" required:"" example:"DEPLOY_HOST" doc:"Name of the variable: letters, digits and underscores."`
	Value            string                    `param:"value" required:"" example:"deploy.example.com" doc:"Value of the variable."`
	VariableType     string                    `param:"variable_type" default:"env_var" values:"env_var,file" doc:"Whether a job gets the value in its environment or in a file."`
	Protected        bool                      `param:"protected" default:"false" doc:"Whether only pipelines of protected branches and tags get the variable."`
	Masked           bool                      `param:"masked" default:"false" doc:"Whether the value is replaced in job logs."`
	MaskedAndHidden  bool                      `param:"masked_and_hidden" default:"false" doc:"Whether the value is also never shown again."`
	Raw              bool                      `param:"raw" default:"false" doc:"Whether references to other variables in the value stay as they are."`
	EnvironmentScope endpoint.Optional[string] `param:"environment_scope" doc:"Environments whose jobs get the variable, such as review/*; all jobs when omitted."`
	Description      string                    `param:"description" doc:"Purpose of the variable."`
}

// spec returns the declaration of the variable.
func (r *createRequest) spec() v1alpha1.VariableSpec {
	spec := v1alpha1.VariableSpec{
		Key: r.Key, Type: types[r.VariableType], Protected: r.Protected, Masked: r.Masked || r.MaskedAndHidden, Hidden: r.MaskedAndHidden, Raw: r.Raw,
		EnvironmentScope: v1alpha1.AnyEnvironment, Description: r.Description,
	}
	if r.EnvironmentScope.Set {
		spec.EnvironmentScope = r.EnvironmentScope.Value
	}
	return spec
}

func (f *Family) create(ctx context.Context, s auth.Subject, r *createRequest) (Variable, error) {
	spec := r.spec()
	if err := f.check(ctx, s, nil, spec, &r.Value); err != nil {
		return Variable{}, err
	}
	v := &v1alpha1.Variable{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace}, Spec: spec}
	name := []string{"installation", ""}
	if of := s.Scope; len(of.Groups) > 0 {
		v.Namespace = of.Namespace()
		v.Spec.ProjectRef, v.Spec.GroupRef = of.Refs()
		name = []string{"group", of.Target().GetName()}
		if of.Project != nil {
			name[0] = "project"
		}
	}
	same := func(holder *v1alpha1.Variable) bool {
		return holder.Spec.Key == spec.Key && holder.Spec.EnvironmentScope == spec.EnvironmentScope
	}
	err := f.variables.CreateUnique(ctx, v, same, append(name, spec.Key, spec.EnvironmentScope), func(ctx context.Context, w store.Unasked) error {
		return f.keep(ctx, w, v, r.Value)
	})
	if errors.Is(err, store.ErrExists) {
		err = taken(spec.Key)
	}
	if err != nil {
		return Variable{}, err
	}
	return f.show(ctx, v)
}

// keep stores a value in a Secret of the platform. The status of the variable, which tenants cannot write, names the Secret.
func (f *Family) keep(ctx context.Context, w store.Unasked, v *v1alpha1.Variable, value string) error {
	secret := f.Credentials.New(v1alpha1.SecretOfVariable, v, map[string][]byte{credential.ValueKey: []byte(value)})
	err := w.Create(ctx, secret)
	created := err == nil
	if errors.Is(err, store.ErrExists) {
		err = w.Update(ctx, secret, func() error {
			secret.Data = map[string][]byte{credential.ValueKey: []byte(value)}
			delete(secret.Annotations, v1alpha1.AnnotationSource)
			return nil
		})
	}
	if err == nil {
		err = w.Observe(ctx, v, func() { v.Status.SecretRef.Name = secret.Name })
	}
	if err != nil && created {
		err = errors.Join(err, w.Discard(ctx, secret))
	}
	return err
}

type updateRequest struct {
	which
	Value            endpoint.Optional[string] `param:"value" example:"deploy.example.org" doc:"Value of the variable."`
	VariableType     endpoint.Optional[string] `param:"variable_type" values:"env_var,file" doc:"Whether a job gets the value in its environment or in a file."`
	Protected        endpoint.Optional[bool]   `param:"protected" doc:"Whether only pipelines of protected branches and tags get the variable."`
	Masked           endpoint.Optional[bool]   `param:"masked" doc:"Whether the value is replaced in job logs."`
	Raw              endpoint.Optional[bool]   `param:"raw" doc:"Whether references to other variables in the value stay as they are."`
	EnvironmentScope endpoint.Optional[string] `param:"environment_scope" doc:"Environments whose jobs get the variable, such as review/*."`
	Description      endpoint.Optional[string] `param:"description" doc:"Purpose of the variable; null removes it."`
}

// apply sets the fields that the request contains.
func (r *updateRequest) apply(spec *v1alpha1.VariableSpec) {
	if r.VariableType.Set && !r.VariableType.Null {
		spec.Type = types[r.VariableType.Value]
	}
	spec.Protected, spec.Masked, spec.Raw = r.Protected.Or(spec.Protected), r.Masked.Or(spec.Masked), r.Raw.Or(spec.Raw)
	if r.EnvironmentScope.Set {
		spec.EnvironmentScope = r.EnvironmentScope.Value
	}
	if r.Description.Set {
		spec.Description = r.Description.Value
	}
}

func (f *Family) update(ctx context.Context, s auth.Subject, r *updateRequest) (Variable, error) {
	v, err := f.variables.Get(ctx, s, r.which)
	if err != nil {
		return Variable{}, err
	}
	spec, value := *v.Spec.DeepCopy(), (*string)(nil)
	r.apply(&spec)
	if r.Value.Set {
		value = &r.Value.Value
	}
	if err := f.check(ctx, s, v, spec, value); err != nil {
		return Variable{}, err
	}
	v, err = f.variables.Update(ctx, s, r.which, func(v *v1alpha1.Variable) error {
		r.apply(&v.Spec)
		return nil
	})
	if err == nil && value != nil {
		err = f.variables.CompleteUnasked(ctx, func(ctx context.Context, w store.Unasked) error { return f.keep(ctx, w, v, *value) })
	}
	if err != nil {
		return Variable{}, err
	}
	return f.show(ctx, v)
}

func (f *Family) remove(ctx context.Context, s auth.Subject, r *which) (endpoint.None, error) {
	return endpoint.None{}, f.variables.Delete(ctx, s, *r)
}
