package members

import (
	"context"
	"errors"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/conditional"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/refusal"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/declare"
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
		if err := f.removeBelow(ctx, s.Scope.Groups[0], m); err != nil {
			return endpoint.None{}, err
		}
	}
	return endpoint.None{}, refusal.Of(conditional.Delete(ctx, f.writer, m.Membership.DeepCopy()), "")
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
	if m.Role() > s.Access.Role {
		return catalog.Member{}, endpoint.Forbidden("")
	}
	if m.Role() == role.Owner {
		if err := f.keepsAnOwner(ctx, s, m.User); err != nil {
			return catalog.Member{}, err
		}
	}
	return m, f.allow(ctx, s.Scope, m.Membership)
}

// removeBelow takes from a member of a group what he was given below it: all of it, or nothing where one project refuses that or the
// condition of the request fails. It goes before the membership of the group, so that what stops half way can be done again.
func (f *Family) removeBelow(ctx context.Context, g *v1alpha1.Group, m catalog.Member) error {
	given, err := f.catalog.GivenBelow(ctx, m.User, g)
	if err != nil || len(given) == 0 {
		return err
	}
	for _, below := range given {
		if err := f.allow(ctx, below.Scope, below.Membership); err != nil {
			return err
		}
	}
	if err := conditional.Check(ctx, f.writer, m.Membership); err != nil {
		return refusal.Of(err, "")
	}
	for _, below := range given {
		if err := f.writer.Delete(ctx, below.Membership.DeepCopy()); err != nil && !errors.Is(err, declare.ErrGone) {
			return refusal.Of(err, "")
		}
	}
	return nil
}
