package apiserver

import (
	"context"
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/githttp"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/protection"
	"github.com/forgeplane/forgeplane/internal/repository"
)

// archived is the message for a push to an archived project, which must not be retried.
const archived = "This project is archived, so nothing can be pushed to it."

// gitAccess authenticates callers for the Git server, and finds projects with the permissions of callers.
type gitAccess struct {
	auth         *auth.Authenticator
	catalog      *catalog.Catalog
	repositories *repository.Repositories
}

var (
	_ githttp.Authenticator = (*gitAccess)(nil)
	_ githttp.Projects      = (*gitAccess)(nil)
)

// Authenticate takes an access token or a job token as the password, with any username. A job token can only fetch.
func (g *gitAccess) Authenticate(ctx context.Context, _, password string) (githttp.Caller, error) {
	return g.known(g.auth.SignIn(ctx, password))
}

// Again authenticates the caller with the current state of the token and the user.
func (g *gitAccess) Again(ctx context.Context, c githttp.Caller) (githttp.Caller, error) {
	who, ok := c.Who.(auth.Caller)
	if !ok {
		return githttp.Caller{}, githttp.ErrUnauthenticated
	}
	return g.known(g.auth.Again(ctx, who))
}

// known converts a caller or an error for the Git server.
func (g *gitAccess) known(c auth.Caller, err error) (githttp.Caller, error) {
	switch {
	case errors.Is(err, auth.ErrInvalidToken):
		return githttp.Caller{}, githttp.ErrUnauthenticated
	case errors.Is(err, auth.ErrBlocked):
		return githttp.Caller{}, githttp.ErrBlocked
	case err != nil:
		return githttp.Caller{}, err
	}
	scopes := make([]string, len(c.Scopes))
	for i, s := range c.Scopes {
		scopes[i] = string(s)
	}
	return githttp.Caller{UserID: c.User.RESTID(), UID: c.User.UID, Key: c.Key(), Scopes: scopes, Who: c}, nil
}

// Find returns the current state of a project, as a caller sees it.
func (g *gitAccess) Find(ctx context.Context, fullPath string, caller githttp.Caller) (*githttp.Project, error) {
	p, err := g.catalog.ProjectByPath(ctx, fullPath)
	if errors.Is(err, catalog.ErrNotFound) || (err == nil && !p.DeletionTimestamp.IsZero()) {
		return nil, githttp.ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	scope, err := g.catalog.ProjectScope(ctx, p)
	if catalog.Misplaced(err) {
		return nil, githttp.ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	audit.From(ctx).About(p, scope.Path())
	who, _ := caller.Who.(auth.Caller) // the anonymous caller if it is not set
	access, err := g.auth.Access(ctx, who, scope)
	if err == nil && who.Job != nil {
		who, access, err = g.auth.AccessOfJob(ctx, who, scope)
	}
	if errors.Is(err, catalog.ErrNotFound) {
		return nil, githttp.ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	if !access.Sees() {
		return nil, githttp.ErrNotFound
	}
	found := &githttp.Project{
		Name:     client.ObjectKeyFromObject(p),
		CanFetch: access.Fetches(),
		Actor:    g.auth.Actor(who, access, scope),
		ReadOnly: readOnly(p),
		Rules: func(ctx context.Context, branches []string) ([]protection.Rule, error) {
			return g.rules(ctx, p, branches)
		},
	}
	found.Open = func(ctx context.Context) error {
		now, err := g.repositories.Await(ctx, p)
		if err != nil {
			return unusable(err)
		}
		repo, err := g.repositories.Content(ctx, now)
		if errors.Is(err, repository.ErrNoStorage) {
			err = fmt.Errorf("%w: %w", git.ErrNotFound, err)
		}
		if err != nil {
			return fmt.Errorf("finding the repository of %s: %w", fullPath, err)
		}
		found.Repository = repo
		return nil
	}
	return found, nil
}

// unusable converts an error of Await for the Git server.
func unusable(err error) error {
	switch {
	case errors.Is(err, catalog.ErrNotFound):
		return githttp.ErrNotFound
	case errors.Is(err, repository.ErrPending):
		return githttp.ErrPending
	default:
		return fmt.Errorf("waiting for the repository: %w", err)
	}
}

// rules reads the current protections, because they can have changed since the push began.
func (g *gitAccess) rules(ctx context.Context, p *v1alpha1.Project, branches []string) ([]protection.Rule, error) {
	p, err := g.catalog.Current(ctx, p)
	if err != nil {
		return nil, err
	}
	scope, err := g.catalog.ProjectScope(ctx, p)
	if err != nil {
		return nil, err
	}
	return g.auth.Rules(ctx, scope, branches)
}

func readOnly(p *v1alpha1.Project) string {
	switch {
	case p.Spec.Archived:
		return archived
	case p.Spec.ReadOnly:
		return githttp.ReadOnly
	default:
		return ""
	}
}
