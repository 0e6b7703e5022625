package project

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/frame"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/jobtoken"
	"github.com/forgeplane/forgeplane/internal/repository"
	"github.com/forgeplane/forgeplane/internal/retained"
)

// adopt takes over the repository that an earlier project with the same declaration has left, or the one that the project names, before the
// project gets its own. Each step can be repeated: the RetainedRepository first records who takes it, and is removed last.
func (c *Controller) adopt(ctx context.Context, p *v1alpha1.Project) error {
	if p.Status.Storage != "" {
		r, err := c.adopting(ctx, p)
		if r == nil || err != nil {
			return err
		}
		return c.takeOver(ctx, p, r)
	}
	r, err := c.choose(ctx, p, p.Status.FullPath)
	if r == nil || err != nil {
		return err
	}
	if err := c.reserve(ctx, p, r); err != nil {
		return err
	}
	return c.takeOver(ctx, p, r)
}

// adopting returns the repository that a project has begun but not finished to take over; nil if there is none.
func (c *Controller) adopting(ctx context.Context, p *v1alpha1.Project) (*v1alpha1.RetainedRepository, error) {
	if p.Status.AdoptedRepository == "" {
		return nil, nil
	}
	r, err := catalog.Get[*v1alpha1.RetainedRepository](ctx, c.frame.Catalog, "", p.Status.AdoptedRepository)
	if errors.Is(err, catalog.ErrNotFound) {
		return nil, nil
	}
	if err != nil || !adoptedBy(r, p) {
		return nil, err
	}
	return r, nil
}

func adoptedBy(r *v1alpha1.RetainedRepository, p *v1alpha1.Project) bool {
	return r.Status.AdoptedBy != nil && r.Status.AdoptedBy.UID == string(p.UID)
}

// reserve records which project takes over the repository. The optimistic lock prevents a concurrent purge or takeover.
func (c *Controller) reserve(ctx context.Context, p *v1alpha1.Project, r *v1alpha1.RetainedRepository) error {
	if adoptedBy(r, p) {
		return nil
	}
	claimed := r.DeepCopy()
	claimed.Status.AdoptedBy = &v1alpha1.Adopter{Namespace: p.Namespace, Name: p.Name, UID: string(p.UID)}
	was := r.Spec.Project
	what := fmt.Sprintf("takes over the repository of the deleted project %s/%s, uid %s, id %d, from RetainedRepository %s",
		was.Namespace, was.Name, was.UID, was.ID, r.Name)
	patch := client.MergeFromWithOptions(r, client.MergeFromWithOptimisticLock{})
	if err := c.frame.Client.Status().Patch(audit.WithReason(ctx, audit.Event{Action: "adopt", Reason: what}), claimed, patch); err != nil {
		return fmt.Errorf("claiming RetainedRepository %s: %w", r.Name, err)
	}
	c.frame.Events.Eventf(p, claimed, corev1.EventTypeNormal, "Adopted", "Adopt", "%s", what)
	// Until the cache shows it, no other project can choose it, and this project cannot choose another one.
	if err := c.frame.Client.Get(ctx, client.ObjectKeyFromObject(r), claimed); err != nil {
		return fmt.Errorf("waiting for the cache to show RetainedRepository %s: %w", r.Name, err)
	}
	return nil
}

// takeOver gives the project the repository that it has claimed. Its default branch is protected before anybody can reach it.
func (c *Controller) takeOver(ctx context.Context, p *v1alpha1.Project, r *v1alpha1.RetainedRepository) error {
	if p.Status.Storage == "" {
		before := p.DeepCopy()
		branch := p.Spec.DefaultBranch
		if branch == "" {
			branch = r.Spec.Project.DefaultBranch
		}
		if branch != "" && p.Status.ProtectedDefaultBranch == "" {
			if err := c.protect(ctx, p, branch); err != nil {
				return err
			}
		}
		p.Status.Storage, p.Status.AdoptedRepository = r.Spec.Storage, r.Name
		if err := c.writeStatus(ctx, before, p); err != nil {
			return fmt.Errorf("recording the adopted repository: %w", err)
		}
	}
	from, err := c.repositories.OfRetained(ctx, r)
	if errors.Is(err, catalog.ErrNotFound) {
		return frame.Waiting(v1alpha1.ReasonReferenceNotFound, "status.storage: %w", err)
	}
	if err != nil {
		return err
	}
	to, err := c.repositories.Of(ctx, p)
	if err != nil {
		return err
	}
	if from.Check() == nil { // a volume other than the repository's may be mounted
		if err := c.own(ctx, p); err != nil {
			return err
		}
	}
	switch err := from.Move(audit.WithReason(ctx, audit.Event{Reason: "from RetainedRepository " + r.Name}), to); {
	case errors.Is(err, git.ErrStorageMissing):
		return frame.Waiting(v1alpha1.ReasonStorageUnavailable, "storage %s is not mounted", r.Spec.Storage)
	case errors.Is(err, git.ErrNotFound):
		return frame.Failed(v1alpha1.ReasonStorageUnavailable, "the repository of RetainedRepository %s is no longer on storage %s", r.Name, r.Spec.Storage)
	case err != nil:
		return fmt.Errorf("taking over the repository of RetainedRepository %s: %w", r.Name, err)
	}
	if !r.DeletionTimestamp.IsZero() {
		return nil
	}
	if err := errors.Join(c.succeed(ctx, p, r), c.takeActivity(ctx, p, r)); err != nil {
		return err
	}
	return c.forget(ctx, r)
}

