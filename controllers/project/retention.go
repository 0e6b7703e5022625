package project

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/frame"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/quota"
	"github.com/forgeplane/forgeplane/internal/repository"
	"github.com/forgeplane/forgeplane/internal/retained"
)

// retain leaves the repository of a project that is being deleted, with a record of its owner. repo is nil if the shard is no longer
// declared.
func (c *Controller) retain(ctx context.Context, p *v1alpha1.Project, repo *repository.Handle) error {
	if repo == nil {
		if p.Status.RefsChecksum == "" && p.Status.AdoptedRepository == "" {
			return nil
		}
		return c.record(ctx, p, nil)
	}
	switch err := repo.Check(); {
	case err == nil:
		// Writes that begin later see a project that is being deleted, and are refused. Running writes belong to the retained repository.
		if err := repo.AwaitWrites(ctx); err != nil {
			return fmt.Errorf("retaining the repository: %w", err)
		}
		repo.Evict()
		return c.record(ctx, p, repo)
	case errors.Is(err, git.ErrNotFound) && !repository.Filled(p):
		return repo.Remove(ctx) // leftovers of an unfinished import
	case git.OutOfReach(err):
		// A volume other than the repository's may be mounted.
		repo.Evict()
		return c.record(ctx, p, nil)
	default:
		return err
	}
}

// record creates the RetainedRepository of a project that is being deleted. If there is no room for it, or if the namespace is deleted too,
// so that no declaration can find it again, a repository to which nothing was ever written is removed instead. repo is nil if that cannot
// be determined.
func (c *Controller) record(ctx context.Context, p *v1alpha1.Project, repo *repository.Handle) error {
	namespace, err := c.namespace(ctx, p.Namespace)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	leaves := err != nil || !namespace.DeletionTimestamp.IsZero()
	if repo != nil {
		// There may have been pushes since it was observed.
		if p.Status.SizeBytes, err = repo.Size(ctx); err != nil {
			return fmt.Errorf("measuring the repository: %w", err)
		}
	}
	full, err := c.full(ctx, p, namespace)
	if err != nil {
		return err
	}
	if repo != nil && (full != nil || leaves) {
		if gone, err := repo.RemoveUnused(ctx); err != nil {
			return fmt.Errorf("removing the empty repository: %w", err)
		} else if gone {
			return nil
		}
	}
	// The deletion of a namespace is never delayed.
	if full != nil && !leaves {
		return full
	}
	return c.create(ctx, repository.NewRetained(p, namespace.UID, c.lastPath(ctx, p), c.options.Clock.Now()), p)
}

// deletionPolicy says why the repository of a deleted project is retained or removed.
func deletionPolicy(p *v1alpha1.Project) string {
	return "deletionPolicy: " + string(p.Spec.DeletionPolicy)
}

func (c *Controller) create(ctx context.Context, r *v1alpha1.RetainedRepository, p *v1alpha1.Project) error {
	err := c.frame.Client.Create(audit.WithReason(ctx, audit.Event{Action: "retain", Reason: deletionPolicy(p)}), r)
	if err == nil {
		return nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("recording the retained repository: %w", err)
	}
	there := &v1alpha1.RetainedRepository{}
	if err := c.options.Live.Get(ctx, client.ObjectKeyFromObject(r), there); err != nil {
		return fmt.Errorf("reading RetainedRepository %s: %w", r.Name, err)
	}
	if there.Spec.Project.UID != string(p.UID) || !there.DeletionTimestamp.IsZero() {
		return frame.Progressing(leftoverDelay, v1alpha1.ReasonDeleting, "RetainedRepository %s of an earlier project must be deleted first", r.Name)
	}
	return nil
}

// full returns why a namespace cannot leave another repository, if it has reached its limit: otherwise repositories would be lost, or fill
// the shards. err means that this could not be determined.
func (c *Controller) full(ctx context.Context, p *v1alpha1.Project, namespace corev1.Namespace) (full, err error) {
	limits := c.options.Retention
	if limits == (quota.Retention{}) || p.Spec.DeletionPolicy != v1alpha1.DeletionPolicyRetain {
		return nil, nil
	}
	left, err := retained.From(ctx, c.frame.Catalog, p.Namespace)
	if err != nil {
		return nil, err
	}
	number, bytes := 0, int64(0)
	for _, r := range left {
		switch was := r.Spec.Project; {
		case was.UID == string(p.UID):
			return nil, nil // it was recorded before
		case was.NamespaceUID == string(namespace.UID):
			number++
			bytes += r.Spec.SizeBytes
		}
	}
	if !limits.Exceeds(number+1, bytes+p.Status.SizeBytes) {
		return nil, nil
	}
	return frame.Waiting(v1alpha1.ReasonDeleting, "there is no room for another retained repository of namespace %s (--quota-retained, --quota-retained-size): "+
		"it has %d, with %s in total, and this one has %s. Set deletionPolicy: Delete to remove the repository, or ask an administrator to delete "+
		"RetainedRepositories that are not needed", p.Namespace, number, git.FormatBytes(bytes), git.FormatBytes(p.Status.SizeBytes)), nil
}

// onNamespace maps a namespace that is being deleted to its projects, whose deletion is no longer delayed, and any other namespace to its
// projects that a shard may admit by the labels of the namespace.
func (c *Controller) onNamespace(ctx context.Context, namespace client.Object) []reconcile.Request {
	if namespace.GetDeletionTimestamp().IsZero() {
		return requestsFor(slices.DeleteFunc(slices.Clone(c.storedOn(ctx, "")), func(p *v1alpha1.Project) bool {
			return p.Namespace != namespace.GetName() || p.Spec.Storage == ""
		}))
	}
	return c.leaving(ctx, namespace.GetName())
}

// leaving returns the projects of a namespace that are being deleted.
func (c *Controller) leaving(ctx context.Context, namespace string) []reconcile.Request {
	found, err := retained.Leaving(ctx, c.frame.Catalog, namespace)
	if err != nil {
		log.FromContext(ctx).Error(err, "Failed to list the projects that are being deleted", "namespace", namespace)
	}
	return requestsFor(found)
}

// lastPath returns the full path that a project held, as far as it is still known.
func (c *Controller) lastPath(ctx context.Context, p *v1alpha1.Project) string {
	if p.Status.FullPath != "" {
		return p.Status.FullPath
	}
	chain, err := c.frame.Catalog.GroupsOf(ctx, p)
	if err != nil {
		return ""
	}
	return catalog.FullPath(chain, p.Spec.Path)
}
