package jobtokenscopes

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/store"
	"github.com/forgeplane/forgeplane/internal/catalog"
)

// change updates the job token scope of the project with mutate, and creates the scope if it does not exist.
func (f *Family) change(ctx context.Context, s auth.Project, mutate func(*v1alpha1.JobTokenScope) error) error {
	return f.scopes.UpdateOrCreate(ctx, s.Subject, store.Only{}, func() *v1alpha1.JobTokenScope { return fresh(s.Scope.Project) }, mutate)
}

// fresh returns the default job token scope of a project.
func fresh(p *v1alpha1.Project) *v1alpha1.JobTokenScope {
	return &v1alpha1.JobTokenScope{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: v1alpha1.NaturalName(p.Name)},
		Spec:       v1alpha1.JobTokenScopeSpec{ProjectRef: catalog.ReferNamed(p)},
	}
}
