package project

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/frame"
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
	switch begun, err := c.repositories.Owns(ctx, p, planned); {
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
		if !frame.Ready(s) {
			return "", frame.Waiting(v1alpha1.ReasonReferenceNotReady, "storage: RepositoryStorage %s is not ready", s.Name)
		}
		return s.Name, nil
	}
	all, err := catalog.All[*v1alpha1.RepositoryStorage](ctx, c.frame.Catalog)
	if err != nil {
		return "", err
	}
	chosen, best := "", math.Inf(-1)
	for _, s := range all {
		if frame.Ready(s) {
			if score := rank(s, p); score > best {
				chosen, best = s.Name, score
			}
		}
	}
	if chosen == "" {
		return "", frame.Waiting(v1alpha1.ReasonStorageUnavailable, "no RepositoryStorage with a weight above 0 is ready")
	}
	return chosen, nil
}

// rank implements weighted rendezvous hashing: over many projects, each shard comes first in proportion to its weight.
func rank(s *v1alpha1.RepositoryStorage, p *v1alpha1.Project) float64 {
	weight := 100.0
	if s.Spec.Weight != nil {
		weight = float64(*s.Spec.Weight)
	}
	if weight == 0 {
		return math.Inf(-1)
	}
	h := fnv.New64a()
	fmt.Fprintf(h, "%s\x00%s", s.UID, p.UID)
	const bits = 53
	unit := (float64(mix(h.Sum64())>>(64-bits)) + 0.5) / (1 << bits)
	return weight / -math.Log(unit)
}

// mix spreads the entropy in FNV's low bits over the high bits (the finalizer of MurmurHash3).
func mix(x uint64) uint64 {
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

// onStorage maps a shard to its projects, and to the projects that still need a shard.
func (c *Controller) onStorage(ctx context.Context, s client.Object) []reconcile.Request {
	var requests []reconcile.Request
	for _, storage := range []string{s.GetName(), ""} {
		found, err := catalog.List[*v1alpha1.Project](ctx, c.frame.Catalog, catalog.IndexStorage, storage)
		if err != nil {
			log.FromContext(ctx).Error(err, "Listing the projects of a storage", "storage", storage)
			continue
		}
		for _, p := range found {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(p)})
		}
	}
	return requests
}
