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

// gitAccess tells the Git server who the caller is and what the declared objects allow them to do.
type gitAccess struct {
	auth         *auth.Authenticator
	catalog      *catalog.Catalog
	repositories *repository.Repositories
}

var (
	_ githttp.Authenticator = (*gitAccess)(nil)
	_ githttp.Projects      = (*gitAccess)(nil)
)

// Authenticate takes an access token as the password, with any username.
func (g *gitAccess) Authenticate(ctx context.Context, _, password string) (githttp.Caller, error) {
	return g.known(g.auth.Token(ctx, password))
}

// Again looks at the token and the user as they are now.
func (g *gitAccess) Again(ctx context.Context, c githttp.Caller) (githttp.Caller, error) {
	who, ok := c.Who.(auth.Caller)
	if !ok {
		return githttp.Caller{}, githttp.ErrUnauthenticated
	}
	return g.known(g.auth.Again(ctx, who))
}

// known is a caller as the Git server knows them.
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
	return githttp.Caller{UserID: c.User.RESTID(), Key: c.Key(), Scopes: scopes, Who: c}, nil
}

// Find returns a project as a caller sees it now.
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
	if err != nil {
		return nil, err
	}
	if !access.Sees() {
		return nil, githttp.ErrNotFound
	}
	found := &githttp.Project{
		Name:     client.ObjectKeyFromObject(p),
		CanFetch: access.Fetches(),
		Actor:    g.auth.Actor(who, access),
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

// unusable is what the Git server makes of an error of Await.
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

// rules reads the protections as they are when the push is decided, not when it began.
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
