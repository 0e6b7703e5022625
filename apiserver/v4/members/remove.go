package members

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/role"
)

type removeRequest struct {
	SkipSubresources bool `param:"skip_subresources" doc:"Whether to keep the user's memberships in the groups and projects below the group."`
}

// The whom of a request is the user whose membership the request deletes, or nil. Users own their memberships.
type whom struct{ *v1alpha1.User }

func (whom) Parameter() string { return "Id of the user." }

func (w whom) Owner() types.UID { return w.UID }

// find is for endpoint.Found.
func (f *Family) find(ctx context.Context, _ auth.Subject, id int64) (whom, error) {
	u, err := f.Catalog.User(ctx, v1alpha1.Reference{ID: id})
	if errors.Is(err, catalog.ErrNotFound) {
		err = endpoint.NotFound("")
	}
	return whom{u}, err
}

func (f *Family) remove(ctx context.Context, s auth.Subject, w whom, r *removeRequest) (endpoint.None, error) {
	m, err := f.removable(ctx, s, w.RESTID())
	if err != nil {
		return endpoint.None{}, err
	}
	if s.Scope.Project == nil && !r.SkipSubresources {
		if err := f.removeBelow(ctx, s, m.User); err != nil {
			return endpoint.None{}, err
		}
	}
	return endpoint.None{}, f.memberships.Delete(ctx, s, m.User)
}

// removable returns the member that the request deletes.
func (f *Family) removable(ctx context.Context, s auth.Subject, userID int64) (catalog.Member, error) {
	m, err := f.own(ctx, s.Scope, userID)
	if err != nil {
		return catalog.Member{}, err
	}
	if m.Role() == role.Owner {
		if err := f.keepsAnOwner(ctx, s, m.User); err != nil {
			return catalog.Member{}, err
		}
	}
	return m, nil
}

// removeBelow deletes all memberships of a group member below the group. It deletes none of them if one project refuses that or the
// condition of the request fails. It runs before the deletion of the group's own membership, so that an interrupted request can be
// repeated.
func (f *Family) removeBelow(ctx context.Context, s auth.Subject, u *v1alpha1.User) error {
	given, err := f.Catalog.GivenBelow(ctx, u, s.Scope.Groups[0])
	if err != nil || len(given) == 0 {
		return err
	}
	if err := f.memberships.Check(ctx, s, u); err != nil {
		return err
	}
	for _, below := range given {
		if err := f.memberships.CheckUnasked(ctx, below.Membership); err != nil {
			return err
		}
	}
	for _, below := range given {
		if err := f.memberships.DeleteUnasked(ctx, below.Membership); err != nil {
			return err
		}
	}
	return nil
}
