package auth

import (
	"context"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/namespace"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/role"
)

// Access returns the permissions of a caller on the project of a scope, or on its group if it has no project.
func (a *Authenticator) Access(ctx context.Context, c Caller, s catalog.Scope) (Access, error) {
	seen := catalog.Seen{Scope: s}
	var err error
	switch {
	case c.Bot != nil:
		seen.Roles = c.Bot.RolesIn(s)
	case c.User != nil:
		seen.Roles, err = a.catalog.RolesIn(ctx, c.User, s, a.clock.Now())
	}
	return AccessOf(c, seen), err
}

// InGroup reports whether a caller is a member of a group or of one of its ancestors. Members of groups that it is shared with are not.
func (a *Authenticator) InGroup(ctx context.Context, c Caller, g *v1alpha1.Group) (bool, error) {
	if c.Bot != nil {
		chain, err := a.catalog.Ancestors(ctx, g)
		return c.Bot.RolesIn(catalog.Scope{Groups: chain}).Highest() > role.None, err
	}
	if c.User == nil {
		return false, nil
	}
	r, err := a.catalog.MemberRole(ctx, c.User, g, a.clock.Now())
	return r > role.None, err
}

// AccessOf is Access for a result of the caller's catalog.View.
func AccessOf(c Caller, s catalog.Seen) Access {
	own := s.Groups[0].Spec.Visibility
	access := Access{insider: c.insider(), auditor: c.Auditor(), personal: namespace.Personal(s.Groups[0]), Role: s.Highest(), Roles: s.Roles}
	if s.Project != nil {
		own = s.Project.Spec.Visibility
		access.code, access.images = s.Project.Spec.Features.Repository, s.Project.Spec.Features.ContainerRegistry
		access.privateJobs = !s.Project.Spec.Pipelines.ArePublic()
	}
	access.visibility = catalog.Visibility(own, s.Groups)
	if c.Admin {
		access.Role, access.Admin = role.Owner, true
	}
	return access
}
