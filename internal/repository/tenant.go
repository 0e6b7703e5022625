package repository

import (
	"context"
	"strconv"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/fair"
)

// WithHome names the namespace in which projects are made over REST for users, and no tenant declares any. It returns the finder.
func (r *Repositories) WithHome(namespace string) *Repositories {
	r.home = namespace
	return r
}

// Tenant is whom work for a project is counted for that no caller waits for: its namespace, and in the namespace of WithHome, where
// REST makes projects for users, whoever has made it. Elsewhere a tenant may write what the label of the creator says.
func (r *Repositories) Tenant(p *v1alpha1.Project) fair.Key {
	if r.home != "" && p.Namespace == r.home {
		if id, err := strconv.ParseInt(p.Labels[v1alpha1.LabelCreator], 10, 64); err == nil {
			return fair.User(id)
		}
	}
	return fair.Namespace(p.Namespace)
}

// tenantOf is Tenant for a project that is known by name, and read with c where that is needed.
func (r *Repositories) tenantOf(ctx context.Context, c client.Reader, name types.NamespacedName) fair.Key {
	var p v1alpha1.Project
	if r.home == "" || name.Namespace != r.home || c.Get(ctx, name, &p) != nil {
		return fair.Namespace(name.Namespace)
	}
	return r.Tenant(&p)
}

// For returns a context for work for a project that no caller waits for.
func (r *Repositories) For(ctx context.Context, p *v1alpha1.Project) context.Context {
	return fair.With(ctx, r.Tenant(p))
}