// takeActivity gives the project what users have done in the deleted one.
func (c *Controller) takeActivity(ctx context.Context, p *v1alpha1.Project, r *v1alpha1.RetainedRepository) error {
	if c.options.Activity == nil {
		return nil
	}
	if err := c.options.Activity.Adopt(ctx, types.UID(r.Spec.Project.UID), p.RESTID(), p.UID); err != nil {
		return fmt.Errorf("taking over the activity of the deleted project: %w", err)
	}
	return nil
}

// forget removes the record of a repository that was taken over.
func (c *Controller) forget(ctx context.Context, r *v1alpha1.RetainedRepository) error {
	told := audit.WithReason(ctx, audit.Event{Action: "remove", Reason: "its repository was taken over"})
	if err := c.frame.Client.Delete(told, r.DeepCopy(), client.Preconditions{UID: &r.UID}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("removing RetainedRepository %s: %w", r.Name, err)
	}
	return nil
}

// succeed updates job token scopes that admitted the deleted project by its id and UID over REST, so that they admit the new one. It does
// not do so for the project of another tenant to whom an administrator gives the repository.
func (c *Controller) succeed(ctx context.Context, p *v1alpha1.Project, r *v1alpha1.RetainedRepository) error {
	was := r.Spec.Project
	if p.Namespace != was.Namespace || p.RESTID() != was.ID {
		return nil
	}
	scopes, err := jobtoken.ScopesNaming(ctx, c.frame.Catalog, was.ID, was.FullPath, was.UID)
	if err != nil || len(scopes) == 0 {
		return err
	}
	if namespace, err := c.namespaceUID(ctx, p.Namespace); err != nil || string(namespace) != was.NamespaceUID {
		return err
	}
	for _, j := range scopes {
		told := audit.WithReason(ctx, audit.Event{Action: "adopt", Reason: fmt.Sprintf("the entry of project %d had uid %s", was.ID, was.UID)})
		if err := c.succeedIn(told, j, p, was); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("putting the new UID into JobTokenScope %s: %w", client.ObjectKeyFromObject(j), err)
		}
	}
	return nil
}

