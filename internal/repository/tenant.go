package repository

import (
	"context"
	"strconv"

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

// For returns a context for work for a project that no caller waits for.
func (r *Repositories) For(ctx context.Context, p *v1alpha1.Project) context.Context {
	return fair.With(ctx, r.Tenant(p))
}
