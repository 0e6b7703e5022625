package registryhttp

import (
	"context"
	"errors"
	"fmt"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/registry"
	"github.com/forgeplane/forgeplane/internal/registry/token"
)

// rights decide what callers can do with repositories: when a token is issued, and each time it is used.
type rights struct {
	authenticator *auth.Authenticator
	catalog       *catalog.Catalog
	names         *registry.Names
}

// repository is the repository with a name, and the permissions of a caller.
type repository struct {
	registry.Name
	scope catalog.Scope
	may   map[string]bool
}

// of returns the repository with a name as a caller sees it now. Without a project behind the name, the error is registry.ErrNoProject.
func (r rights) of(ctx context.Context, caller auth.Caller, name string) (repository, error) {
	means, err := r.names.Resolve(ctx, name)
	if err != nil {
		return repository{}, err
	}
	at := repository{Name: means}
	at.scope, err = r.catalog.ProjectScope(ctx, means.Project)
	if catalog.Misplaced(err) {
		return at, nil
	}
	if err != nil {
		return at, fmt.Errorf("finding the project of the repository %s: %w", name, err)
	}
	own := caller.Job == nil || caller.Job.In.UID == means.Project.UID
	var access auth.Access
	if caller.Job == nil {
		access, err = r.authenticator.Access(ctx, caller, at.scope)
	} else {
		caller, access, err = r.authenticator.AccessOfJob(ctx, caller, at.scope)
	}
	if errors.Is(err, catalog.ErrNotFound) {
		return at, nil
	}
	if err != nil {
		return at, fmt.Errorf("finding the role of the caller: %w", err)
	}
	pull, push, remove := access.Images()
	push, remove = push && own, remove && own // jobs change only the images of their own project (API behaviour, section 2.11)
	if !caller.Anonymous() && !caller.HasScope(v1alpha1.ScopeAPI, v1alpha1.ScopeWriteRegistry) {
		pull = pull && caller.HasScope(v1alpha1.ScopeReadRegistry)
		push, remove = false, false
	}
	// Callers who may push can pull as well, because a push first asks which layers exist.
	at.may = map[string]bool{token.Pull: pull, token.Push: push, token.Delete: remove, token.All: remove}
	return at, nil
}
