package controllers_test

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/variable"
)

func (f *forge) variables() []*v1alpha1.Variable {
	var l v1alpha1.VariableList
	return all(f, &l, func() []v1alpha1.Variable { return l.Items })
}

// specOfVariable makes a variable claim one of a few keys, which a tenant cannot change, for one of two environment scopes.
func (f *forge) specOfVariable(o *v1alpha1.Variable, target func(project, group **v1alpha1.Reference)) {
	o.Spec.EnvironmentScope = one(f, []string{v1alpha1.AnyEnvironment, "review/*"})
	if o.ResourceVersion == "" {
		o.Spec.Key = f.word()
		target(&o.Spec.ProjectRef, &o.Spec.GroupRef)
	}
}

// holderOfVariable returns the variable that readers find in place of a variable, or nil if that is declared for nothing.
func (f *forge) holderOfVariable(c *catalog.Catalog, o *v1alpha1.Variable) (client.Object, error) {
	s, err := c.ScopeOf(f.t.Context(), o)
	if err != nil {
		return nil, nil //nolint:nilerr // it is declared for nothing
	}
	return variable.New(c, platform).Holder(f.t.Context(), s, o.Spec.Key, o.Spec.EnvironmentScope)
}
