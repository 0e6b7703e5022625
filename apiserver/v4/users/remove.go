package users

import (
	"context"
	"time"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/namespace"
	"github.com/forgeplane/forgeplane/internal/catalog"
)

type removeRequest struct {
	HardDelete bool `param:"hard_delete" doc:"Whether to delete the user's personal projects as well."`
}

// remove deletes a user. It deletes personal projects first, if requested, because after the user they would have no owner.
func (f *Family) remove(ctx context.Context, s auth.User, r *removeRequest) (endpoint.None, error) {
	id := s.User.RESTID()
	if r.HardDelete {
		if err := f.users.Check(ctx, s.Subject, id); err != nil {
			return endpoint.None{}, err
		}
		if err := f.removePersonal(ctx, s.User); err != nil {
			return endpoint.None{}, err
		}
	}
	return endpoint.None{}, f.users.Delete(ctx, s.Subject, id)
}

// removePersonal deletes the personal projects of a user and their group.
func (f *Family) removePersonal(ctx context.Context, u *v1alpha1.User) error {
	g, err := namespace.FindPersonal(ctx, f.Catalog, u, f.Home)
	if err != nil {
		return catalog.IgnoreNotFound(err)
	}
	projects, groups, err := f.Catalog.View(nil, time.Time{}).Below(ctx, g)
	if err != nil {
		return err
	}
	return f.tree.Remove(ctx, projects, groups)
}
