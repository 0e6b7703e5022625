// Package project reconciles projects: it creates, imports or forks their repositories, and sets HEAD as declared.
package project

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus" // the library behind controller-runtime's own metrics
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/accesslevel"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/credential"
	"github.com/forgeplane/forgeplane/internal/egress"
	"github.com/forgeplane/forgeplane/internal/frame"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/object"
	"github.com/forgeplane/forgeplane/internal/quota"
	"github.com/forgeplane/forgeplane/internal/repository"
)

// Finalizer keeps a project until its repository is removed or retained.
const Finalizer = "forgeplane.dev/repository"

// Options configure the controller.
type Options struct {
	// Secrets reads Secrets past the cache, which does not contain those of tenants.
	Secrets client.Reader
	// Live reads past the cache what must be current.
	Live client.Reader
	// Namespace is the platform's namespace, whose projects can be on any shard.
	Namespace string
	// Clock measures the delays between attempts of imports.
	Clock clock.PassiveClock
	// AllowFileImport allows importURL to name directories of this machine, for development only.
	AllowFileImport bool
	// Egress is the proxy to the hosts in importURL.
	Egress *egress.Proxy
	// Retention limits what deleted projects may leave.
	Retention quota.Retention
	// Activity stores the activity in projects; it may be nil.
	Activity Activity
	// Metrics is the registry for the slots of imports; it may be nil.
	Metrics prometheus.Registerer
	// Changed returns the projects whose repositories are gone or back.
	Changed <-chan event.TypedGenericEvent[*v1alpha1.Project]
}

// Activity stores the activity in projects, such as issues and images. activity.Stores implements it.
type Activity interface {
	// Adopt moves the activity of a deleted project to the project that adopts its repository. It can be repeated.
	Adopt(ctx context.Context, former types.UID, projectID int64, project types.UID) error
}

// Controller reconciles projects.
type Controller struct {
	repositories *repository.Audited
	ids          Allocator
	// importer makes repositories by import, and forks makes those that begin as another project.
	importer, forks *importer
	options         Options
	frame           *frame.Frame[*v1alpha1.Project]
	// tidied has the UIDs of projects whose repository this process has tidied.
	tidied sync.Map
	// blocked has the projects that wait for the name of a ProtectedBranch, by its namespace and name.
	blocked sync.Map
	// cluster is the identity of the cluster; nil until it is first needed.
	cluster atomic.Pointer[types.UID]
}

// Allocator hands out the ids of projects, of the protections of their default branches, and of the access levels of these.
type Allocator interface {
	frame.Allocator
	accesslevel.Allocator
}

// New returns the controller.
func New(b frame.Base, ids Allocator, repos *repository.Audited, o Options) *Controller {
	c := &Controller{repositories: repos, ids: ids, options: o}
	wake := make(chan event.TypedGenericEvent[*v1alpha1.Project])
	c.importer, c.forks = newImporter("imports", o.Clock, repos.Tenant, wake), newImporter("forks", o.Clock, repos.Tenant, wake)
	c.frame = frame.New(b, frame.WithIDs[*v1alpha1.Project](identifier{ids, c}), frame.WithAnnotations(c.planStorage),
		frame.WithClaims(catalog.ProjectClaims), frame.WithFinalizer(Finalizer, c.remove), frame.WithTenant(repos.Tenant))
	return c
}

// +kubebuilder:rbac:groups=forgeplane.dev,resources=projects,verbs=patch;release
// +kubebuilder:rbac:groups=forgeplane.dev,resources=projects/status,verbs=patch
// +kubebuilder:rbac:groups=forgeplane.dev,resources=protectedbranches,verbs=create;delete
// +kubebuilder:rbac:groups=forgeplane.dev,resources=retainedrepositories,verbs=get;create;delete
// +kubebuilder:rbac:groups=forgeplane.dev,resources=retainedrepositories/status,verbs=patch
// +kubebuilder:rbac:groups=forgeplane.dev,resources=jobtokenscopes,verbs=patch
// +kubebuilder:rbac:groups=forgeplane.dev,resources=jobtokenscopes/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get
// +kubebuilder:rbac:groups="",resources=secrets,verbs=list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create

