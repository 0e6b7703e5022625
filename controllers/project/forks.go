package project

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/frame"
	"github.com/forgeplane/forgeplane/internal/git/transfer"
	"github.com/forgeplane/forgeplane/internal/repository"
)

// recordOrigin records of which project this one is a fork. A project that is recorded stays so, whatever happens to it.
func (c *Controller) recordOrigin(ctx context.Context, p *v1alpha1.Project) error {
	origin, known := p.Origin()
	if from := p.Status.ForkedFrom; known && from != nil && from.ID == origin.ID && from.ProjectRef.UID == origin.UID {
		return nil
	}
	p.Status.ForkedFrom = nil
	if p.Spec.ForkOf == nil {
		return nil
	}
	from, err := c.frame.Catalog.DeclaredOrigin(ctx, p)
	if errors.Is(err, catalog.ErrNotFound) {
		return nil // it only matters for a new repository
	}
	if err != nil {
		return err
	}
	ref := p.Spec.ForkOf.ProjectRef
	ref.UID = string(from.UID)
	p.Status.ForkedFrom = &v1alpha1.ForkedFrom{ProjectRef: ref, ID: from.RESTID()}
	return nil
}

// begins reports whether the repository of a new project begins as that of another project.
func begins(p *v1alpha1.Project) bool { return p.Spec.ForkOf != nil && p.Spec.ImportURL == "" }

// permission is the time after its creation in which a project can begin as a fork of a project that not everybody can read. The user who
// asked for the fork could read the other project then, and may not be able to later.
const permission = 24 * time.Hour

// forked returns the project whose repository a new one begins with, once that exists.
func (c *Controller) forked(ctx context.Context, p *v1alpha1.Project) (*v1alpha1.Project, error) {
	from, err := c.frame.Catalog.DeclaredOrigin(ctx, p)
	if origin, known := p.Origin(); err == nil && known && !catalog.Means(origin, from) {
		err = fmt.Errorf("project %s is not the project that this fork was created from: %w", catalog.Show(p.Spec.ForkOf.ProjectRef), catalog.ErrNotFound)
	}
	if err != nil {
		return nil, frame.Unresolved("forkOf", err)
	}
	if late, err := c.late(ctx, p, from, 0); err != nil {
		return nil, err
	} else if late {
		return nil, frame.Stalled(v1alpha1.ReasonReferenceNotFound,
			"forkOf: the fork of project %s could not begin within a day: delete this project and fork again", catalog.Show(p.Spec.ForkOf.ProjectRef))
	}
	if from.Status.RefsChecksum == "" {
		return nil, frame.Progressing(0, v1alpha1.ReasonReferenceNotReady, "forkOf: project %s has no repository yet", catalog.Show(p.Spec.ForkOf.ProjectRef))
	}
	return from, nil
}

// late reports whether a fork of a project may no longer begin after some time from now.
func (c *Controller) late(ctx context.Context, p, from *v1alpha1.Project, after time.Duration) (bool, error) {
	if p.Spec.ForkOf.ProjectRef.UID == "" || c.options.Clock.Since(p.CreationTimestamp.Time)+after <= permission {
		return false, nil
	}
	// Those who share the namespace of personal projects do not see each other's.
	open, err := c.frame.Catalog.OpenTo(ctx, "", from)
	return !open, err
}

// unfinished returns a part of a project that says whether its forks can begin.
func unfinished(o client.Object) string {
	p := o.(*v1alpha1.Project)
	return fmt.Sprint(p.Status.RefsChecksum == "", p.Status.FullPath, p.Status.Visibility)
}

// onOrigin maps a project to those of its forks that have not begun, or have not recorded it.
func (c *Controller) onOrigin(ctx context.Context, o client.Object) []reconcile.Request {
	return slices.DeleteFunc(c.frame.Catalog.Referrers(&v1alpha1.ProjectList{}, catalog.IndexForkOf)(ctx, o), func(r reconcile.Request) bool {
		fork, err := c.frame.Catalog.Project(ctx, r.Namespace, v1alpha1.Reference{Name: r.Name})
		return err == nil && fork.Status.RefsChecksum != "" && fork.Status.ForkedFrom != nil
	})
}

// forkRepository starts to fork the repository, or reports the state of that.
func (c *Controller) forkRepository(ctx context.Context, p *v1alpha1.Project, repo *repository.Handle) error {
	from, err := c.forked(ctx, p)
	if err != nil {
		return err
	}
	source, err := c.repositories.Of(ctx, from)
	if err != nil {
		return frame.Unresolved("forkOf", err)
	}
	declared := p.DeepCopy()
	o := transfer.ForkOptions{
		Branches: p.Spec.ForkOf.Branches, DefaultBranch: p.Spec.DefaultBranch, ObjectFormat: string(from.Spec.ObjectFormat),
	}
	s := c.forks.begin(p, func(ctx context.Context, _ func(transfer.Progress)) error {
		return repo.Fork(audit.For(ctx, declared), source, o)
	})
	if late, err := c.late(ctx, p, from, s.retry); err != nil {
		return err
	} else if late {
		s.last = "a fork must begin within a day, so Forgeplane does not try again: delete this project and fork again"
	}
	return s.wait("forking project " + catalog.Show(p.Spec.ForkOf.ProjectRef))
}
