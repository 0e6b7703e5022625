package project

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/frame"
	"github.com/forgeplane/forgeplane/internal/repository"
)

// planStorage records the shard of a new project together with its id, before anything is created there, so that a crash cannot leave one
// repository on two shards. It does nothing for a project that must wait for a shard.
func (c *Controller) planStorage(ctx context.Context, p *v1alpha1.Project) (bool, error) {
	if p.Status.Storage != "" || p.PlannedStorage() != "" {
		return false, nil
	}
	chosen, err := c.pick(ctx, p)
	if err != nil {
		return false, nil //nolint:nilerr // the step that chooses the shard says what is wrong
	}
	p.PlanStorage(chosen)
	return true, nil
}

// recallStorage puts the planned shard into force if the repository was begun there, for example before a crash.
func (c *Controller) recallStorage(ctx context.Context, p *v1alpha1.Project) error {
	planned := p.PlannedStorage()
	if planned == "" {
		return nil
	}
	switch begun, err := c.repositories.HasOwner(ctx, p, planned); {
	case errors.Is(err, catalog.ErrNotFound):
		return nil // nothing can be stored there
	case err != nil:
		return frame.Waiting(v1alpha1.ReasonStorageUnavailable, "storage %s, which may hold the repository, cannot be read: %w", planned, err)
	case begun:
		p.Status.Storage = planned
	}
	return nil
}

// chooseStorage chooses the shard. Unless it is the planned one, it records the choice before anything is created there.
func (c *Controller) chooseStorage(ctx context.Context, p *v1alpha1.Project) error {
	if p.Status.Storage != "" {
		return nil
	}
	planned := p.PlannedStorage()
	chosen, err := c.pick(ctx, p)
	if err != nil {
		return err
	}
	if err := c.checkRecord(ctx, p, chosen); err != nil {
		return err
	}
	before := p.DeepCopy()
	p.Status.Storage = chosen
	if chosen == planned {
		return nil
	}
	if err := c.writeStatus(ctx, before, p); err != nil {
		return fmt.Errorf("recording the storage: %w", err)
	}
	return nil
}

// checkRecord refuses a shard whose record says that another project left a repository at the project's path. That happens if the
// RetainedRepository was lost and not created again yet.
func (c *Controller) checkRecord(ctx context.Context, p *v1alpha1.Project, storage string) error {
	was, err := c.repositories.Recorded(ctx, storage, p)
	if err != nil || was == nil || was.Spec.Project.UID == string(p.UID) {
		return err
	}
	return frame.Waiting(v1alpha1.ReasonRepositoryRetained,
		"another project has left a repository with this id on storage %s: waiting for RetainedRepository %s to appear", storage, was.Name)
}

// writeStatus immediately writes the changes of the status of p since before. It does not change the rest of p.
func (c *Controller) writeStatus(ctx context.Context, before, p *v1alpha1.Project) error {
	written := p.DeepCopy()
	// The optimistic lock prevents writing to a later project of the same name.
	if err := c.frame.Client.Status().Patch(ctx, written, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return err
	}
	p.ResourceVersion = written.ResourceVersion
	// Controllers of objects that are created next must find this in the cache.
	if err := c.frame.Client.Get(ctx, client.ObjectKeyFromObject(p), written); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("waiting for the cache to show it: %w", err)
	}
	return nil
}

func (c *Controller) pick(ctx context.Context, p *v1alpha1.Project) (string, error) {
	if p.Spec.Storage != "" {
		s, err := catalog.Get[*v1alpha1.RepositoryStorage](ctx, c.frame.Catalog, "", p.Spec.Storage)
		if err != nil {
			return "", frame.Unresolved("storage", err)
		}
		admitted, err := repository.Admits(ctx, c.frame.Catalog, s, c.options.Namespace, p.Namespace)
		switch {
		case err != nil:
			return "", err
		case !admitted:
			return "", frame.Waiting(v1alpha1.ReasonReferenceNotAllowed, "storage: RepositoryStorage %s does not admit this namespace in its "+
				"allowedNamespaces: omit spec.storage, or ask an administrator to admit the namespace", s.Name)
		case !frame.InForce(s):
			return "", frame.Waiting(v1alpha1.ReasonReferenceNotReady, "storage: RepositoryStorage %s is not ready", s.Name)
		}
		return s.Name, nil
	}
	admitting, err := repository.Admitting(ctx, c.frame.Catalog, c.options.Namespace, p.Namespace)
	if err != nil {
		return "", err
	}
	ready := frame.AllInForce(admitting)
	if begins(p) {
		from, err := c.forked(ctx, p)
		if err != nil {
			return "", err
		}
		// Repositories on one shard share files.
		if i := slices.IndexFunc(ready, func(s *v1alpha1.RepositoryStorage) bool { return s.Name == from.Status.Storage }); i >= 0 &&
			!math.IsInf(repository.Rank(ready[i], p), -1) {
			return from.Status.Storage, nil
		}
	}
	chosen := repository.Choose(ready, p)
	if chosen == nil {
		return "", frame.Waiting(v1alpha1.ReasonStorageUnavailable, "no RepositoryStorage with a weight above 0 is ready and admits this namespace")
	}
	return chosen.Name, nil
}

// onStorage maps a shard to its projects, to the projects that still need a shard, and to the forks of its projects that have not begun. Imports
// and forks that failed without the shard do not wait for their next attempts.
func (c *Controller) onStorage(ctx context.Context, s client.Object) []reconcile.Request {
	on := c.storedOn(ctx, s.GetName())
	requests := append(requestsFor(on), c.onChoice(ctx, s)...)
	for _, p := range on {
		requests = append(requests, c.onOrigin(ctx, p)...)
	}
	if !frame.InForce(s.(*v1alpha1.RepositoryStorage)) {
		return requests
	}
	for _, r := range requests {
		if p, err := catalog.Get[*v1alpha1.Project](ctx, c.frame.Catalog, r.Namespace, r.Name); err == nil {
			c.importer.Hasten(p.UID)
			c.forks.Hasten(p.UID)
		}
	}
	return requests
}

// onChoice maps a shard whose declaration has changed to the projects that still need a shard: it may admit them now, or take its share.
func (c *Controller) onChoice(ctx context.Context, _ client.Object) []reconcile.Request {
	return requestsFor(c.storedOn(ctx, ""))
}

// storedOn returns the projects on a shard, or those that still need one if the name is empty.
func (c *Controller) storedOn(ctx context.Context, storage string) []*v1alpha1.Project {
	found, err := catalog.List[*v1alpha1.Project](ctx, c.frame.Catalog, catalog.IndexStorage, storage)
	if err != nil {
		log.FromContext(ctx).Error(err, "Failed to list the projects of a storage", "storage", storage)
	}
	return found
}

func requestsFor(projects []*v1alpha1.Project) []reconcile.Request {
	requests := make([]reconcile.Request, len(projects))
	for i, p := range projects {
		requests[i].NamespacedName = client.ObjectKeyFromObject(p)
	}
	return requests
}
