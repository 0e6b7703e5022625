package ref

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/change"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/refs"
)

// SetHead points HEAD at the declared default branch of a project, which the controller would do a little later. If the repository does not
// exist or accepts no changes at the moment, it leaves this to the controller.
func (u *Updater) SetHead(ctx context.Context, p *v1alpha1.Project) error {
	repo, err := u.repositories.Of(ctx, p)
	if err == nil {
		err = repo.Check()
	}
	if Missing(err) || git.OutOfReach(err) || errors.Is(err, catalog.ErrNotFound) {
		return nil
	} else if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	ctx, end, err := repo.BeginWrite(ctx)
	if errors.Is(err, git.ErrClosed) {
		return nil // the controller comes when it is open again
	} else if err != nil {
		return err
	}
	defer end()
	if err := refs.SetHead(ctx, repo, p.Spec.DefaultBranch); err != nil {
		return fmt.Errorf("setting the default branch: %w", err)
	}
	u.written(change.Event{Project: client.ObjectKeyFromObject(p)})
	return nil
}

// Empty reports whether a project has no branch at the moment.
func (u *Updater) Empty(ctx context.Context, p *v1alpha1.Project) (bool, error) {
	return u.repositories.Empty(ctx, p)
}

// Commits returns the number of commits of a project's default branch.
func (u *Updater) Commits(ctx context.Context, p *v1alpha1.Project) (int, error) {
	return u.repositories.Commits(ctx, p)
}