// succeedIn is succeed for one job token scope: it changes the entries with the UID, and what the status says about where others have led.
func (c *Controller) succeedIn(ctx context.Context, j *v1alpha1.JobTokenScope, p *v1alpha1.Project, was v1alpha1.FormerProject) error {
	written := j.DeepCopy()
	for i := range written.Spec.Allowlist {
		if ref := &written.Spec.Allowlist[i].ProjectRef; ref.ID == was.ID && ref.UID == was.UID {
			ref.UID = string(p.UID)
		}
	}
	if !equality.Semantic.DeepEqual(j.Spec, written.Spec) {
		if err := c.frame.Client.Patch(ctx, written, client.MergeFromWithOptions(j, client.MergeFromWithOptimisticLock{})); err != nil {
			return err
		}
	}
	before := written.DeepCopy()
	for i := range written.Status.RecordedAllowlist {
		if led := &written.Status.RecordedAllowlist[i].ProjectRef; led.UID == was.UID {
			led.UID = string(p.UID)
		}
	}
	if equality.Semantic.DeepEqual(before.Status, written.Status) {
		return nil
	}
	return c.frame.Client.Status().Patch(ctx, written, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

// release releases a repository that a project that is being deleted has claimed but not taken. It reports whether there was one.
func (c *Controller) release(ctx context.Context, p *v1alpha1.Project) (bool, error) {
	taken, err := retained.TakenBy(ctx, c.frame.Catalog, p)
	if err != nil {
		return false, err
	}
	for _, r := range taken {
		if !r.DeletionTimestamp.IsZero() {
			continue
		}
		moved, err := c.moved(ctx, p, r)
		if err != nil {
			return false, err
		}
		if moved {
			return false, c.forget(ctx, r)
		}
		released := r.DeepCopy()
		released.Status.AdoptedBy = nil
		told := audit.WithReason(ctx, audit.Event{Action: "give-back", Reason: "the project is deleted"})
		return true, c.frame.Client.Status().Patch(told, released, client.MergeFromWithOptions(r, client.MergeFromWithOptimisticLock{}))
	}
	return false, nil
}

// moved reports whether a repository is at the path of the project that takes it, and no longer at its own.
func (c *Controller) moved(ctx context.Context, p *v1alpha1.Project, r *v1alpha1.RetainedRepository) (bool, error) {
	if repository.Path(p) == repository.PathOfRetained(r) {
		return false, nil
	}
	from, err := c.repositories.OfRetained(ctx, r)
	if err != nil {
		return false, frame.Unresolved("storage", err)
	}
	switch err := from.Check(); {
	case errors.Is(err, git.ErrNotFound):
		return true, nil
	case errors.Is(err, git.ErrStorageMissing):
		return false, frame.Waiting(v1alpha1.ReasonStorageUnavailable, "storage %s, which may hold the repository that was taken over, is not mounted", r.Spec.Storage)
	default:
		return false, err
	}
}

// namespaceUID returns the UID of the current namespace. The cache may still show an earlier one.
func (c *Controller) namespaceUID(ctx context.Context, name string) (types.UID, error) {
	ns, err := c.namespace(ctx, name)
	return ns.UID, err
}

func (c *Controller) namespace(ctx context.Context, name string) (ns corev1.Namespace, err error) {
	if err := c.options.Live.Get(ctx, client.ObjectKey{Name: name}, &ns); err != nil {
		return ns, fmt.Errorf("reading namespace %s: %w", name, err)
	}
	return ns, nil
}

// onRetained maps a retained repository to the projects that it may affect: those of its namespace without a repository, those that it
// names, and, when it is removed, those that wait for room.
func (c *Controller) onRetained(ctx context.Context, obj client.Object) []reconcile.Request {
	r := obj.(*v1alpha1.RetainedRepository)
	found, err := catalog.List[*v1alpha1.Project](ctx, c.frame.Catalog, catalog.IndexStorage, "")
	if err != nil {
		log.FromContext(ctx).Error(err, "Failed to list the projects without a repository")
	}
	var requests []reconcile.Request
	for _, p := range found {
		if p.Namespace == r.Spec.Project.Namespace || meant(r, p) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(p)})
		}
	}
	if !r.DeletionTimestamp.IsZero() {
		requests = append(requests, c.leaving(ctx, r.Spec.Project.Namespace)...)
	}
	if by := r.Status.AdoptedBy; by != nil {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKey{Namespace: by.Namespace, Name: by.Name}})
	}
	return requests
}

// identifier gives a project the id of the repository that it takes over, unless another object has the id.
type identifier struct {
	frame.Allocator
	controller *Controller
}

// Allocate returns the id of the repository that obj takes over, or a new one. Until it is decided which repository that is, obj gets none,
// so that it can still get the id of its repository.
func (i identifier) Allocate(ctx context.Context, obj v1alpha1.Identified) (int64, error) {
	p := obj.(*v1alpha1.Project)
	path := ""
	if chain, err := i.controller.frame.Catalog.GroupsOf(ctx, p); err == nil {
		path = catalog.FullPath(chain, p.Spec.Path)
	} else if !catalog.Misplaced(err) {
		return 0, err
	}
	r, err := i.controller.choose(ctx, p, path)
	if err != nil {
		return 0, err
	}
	if r != nil {
		_, err := catalog.ByID[*v1alpha1.Project](ctx, i.controller.frame.Catalog, r.Spec.Project.ID)
		if errors.Is(err, catalog.ErrNotFound) {
			return i.inherit(ctx, p, r)
		}
		if err != nil {
			return 0, err
		}
		// The project with the id can have taken over the repository meanwhile. Then there may be nothing to choose any more.
		if _, err := i.controller.choose(ctx, p, path); err != nil {
			return 0, err
		}
	}
	return i.Allocator.Allocate(ctx, obj)
}

// inherit returns the id of a repository for the one project that takes it and has a place for it.
func (i identifier) inherit(ctx context.Context, p *v1alpha1.Project, r *v1alpha1.RetainedRepository) (int64, error) {
	if err := i.controller.place(ctx, p.DeepCopy()); err != nil {
		return 0, err
	}
	if err := i.controller.reserve(ctx, p, r); err != nil {
		return 0, err
	}
	return r.Spec.Project.ID, nil
}
