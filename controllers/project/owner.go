package project

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/frame"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/repository"
)

// recordDelay is the interval for checking whether the repository of a deleted project was recorded, if no event says so earlier.
const recordDelay = 10 * time.Second

// own records on the shard that the project has the repository, so that it can be retained even if somebody removes the finalizer.
func (c *Controller) own(ctx context.Context, p *v1alpha1.Project) error {
	return c.repositories.RecordOwner(ctx, p, func(ctx context.Context) (at repository.Place, err error) {
		if at.Namespace, err = c.namespaceUID(ctx, p.Namespace); err != nil {
			return at, err
		}
		at.Cluster, err = c.clusterUID(ctx)
		return at, err
	})
}

// clusterUID returns the identity of the cluster, which never changes. It reads it only once.
func (c *Controller) clusterUID(ctx context.Context) (types.UID, error) {
	if known := c.cluster.Load(); known != nil {
		return *known, nil
	}
	found, err := repository.Cluster(ctx, c.options.Live)
	if err == nil {
		c.cluster.Store(&found)
	}
	return found, err
}

// awaitRecord waits until the repository of an earlier project with the same name, whose finalizer somebody has removed, is recorded. Only
// then is it known whether this project takes it over.
func (c *Controller) awaitRecord(ctx context.Context, p *v1alpha1.Project) error {
	left, err := c.repositories.Retained(ctx, p)
	if err != nil || len(left) == 0 {
		return err
	}
	cluster, err := c.clusterUID(ctx)
	if err != nil {
		return err
	}
	for _, o := range left {
		if recorded, err := c.recorded(ctx, o, cluster); err != nil {
			return err
		} else if !recorded {
			return frame.WaitingFor(recordDelay, v1alpha1.ReasonRepositoryRetained,
				"a deleted project of this name has left a repository on storage %s: waiting for its RetainedRepository to appear", o.Retained.Spec.Storage)
		}
	}
	return nil
}

// recorded reports whether a repository has its RetainedRepository or needs none.
func (c *Controller) recorded(ctx context.Context, o *repository.Owner, cluster types.UID) (bool, error) {
	if o.Cluster != cluster {
		return true, nil
	}
	if _, err := catalog.Get[*v1alpha1.RetainedRepository](ctx, c.frame.Catalog, "", o.Retained.Name); !errors.Is(err, catalog.ErrNotFound) {
		return err == nil, err
	}
	repo, err := c.repositories.OfRetained(ctx, o.Retained)
	if err != nil {
		return false, err
	}
	by, err := repo.Retired()
	return errors.Is(repo.Check(), git.ErrNotFound) || by, err // a move removes what it has left
}