// SetupWithManager starts the controller with mgr.
func (c *Controller) SetupWithManager(mgr ctrl.Manager, o controller.Options) error {
	for _, i := range []*importer{c.importer, c.forks} {
		if err := mgr.Add(i); err != nil {
			return fmt.Errorf("adding an importer: %w", err)
		}
		if err := i.Slots().Register(c.options.Metrics); err != nil {
			return err
		}
	}
	all := &v1alpha1.ProjectList{}
	w := c.frame.Watch(mgr, o).
		OnReferred(&v1alpha1.Group{}, c.frame.Catalog.Referrers(all, catalog.IndexGroup)).
		OnReferred(&v1alpha1.Group{}, c.frame.Catalog.Referrers(all, catalog.IndexInvited)).
		// The visibility of a group affects more than its children.
		OnDeclared(&v1alpha1.Group{}, c.frame.Catalog.Peers(all, catalog.IndexGroup, c.frame.Catalog.KeysBelow)).
		OnReleased(&v1alpha1.Group{}, c.frame.Catalog.Peers(all, catalog.IndexPathClaim, c.frame.Catalog.ClaimKeys)).
		OnReleased(&v1alpha1.Project{}, c.frame.Catalog.Peers(all, catalog.IndexPathClaim, c.frame.Catalog.ClaimKeys)).
		OnClaimReleased(&v1alpha1.Group{}, c.frame.Catalog.Waiting(&v1alpha1.Project{})).
		OnPart(&v1alpha1.Project{}, unfinished, c.onOrigin).
		OnReady(&v1alpha1.RepositoryStorage{}, c.onStorage).
		OnDeclared(&v1alpha1.RepositoryStorage{}, c.onChoice).
		OnReferred(&v1alpha1.RetainedRepository{}, c.onRetained).
		OnPart(&v1alpha1.StorageMove{}, standing, movedBy).
		OnReferred(&corev1.Namespace{}, c.onNamespace).
		OnReferred(&corev1.Secret{}, c.frame.Catalog.Peers(all, credential.IndexSecret, credential.Keys)).
		OnDeclared(&v1alpha1.ProtectedBranch{}, c.onProtection)
	return frame.OnEnded(frame.OnEnded(w, c.importer.wake), c.options.Changed).Complete(reconcile.AsReconciler(c.frame.Client, c))
}

// Reconcile reconciles one project.
func (c *Controller) Reconcile(ctx context.Context, p *v1alpha1.Project) (reconcile.Result, error) {
	return c.frame.Run(ctx, p, frame.RecordShares(c.frame), c.place, c.recordOrigin, c.recallStorage, c.adopt,
		c.chooseStorage, c.provide, c.observe, c.setHead, c.protectDefault, frame.ResolveShares(c.frame), c.checkBranch)
}

// place puts the full path into force, unless it is not available.
func (c *Controller) place(ctx context.Context, p *v1alpha1.Project) error {
	p.Status.ReadOnly = p.Spec.ReadOnly || p.Spec.Archived
	scope, err := c.frame.Catalog.ProjectScope(ctx, p)
	if err == nil {
		err = c.frame.TakePath(ctx, p, scope)
	}
	if err != nil {
		p.Status.FullPath, p.Status.Visibility = "", ""
		return frame.Unresolved("groupRef", err)
	}
	p.Status.FullPath, p.Status.Visibility = scope.Path(), catalog.Visibility(p.Spec.Visibility, scope.Groups)
	return nil
}

// checkBranch rejects names that the schema accepts and that no branch can have. It is the last step, because a project that has its
// repository works without one.
func (c *Controller) checkBranch(_ context.Context, p *v1alpha1.Project) error {
	if p.Spec.DefaultBranch == "" {
		return nil
	}
	if err := object.CheckBranchName(p.Spec.DefaultBranch); err != nil {
		return frame.Stalled(v1alpha1.ReasonInvalid, "defaultBranch is not the name of a branch: %w", err)
	}
	return nil
}

