package repository

import (
	"context"
	"strconv"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/fair"
)

// WithHome names the namespace in which users create projects over REST, and in which no tenant declares any. It returns r.
func (r *Repositories) WithHome(namespace string) *Repositories {
	r.home = namespace
	return r
}

// Tenant returns the tenant whose share background work for a project uses. It is the namespace of the project; in the namespace of
// WithHome it is the creator. Elsewhere the creator label cannot be trusted, because tenants can write it.
func (r *Repositories) Tenant(p *v1alpha1.Project) fair.Key {
	if r.home != "" && p.Namespace == r.home {
		if id, err := strconv.ParseInt(p.Labels[v1alpha1.LabelCreator], 10, 64); err == nil {
			return fair.User(id)
		}
	}
	return fair.Namespace(p.Namespace)
}

// tenantOf is Tenant for a project name. It reads the project with c if necessary.
func (r *Repositories) tenantOf(ctx context.Context, c client.Reader, name types.NamespacedName) fair.Key {
	var p v1alpha1.Project
	if r.home == "" || name.Namespace != r.home || c.Get(ctx, name, &p) != nil {
		return fair.Namespace(name.Namespace)
	}
	return r.Tenant(&p)
}

// WithTenant returns a context for background work for a project.
func (r *Repositories) WithTenant(ctx context.Context, p *v1alpha1.Project) context.Context {
	return fair.With(ctx, r.Tenant(p))
}
