package groups

import (
	"context"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/sharing"
	"github.com/forgeplane/forgeplane/apiserver/store"
	"github.com/forgeplane/forgeplane/internal/catalog"
)

type shareRequest struct{ sharing.Request }

func (f *Family) share(ctx context.Context, s auth.Group, r *shareRequest) (Group, error) {
	share, err := f.sharing.New(ctx, s.Subject, &r.Request)
	if err != nil {
		return Group{}, err
	}
	g, err := f.groups.Update(ctx, s.Subject, store.Only{}, func(g *v1alpha1.Group) (err error) {
		g.Spec.SharedWith, err = f.sharing.Add(ctx, g, share, endpoint.Conflict("Shared group The group has already been shared with this group"))
		return err
	})
	if err != nil {
		return Group{}, err
	}
	chain, err := f.Catalog.Ancestors(ctx, g)
	if err != nil {
		return Group{}, err
	}
	return f.detailed(ctx, s.Caller, catalog.Scope{Groups: chain})
}

type unshareRequest struct {
	GroupID int64 `param:"group_id" doc:"Id of the group that it is shared with."`
}

func (f *Family) unshare(ctx context.Context, s auth.Group, r *unshareRequest) (endpoint.None, error) {
	_, err := f.groups.Update(ctx, s.Subject, store.Only{}, func(g *v1alpha1.Group) (err error) {
		g.Spec.SharedWith, err = f.sharing.Remove(ctx, s.Subject, g, r.GroupID)
		return err
	})
	return endpoint.None{}, err
}