// provide creates, imports or forks the repository, once.
func (c *Controller) provide(ctx context.Context, p *v1alpha1.Project) error {
	repo, err := c.repositories.Of(ctx, p)
	if err != nil {
		return frame.Unresolved("status.storage", err)
	}
	switch err := repo.Check(); {
	case err == nil:
		if err := c.own(ctx, p); err != nil { // a shard that is full or read-only still serves its repositories
			log.FromContext(ctx).Error(err, "Failed to record the project of a repository on its shard", "storage", p.Status.Storage)
		}
		if err := c.revive(ctx, p, repo); err != nil {
			return err
		}
		return c.tidy(ctx, p, repo)
	case errors.Is(err, git.ErrStorageMissing):
		return frame.Waiting(v1alpha1.ReasonStorageUnavailable, "storage %s is not mounted", p.Status.Storage)
	case !errors.Is(err, git.ErrNotFound):
		return err
	case p.Status.RefsChecksum != "":
		return frame.Failed(v1alpha1.ReasonStorageUnavailable,
			"the repository is no longer on storage %s: restore it to %s, or delete the project", p.Status.Storage, p.Status.RepositoryPath)
	}
	if err := c.checkBranch(ctx, p); err != nil {
		return err
	}
	if err := c.own(ctx, p); errors.Is(err, git.ErrStorageMissing) {
		return frame.Failed(v1alpha1.ReasonStorageUnavailable, "%w", err)
	} else if err != nil {
		return err
	}
	switch {
	case p.Spec.Suspend && (p.Spec.ImportURL != "" || begins(p)):
		return c.suspend(p)
	case p.Spec.ImportURL != "":
		return c.importRepository(ctx, p, repo)
	case begins(p):
		return c.forkRepository(ctx, p, repo)
	}
	if !c.stopped(p) { // it began as one until forkOf or importURL was removed
		return frame.Progressing(0, v1alpha1.ReasonImporting, "the import or fork of the repository is being stopped")
	}
	err = repo.Init(ctx, git.InitOptions{DefaultBranch: catalog.DefaultBranch(p), ObjectFormat: string(p.Spec.ObjectFormat)})
	if err != nil {
		return fmt.Errorf("creating the repository: %w", err)
	}
	return nil
}

// tidy removes what a crash has left in the repository, once per process.
func (c *Controller) tidy(ctx context.Context, p *v1alpha1.Project, repo *repository.Handle) error {
	if _, done := c.tidied.LoadOrStore(p.UID, true); done {
		return nil
	}
	if err := repo.Tidy(ctx); err != nil {
		c.tidied.Delete(p.UID)
		return fmt.Errorf("removing what a crash left behind: %w", err)
	}
	return nil
}

func (c *Controller) observe(ctx context.Context, p *v1alpha1.Project) error {
	return c.repositories.Observe(ctx, p)
}

// setHead makes HEAD name the declared default branch if the observed HEAD does not.
func (c *Controller) setHead(ctx context.Context, p *v1alpha1.Project) error {
	if p.Spec.DefaultBranch == "" || p.Spec.DefaultBranch == p.Status.DefaultBranch {
		return nil
	}
	if err := c.checkBranch(ctx, p); err != nil {
		return nil //nolint:nilerr // the last step returns it
	}
	repo, err := c.repositories.Of(ctx, p)
	if err != nil {
		return err
	}
	if err := repo.SetHead(ctx, p.Spec.DefaultBranch); err != nil {
		return fmt.Errorf("setting the default branch: %w", err)
	}
	return c.repositories.Observe(ctx, p)
}

// remove removes or retains the repository of a project that is being deleted, and removes the shard's record that the project has it.
func (c *Controller) remove(ctx context.Context, p *v1alpha1.Project) error {
	if err := c.awaitMove(ctx, p); err != nil {
		return err
	}
	if err := c.recallStorage(ctx, p); err != nil {
		return err
	}
	if err := c.leave(ctx, p); err != nil {
		return err
	}
	if p.Status.Storage == "" {
		return nil
	}
	if err := c.repositories.RemoveOwner(ctx, p); !errors.Is(err, catalog.ErrNotFound) {
		return err
	}
	return nil
}

func (c *Controller) leave(ctx context.Context, p *v1alpha1.Project) error {
	if !c.stopped(p) {
		return frame.Progressing(0, v1alpha1.ReasonDeleting, "the import of the repository is being stopped")
	}
	if released, err := c.release(ctx, p); released || err != nil {
		return err
	}
	repo, err := c.repositories.Of(ctx, p)
	switch {
	case errors.Is(err, repository.ErrNoStorage):
		return nil
	case errors.Is(err, catalog.ErrNotFound):
		return c.retain(ctx, p, nil) // its location is no longer known
	case err != nil:
		return err
	case p.Spec.DeletionPolicy == v1alpha1.DeletionPolicyRetain:
		return c.retain(ctx, p, repo)
	}
	ctx = audit.WithReason(ctx, audit.Event{Reason: deletionPolicy(p)})
	if err := repo.Remove(ctx); errors.Is(err, git.ErrStorageMissing) {
		return frame.Waiting(v1alpha1.ReasonStorageUnavailable,
			"storage %s is not mounted, so the repository cannot be removed: mount it, set deletionPolicy: Retain, or delete the RepositoryStorage and remove its finalizer", p.Status.Storage)
	} else if err != nil {
		return fmt.Errorf("removing the repository: %w", err)
	}
	return nil
}
