// Package retainedrepository reconciles the repositories that deleted projects have left: it records on their shards to whom they belonged,
// and purges them when an administrator requests it.
package retainedrepository

import (
	"context"
	"errors"
	"fmt"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/frame"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/repository"
	"github.com/forgeplane/forgeplane/internal/retained"
)

// takeOverInterval is the interval for checking whether a project has taken the repository.
const takeOverInterval = time.Second

// Controller reconciles retained repositories.
type Controller struct {
	repositories *repository.Audited
	frame        *frame.Frame[*v1alpha1.RetainedRepository]
}

// New returns the controller.
func New(b frame.Base, repos *repository.Audited) *Controller {
	c := &Controller{repositories: repos}
	c.frame = frame.New(b, frame.WithFinalizer(repository.RetainedFinalizer, c.remove))
	return c
}

// +kubebuilder:rbac:groups=forgeplane.dev,resources=retainedrepositories,verbs=patch
// +kubebuilder:rbac:groups=forgeplane.dev,resources=retainedrepositories/status,verbs=patch

// SetupWithManager starts the controller with mgr.
func (c *Controller) SetupWithManager(mgr ctrl.Manager, o controller.Options) error {
	return c.frame.Watch(mgr, o).
		OnReady(&v1alpha1.RepositoryStorage{}, c.onStorage).
		Complete(reconcile.AsReconciler(c.frame.Client, c))
}

// Reconcile reconciles one retained repository.
func (c *Controller) Reconcile(ctx context.Context, r *v1alpha1.RetainedRepository) (reconcile.Result, error) {
	return c.frame.Run(ctx, r, c.name, c.check, c.adoption, c.record)
}

func (c *Controller) name(_ context.Context, r *v1alpha1.RetainedRepository) error {
	r.Status.RepositoryPath = repository.PathOfRetained(r)
	return nil
}

// check reports that there is nothing to take over or purge.
func (c *Controller) check(ctx context.Context, r *v1alpha1.RetainedRepository) error {
	if p, err := c.user(ctx, r); err != nil {
		return err
	} else if p != nil {
		return frame.Stalled(v1alpha1.ReasonAlreadyExists, "the repository belongs to Project %s/%s: deleting this object does not remove it", p.Namespace, p.Name)
	}
	repo, err := c.repositories.OfRetained(ctx, r)
	if err != nil {
		return frame.Unresolved("storage", err)
	}
	switch err := repo.Check(); {
	case errors.Is(err, git.ErrStorageMissing):
		return frame.Waiting(v1alpha1.ReasonStorageUnavailable, "storage %s is not mounted", r.Spec.Storage)
	case errors.Is(err, git.ErrNotFound) && r.Status.AdoptedBy == nil:
		return frame.Failed(v1alpha1.ReasonStorageUnavailable,
			"the repository is no longer on storage %s: restore it to %s, or delete this object", r.Spec.Storage, r.Status.RepositoryPath)
	case err != nil && !errors.Is(err, git.ErrNotFound) && !errors.Is(err, git.ErrNotRepository):
		return err
	}
	return nil
}

// adoption waits for the project that takes the repository, and forgets a project that is gone.
func (c *Controller) adoption(ctx context.Context, r *v1alpha1.RetainedRepository) error {
	p, err := c.adopter(ctx, r)
	switch {
	case err != nil:
		return err
	case p == nil:
		r.Status.AdoptedBy = nil
		return nil
	default:
		return frame.Progressing(0, v1alpha1.ReasonProgressing, "Project %s/%s is taking the repository over", p.Namespace, p.Name)
	}
}

func (c *Controller) record(ctx context.Context, r *v1alpha1.RetainedRepository) error {
	return c.repositories.Record(ctx, r)
}

