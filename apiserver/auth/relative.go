package auth

import (
	"context"
	"errors"

	"github.com/forgeplane/forgeplane/internal/catalog"
)

// Errors about another project of a network of forks.
var (
	// ErrUnrelated says that the project is not in the network of the request's project.
	ErrUnrelated = errors.New("the project is not in the same network of forks")
	// ErrUnreadable says that the caller sees the project, but cannot read its repository.
	ErrUnreadable = errors.New("the repository of the project cannot be read")
)

// Relative returns the project that an id or full path names, from which a request about another project also reads: it must be that project
// itself, or in the same network of forks. The error is catalog.ErrNotFound for a project that the caller does not see, ErrUnrelated or
// ErrUnreadable. The scope is set unless the project is not found.
func (g *Guard) Relative(ctx context.Context, s Project, id string) (none catalog.Scope, err error) {
	scope, err := g.Project(ctx, id)
	if err != nil {
		return none, err
	}
	if scope.Project.UID == s.Scope.Project.UID {
		return s.Scope, nil
	}
	access, err := g.Visible(ctx, s.Caller, scope)
	if err != nil {
		return none, err
	}
	related, err := g.catalog.Related(ctx, s.Scope.Project, scope.Project)
	switch {
	case err != nil:
		return none, err
	case !related:
		return scope, ErrUnrelated
	case !access.Fetches():
		return scope, ErrUnreadable
	default:
		return scope, nil
	}
}
