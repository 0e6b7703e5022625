package project

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/frame"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/quota"
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

// admit holds up a project whose namespace has left as much as it may: what is beyond that would otherwise be lost, or fill the shards.
// A namespace that is being deleted itself is not held up.
func (c *Controller) admit(ctx context.Context, p *v1alpha1.Project, namespace corev1.Namespace) error {
	limits := c.options.Retention
	if limits == (quota.Retention{}) || p.Spec.DeletionPolicy != v1alpha1.DeletionPolicyRetain || !namespace.DeletionTimestamp.IsZero() {
		return nil
	}
	left, err := c.catalog.RetainedFrom(ctx, p.Namespace)
	if err != nil {
		return err
	}
	number, bytes := 0, int64(0)
	for _, r := range left {
		switch was := r.Spec.Project; {
		case was.UID == string(p.UID):
			return nil // it was recorded before
		case was.NamespaceUID == string(namespace.UID):
			number++
			bytes += r.Spec.SizeBytes
		}
	}
	if !limits.Exceeds(number+1, bytes+p.Status.SizeBytes) {
		return nil
	}
	return frame.Waiting(v1alpha1.ReasonDeleting, "there is no room for another retained repository of namespace %s (--quota-retained, --quota-retained-size): "+
		"it has %d, of together %s, and this one has %s. Set deletionPolicy: Delete to remove the repository, or have an administrator delete "+
		"RetainedRepositories that are not needed", p.Namespace, number, git.FormatBytes(bytes), git.FormatBytes(p.Status.SizeBytes))
}

// onNamespace maps a namespace that is being deleted to the projects in it, which nothing holds up any more.
func (c *Controller) onNamespace(ctx context.Context, namespace client.Object) []reconcile.Request {
	if namespace.GetDeletionTimestamp().IsZero() {
		return nil
	}
	return c.leaving(ctx, namespace.GetName())
}

// leaving are the projects of a namespace that are being deleted.
func (c *Controller) leaving(ctx context.Context, namespace string) []reconcile.Request {
	found, err := c.catalog.ProjectsLeaving(ctx, namespace)
	if err != nil {
		log.FromContext(ctx).Error(err, "Listing the projects that are being deleted", "namespace", namespace)
	}
	requests := make([]reconcile.Request, 0, len(found))
	for _, p := range found {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(p)})
	}
	return requests
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
	namespace, err := c.namespace(ctx, p.Namespace)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	if err := c.admit(ctx, p, namespace); err != nil {
		return err
	}
	r := repository.NewRetained(p, namespace.UID, c.lastPath(ctx, p), c.options.Clock.Now())
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
