package auth

import (
	"context"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/database"
)

// Current returns the current state of a caller. The error is an answer if the token or the user is no longer valid.
func (g *Guard) Current(ctx context.Context, c Caller) (Caller, error) {
	now, err := g.auth.Again(ctx, c)
	return now, refused(err, false)
}

// Requester returns a user as the caller of work that goes on after their request. The error is catalog.ErrNotFound if the user is gone, and an
// answer if the user is blocked.
func (g *Guard) Requester(ctx context.Context, who database.User) (Caller, error) {
	u, err := g.catalog.User(ctx, v1alpha1.Reference{ID: who.ID})
	if err == nil && u.UID != who.UID {
		err = catalog.ErrNotFound
	}
	if err == nil {
		err = refused(g.auth.usable(u), false)
	}
	if err != nil {
		return Caller{}, err
	}
	return Caller{User: u, Admin: u.Spec.Admin}, nil
}

// For admits a caller to an endpoint about a project, for work that goes on after their request. named are the path parameters that name the project
// and what is in it. The error is an answer if the caller is not admitted.
func (g *Guard) For(ctx context.Context, c Caller, e *endpoint.Endpoint, named ...string) (Subject, error) {
	s := Subject{Caller: c, endpoint: e, named: named}
	_, _, err := g.admit(ctx, &s)
	return s, err
}

// Known returns a user or bot as the caller of work that goes on after their request. The error is catalog.ErrNotFound if it is gone, and an answer if
// the user is blocked.
func (g *Guard) Known(ctx context.Context, who database.User) (Caller, error) {
	c, err := g.auth.Known(ctx, who)
	return c, refused(err, false)
}
