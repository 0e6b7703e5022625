package projects

import (
	"context"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/sharing"
	"github.com/forgeplane/forgeplane/apiserver/store"
)

type shareRequest struct{ sharing.Request }

// Link is a share of a project with a group.
type Link struct {
	ProjectID   int64         `json:"project_id"`
	GroupID     int64         `json:"group_id"`
	GroupAccess int           `json:"group_access" doc:"10 Guest, 20 Reporter, 30 Developer, 40 Maintainer, 50 Owner."`
	ExpiresAt   endpoint.Date `json:"expires_at"`
}

func (f *Family) share(ctx context.Context, s auth.Project, r *shareRequest) (Link, error) {
	share, err := f.sharing.New(ctx, s.Subject, &r.Request)
	if err != nil {
		return Link{}, err
	}
	_, err = f.projects.Update(ctx, s.Subject, store.Only{}, func(p *v1alpha1.Project) (err error) {
		p.Spec.SharedWith, err = f.sharing.Add(ctx, p, share, endpoint.Conflict("Group already shared with this group"))
		return err
	})
	link := Link{ProjectID: s.Scope.RESTID(), GroupID: r.GroupID, GroupAccess: r.GroupAccess}
	if share.ExpiresAt != nil {
		link.ExpiresAt = endpoint.Date(share.ExpiresAt.UTC())
	}
	return link, err
}

type unshareRequest struct {
	GroupID int64 `param:"group_id" doc:"Id of the group."`
}

func (f *Family) unshare(ctx context.Context, s auth.Project, r *unshareRequest) (endpoint.None, error) {
	_, err := f.projects.Update(ctx, s.Subject, store.Only{}, func(p *v1alpha1.Project) (err error) {
		p.Spec.SharedWith, err = f.sharing.Remove(ctx, s.Subject, p, r.GroupID)
		return err
	})
	return endpoint.None{}, err
}
