package auth

import (
	"context"
	"fmt"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/protection"
	"github.com/forgeplane/forgeplane/internal/role"
)

// Actor returns a caller with the given access as an actor, for decisions about the refs of the project of a scope.
func (a *Authenticator) Actor(c Caller, access Access, s catalog.Scope) protection.Actor {
	actor := a.actor(c, access)
	if access.may(PushCode) {
		return actor
	}
	actor.Admin, actor.Role = false, min(actor.Role, role.Reporter)
	if a.collaborations != nil && c.User != nil && c.Job == nil && access.may(ReadCode) {
		actor.Collaborates = a.collaborator(c, s.Project.UID)
	}
	return actor
}

// actor is Actor for callers who need not read the code.
func (a *Authenticator) actor(c Caller, access Access) protection.Actor {
	actor := protection.Actor{Admin: access.Admin, Role: access.Role}
	if c.User == nil {
		return actor
	}
	actor.UserID = c.User.RESTID()
	actor.InGroup = func(ctx context.Context, id int64) (bool, error) {
		group, err := catalog.ByID[*v1alpha1.Group](ctx, a.catalog, id)
		if err != nil {
			return false, err
		}
		return a.InGroup(ctx, c, group)
	}
	return actor
}

// Rules returns the protections that apply to the project of a scope now and match any of these branches.
func (a *Authenticator) Rules(ctx context.Context, s catalog.Scope, branches []string) ([]protection.Rule, error) {
	rules, err := protection.Rules(ctx, a.catalog, s, branches, a.clock.Now())
	if err != nil {
		return nil, fmt.Errorf("finding the protections: %w", err)
	}
	return rules, nil
}

// Rules is Rules for the project that a request names.
func (g *Guard) Rules(ctx context.Context, s Project, branches []string) ([]protection.Rule, error) {
	return g.auth.Rules(ctx, s.Scope, branches)
}

// Actor returns the caller of a request as an actor, for decisions about the refs of the project that the request names, or about the
// protections of the group.
func (g *Guard) Actor(s Subject) protection.Actor {
	if s.Scope.Project == nil {
		return g.auth.actor(s.Caller, s.Access)
	}
	return g.auth.Actor(s.Caller, s.Access, s.Scope)
}
