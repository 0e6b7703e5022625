package launch

import (
	"cmp"
	"context"
	"errors"
	"io/fs"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/family"
	"github.com/forgeplane/forgeplane/apiserver/ref"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/ci/commit"
	"github.com/forgeplane/forgeplane/internal/ci/include"
	"github.com/forgeplane/forgeplane/internal/git/refs"
)

// Projects opens the projects that a CI configuration includes. It implements include.Projects.
type Projects struct {
	family.Kit
	// By is the caller who must be able to read the code of the projects.
	By auth.Caller
}

// Open implements include.Projects.
func (p Projects) Open(ctx context.Context, project, revision string) (include.Files, error) {
	scope, err := p.Guard.Project(ctx, project)
	if err == nil {
		var access auth.Access
		if access, err = p.Guard.Visible(ctx, p.By, scope); err == nil && !access.Fetches() {
			err = catalog.ErrNotFound
		}
	}
	if errors.Is(err, catalog.ErrNotFound) {
		return nil, fs.ErrNotExist
	} else if err != nil {
		return nil, err
	}
	repo, err := p.Repositories.Content(ctx, scope.Project)
	var id string
	if err == nil {
		id, err = refs.Commit(ctx, repo, cmp.Or(revision, "HEAD"))
	}
	if ref.Missing(err) {
		return nil, fs.ErrNotExist
	} else if err != nil {
		return nil, err
	}
	return commit.New(repo, scope.Path(), id, ""), nil
}