// remove purges the repository, unless a project has it.
func (c *Controller) remove(ctx context.Context, r *v1alpha1.RetainedRepository) error {
	repo, err := c.repositories.OfRetained(ctx, r)
	if errors.Is(err, catalog.ErrNotFound) {
		return nil // its location is no longer known
	}
	if err != nil {
		return err
	}
	there := repo.Check()
	if errors.Is(there, git.ErrStorageMissing) {
		return frame.Waiting(v1alpha1.ReasonStorageUnavailable,
			"storage %s is not mounted, so the repository cannot be removed: mount it, or delete the RepositoryStorage and remove its finalizer", r.Spec.Storage)
	}
	switch user, err := c.user(ctx, r); {
	case err != nil:
		return err
	case user != nil:
		return c.repositories.Forget(ctx, r)
	case r.Status.AdoptedBy != nil:
		return c.handOver(ctx, r, there == nil)
	}
	if err := repo.Remove(purge(ctx, r)); err != nil {
		return fmt.Errorf("removing the repository: %w", err)
	}
	return c.repositories.Forget(ctx, r)
}

// purge returns a context for removing a repository that adds the reason to the audit event.
func purge(ctx context.Context, r *v1alpha1.RetainedRepository) context.Context {
	object := audit.ObjectOf(r, "")
	object.Verb = "delete"
	return audit.WithReason(ctx, audit.Event{
		Action: "purge", Reason: "RetainedRepository " + r.Name + " was deleted", Objects: []audit.Object{object},
	})
}

// handOver removes the record of a repository that a project has taken. If the project is gone, the shard's record stays, so that the
// RetainedRepository can be created again from it.
func (c *Controller) handOver(ctx context.Context, r *v1alpha1.RetainedRepository, there bool) error {
	p, err := c.adopter(ctx, r)
	switch {
	case err != nil:
		return err
	case p == nil && there:
		return nil
	case p != nil && there && repository.Path(p) != repository.PathOfRetained(r):
		return frame.Progressing(takeOverInterval, v1alpha1.ReasonDeleting, "Project %s/%s is taking the repository over", p.Namespace, p.Name)
	}
	return c.repositories.Forget(ctx, r)
}

// adopter returns the project that takes over the repository, or nil.
func (c *Controller) adopter(ctx context.Context, r *v1alpha1.RetainedRepository) (*v1alpha1.Project, error) {
	by := r.Status.AdoptedBy
	if by == nil {
		return nil, nil
	}
	p, err := c.project(ctx, by.Namespace, by.Name)
	if err != nil || p == nil || string(p.UID) != by.UID {
		return nil, err
	}
	return p, nil
}

// user returns the project that already uses the repository as its own, or nil. The project must have the same name and id, and must not be
// the one that is leaving the repository.
func (c *Controller) user(ctx context.Context, r *v1alpha1.RetainedRepository) (*v1alpha1.Project, error) {
	p, err := c.project(ctx, r.Spec.Project.Namespace, r.Spec.Project.Name)
	if err != nil || p == nil {
		return nil, err
	}
	leaving := string(p.UID) == r.Spec.Project.UID && !p.DeletionTimestamp.IsZero()
	if leaving || p.Status.Storage != r.Spec.Storage || p.Status.RefsChecksum == "" || repository.Path(p) != repository.PathOfRetained(r) {
		return nil, nil
	}
	return p, nil
}

func (c *Controller) project(ctx context.Context, namespace, name string) (*v1alpha1.Project, error) {
	p, err := c.frame.Catalog.Project(ctx, namespace, v1alpha1.Reference{Name: name})
	if errors.Is(err, catalog.ErrNotFound) {
		return nil, nil
	}
	return p, err
}

// onStorage maps a shard to the retained repositories on it.
func (c *Controller) onStorage(ctx context.Context, s client.Object) []reconcile.Request {
	all, err := retained.OnStorage(ctx, c.frame.Catalog, s.GetName())
	if err != nil {
		log.FromContext(ctx).Error(err, "Failed to list the retained repositories of a storage", "storage", s.GetName())
	}
	requests := make([]reconcile.Request, 0, len(all))
	for _, r := range all {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(r)})
	}
	return requests
}
