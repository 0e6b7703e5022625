package members

import (
	"context"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/role"
)

type removeRequest struct {
	UserID           int64 `param:"user_id" doc:"Id of the user."`
	SkipSubresources bool  `param:"skip_subresources" doc:"Whether to leave the user what he was given in the groups and projects below the group."`
}

func (f *Family) remove(ctx context.Context, s auth.Subject, r *removeRequest) (endpoint.None, error) {
	m, err := f.removable(ctx, s, r.UserID)
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

// removable returns the member whom the caller may remove: everybody may leave.
func (f *Family) removable(ctx context.Context, s auth.Subject, userID int64) (catalog.Member, error) {
	write := auth.WriteGroupMembers
	if s.Scope.Project != nil {
		write = auth.WriteProjectMembers
	}
	if !s.Caller.Is(userID) && !s.Access.May(write) {
		return catalog.Member{}, endpoint.Forbidden("")
	}
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

// removeBelow takes from a member of a group what he was given below it: all of it, or nothing where one project refuses that or the
// condition of the request fails. It goes before the membership of the group, so that what stops half way can be done again.
func (f *Family) removeBelow(ctx context.Context, s auth.Subject, u *v1alpha1.User) error {
	given, err := f.catalog.GivenBelow(ctx, u, s.Scope.Groups[0])
	if err != nil || len(given) == 0 {
		return err
	}
	for _, below := range given {
		if err := f.memberships.CheckUnasked(ctx, below.Scope, below.Membership); err != nil {
			return err
		}
	}
	if err := f.memberships.Check(ctx, s, u); err != nil {
		return err
	}
	for _, below := range given {
		if err := f.memberships.DeleteUnasked(ctx, below.Scope, below.Membership); err != nil {
			return err
		}
	}
	return nil
}
