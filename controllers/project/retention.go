package project

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/frame"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/repository"
)

// retain leaves the repository of a project that is being deleted, and a record of whose it was. One that nothing was ever written to is
// removed, unless others know it by its id. repo is nil where the shard is not declared any more.
func (c *Controller) retain(ctx context.Context, p *v1alpha1.Project, repo *git.Repository) error {
	if repo == nil {
		if p.Status.RefsChecksum == "" && p.Status.AdoptedRepository == "" {
			return nil
		}
		return c.record(ctx, p)
	}
	switch err := repo.Check(); {
	case err == nil:
		if gone, err := c.removeUnused(ctx, p, repo); gone || err != nil {
			return err
		}
	case errors.Is(err, git.ErrNotFound):
		// Another volume may be mounted than the one that the repository is on.
		if !repository.Filled(p) {
			return repo.Remove() // what an import has left of its making
		}
	case !errors.Is(err, git.ErrStorageMissing) && !errors.Is(err, git.ErrNotRepository):
		return err
	}
	repo.Evict()
	return c.record(ctx, p)
}

// removeUnused removes a repository with nothing in it, of a project that nobody lets in by its id. It reports whether it is gone.
func (c *Controller) removeUnused(ctx context.Context, p *v1alpha1.Project, repo *git.Repository) (gone bool, err error) {
	scopes, err := c.catalog.JobTokenScopesNaming(ctx, p.Spec.ID, string(p.UID))
	if err != nil || len(scopes) > 0 {
		return false, err
	}
	if gone, err = repo.RemoveUnused(); err != nil {
		return false, fmt.Errorf("removing the empty repository: %w", err)
	}
	return gone, nil
}

// record makes the RetainedRepository of a project that is being deleted.
func (c *Controller) record(ctx context.Context, p *v1alpha1.Project) error {
	namespace, err := c.namespaceUID(ctx, p.Namespace)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	r := repository.NewRetained(p, namespace, c.lastPath(ctx, p), c.options.Clock.Now())
	err = c.client.Create(ctx, r)
	if !apierrors.IsAlreadyExists(err) {
		if err != nil {
			return fmt.Errorf("recording the retained repository: %w", err)
		}
		c.tell(p, r, "retain", "create", "deletionPolicy: "+string(p.Spec.DeletionPolicy))
		return nil
	}
	there := &v1alpha1.RetainedRepository{}
	if err := c.options.Live.Get(ctx, client.ObjectKeyFromObject(r), there); err != nil {
		return fmt.Errorf("reading RetainedRepository %s: %w", r.Name, err)
	}
	if there.Spec.Project.UID != string(p.UID) || !there.DeletionTimestamp.IsZero() {
		return frame.WaitingFor(leftoverDelay, v1alpha1.ReasonDeleting, "RetainedRepository %s is of an earlier project and has to go first", r.Name)
	}
	return nil
}

// lastPath is the full path that a project held, as far as that can still be told.
func (c *Controller) lastPath(ctx context.Context, p *v1alpha1.Project) string {
	if p.Status.FullPath != "" {
		return p.Status.FullPath
	}
	chain, err := c.catalog.GroupsOf(ctx, p)
	if err != nil {
		return ""
	}
	return catalog.FullPath(chain, p.Spec.Path)
}
