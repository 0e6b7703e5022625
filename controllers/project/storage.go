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

// planStorage writes down the shard of a new project with its id, before anything is made there, so that a crash cannot leave one
// repository on two shards. It leaves a project alone that has to wait for a shard.
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

// recallStorage puts the planned shard into force if the repository was begun there, as before a crash.
func (c *Controller) recallStorage(ctx context.Context, p *v1alpha1.Project) error {
	planned := p.PlannedStorage()
	if planned == "" {
		return nil
	}
	switch begun, err := c.repositories.Owns(ctx, p, planned); {
	case errors.Is(err, catalog.ErrNotFound):
		return nil // nothing can have been kept there
	case err != nil:
		return frame.Waiting(v1alpha1.ReasonStorageUnavailable, "storage %s, which may hold the repository, cannot be read: %w", planned, err)
	case begun:
		p.Status.Storage = planned
	}
	return nil
}

// chooseStorage picks the shard, and writes the choice down before anything is made there unless it is the planned one.
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

// checkRecord refuses a shard that says of a repository at the project's place that another project has left it. That is so when the
// RetainedRepository was lost, and until it has been made anew.
func (c *Controller) checkRecord(ctx context.Context, p *v1alpha1.Project, storage string) error {
	was, err := c.repositories.Recorded(ctx, storage, p)
	if err != nil || was == nil || was.Spec.Project.UID == string(p.UID) {
		return err
	}
	return frame.Waiting(v1alpha1.ReasonRepositoryRetained,
		"another project has left a repository with this id on storage %s: waiting for RetainedRepository %s to appear", storage, was.Name)
}

// writeStatus writes at once what has changed in the status of p since before. The rest of p stays what it is.
func (c *Controller) writeStatus(ctx context.Context, before, p *v1alpha1.Project) error {
	written := p.DeepCopy()
	// The lock keeps it off the next project of the same name.
	if err := c.frame.Client.Status().Patch(ctx, written, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return err
	}
	p.ResourceVersion = written.ResourceVersion
	// Who looks at what is made next finds in the cache what it is made for.
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

// rank is weighted rendezvous hashing: over many projects each shard comes first in proportion to its weight.
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

// mix spreads what FNV leaves in the low bits over the high ones (the finalizer of MurmurHash3).
func mix(x uint64) uint64 {
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

// onStorage maps a shard to the projects on it, and to those that still need one.
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
