// Package protectedbranch reconciles protections: it resolves whom they let through and shows what they match. They
// are enforced by what is declared, not by what this controller has written.
package protectedbranch

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/accesslevel"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/frame"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/protection"
	"github.com/forgeplane/forgeplane/internal/reference"
	"github.com/forgeplane/forgeplane/internal/repository"
)

// maxMatched bounds the list in the status; the count goes on.
const maxMatched = 100

// Controller reconciles protections.
type Controller struct {
	client       client.Client
	catalog      *catalog.Catalog
	repositories *repository.Repositories
	frame        *frame.Frame[*v1alpha1.ProtectedBranch]
}

// Allocator hands out the ids of protections and of their access levels.
type Allocator interface {
	frame.Allocator
	accesslevel.Allocator
}

// New returns the controller.
func New(c client.Client, r events.EventRecorder, cat *catalog.Catalog, ids Allocator, repos *repository.Repositories) *Controller {
	return &Controller{
		client: c, catalog: cat, repositories: repos,
		frame: frame.New(c, r,
			frame.WithIDs[*v1alpha1.ProtectedBranch](ids),
			frame.WithClaims(cat.Register(), cat.ProtectionClaims),
			frame.WithOwner(func(ctx context.Context, b *v1alpha1.ProtectedBranch) (client.Object, error) {
				return cat.Target(ctx, b.Namespace, b.Spec.ProjectRef, b.Spec.GroupRef)
			}),
			frame.WithAnnotations(func(ctx context.Context, b *v1alpha1.ProtectedBranch) (bool, error) {
				return accesslevel.Assign(ctx, ids, b)
			})),
	}
}

// +kubebuilder:rbac:groups=forgeplane.dev,resources=protectedbranches,verbs=create;patch;delete
// +kubebuilder:rbac:groups=forgeplane.dev,resources=protectedbranches/status,verbs=patch

// SetupWithManager starts the controller with mgr.
func (c *Controller) SetupWithManager(mgr ctrl.Manager, o controller.Options) error {
	all := &v1alpha1.ProtectedBranchList{}
	return frame.NewWatch(mgr, "protectedbranch", &v1alpha1.ProtectedBranch{}, o).
		OnReferred(&v1alpha1.Project{}, c.catalog.Referrers(all, catalog.IndexProject)).
		OnReferred(&v1alpha1.Group{}, c.catalog.Referrers(all, catalog.IndexGroup)).
		OnReferred(&v1alpha1.Group{}, c.catalog.Referrers(all, catalog.IndexGrantee)).
		OnReferred(&v1alpha1.User{}, c.catalog.Referrers(all, catalog.IndexUser)).
		OnReferred(&v1alpha1.DeployKey{}, c.catalog.Referrers(all, catalog.IndexGrantee)).
		OnReleased(&v1alpha1.ProtectedBranch{}, c.catalog.Peers(all, catalog.IndexBranch, c.catalog.BranchKeys)).
		OnReleased(&v1alpha1.ProtectedBranch{}, c.catalog.Peers(all, catalog.IndexID, catalog.SpecID)).
		OnClaimReleased(&v1alpha1.ProtectedBranch{}, c.catalog.Waiting(&v1alpha1.ProtectedBranch{})).
		Complete(reconcile.AsReconciler(c.client, c))
}

// Reconcile brings one protection up to date.
func (c *Controller) Reconcile(ctx context.Context, b *v1alpha1.ProtectedBranch) (reconcile.Result, error) {
	return c.frame.Run(ctx, b, c.reconcile)
}

// reconcile looks up what the protection is for, and does the rest with it.
func (c *Controller) reconcile(ctx context.Context, b *v1alpha1.ProtectedBranch) error {
	scope, err := c.catalog.ScopeOf(ctx, b)
	if err != nil {
		b.Status = v1alpha1.ProtectedBranchStatus{CommonStatus: b.Status.CommonStatus, ID: b.Status.ID}
		return reference.Unresolved(field(b), err)
	}
	b.Status.TargetPath = scope.Path()
	if err := c.match(ctx, b, scope); err != nil {
		return err
	}
	if err := c.claim(ctx, b, scope); err != nil {
		return err
	}
	if err := c.resolve(ctx, b, scope); err != nil {
		return err
	}
	return reference.Reachable(ctx, c.catalog, field(b), scope.Target(), scope.Path())
}

func field(b *v1alpha1.ProtectedBranch) string {
	if b.Spec.GroupRef != nil {
		return "groupRef"
	}
	return "projectRef"
}

// claim keeps a branch from being protected twice by the same project or group.
func (c *Controller) claim(ctx context.Context, b *v1alpha1.ProtectedBranch, scope catalog.Scope) error {
	holder, err := c.catalog.ProtectionOf(ctx, scope, b.Spec.Branch)
	if err != nil {
		return err
	}
	k := catalog.ProtectionClaim(b, scope.Target().GetUID())
	return reference.Take(ctx, c.catalog, b, holder, k, "the protection of %s in %s", b.Spec.Branch, scope.Path())
}

// resolve shows whom each level lets through. What does not resolve lets nobody through, and is named.
func (c *Controller) resolve(ctx context.Context, b *v1alpha1.ProtectedBranch, scope catalog.Scope) error {
	var unresolved error
	ids := accesslevel.Of(b)
	for _, set := range []struct {
		name     accesslevel.Set
		declared []v1alpha1.AccessLevel
		resolved *[]v1alpha1.ResolvedAccessLevel
	}{
		{accesslevel.Push, b.Spec.Push, &b.Status.Push},
		{accesslevel.Merge, b.Spec.Merge, &b.Status.Merge},
		{accesslevel.Unprotect, b.Spec.Unprotect, &b.Status.Unprotect},
	} {
		*set.resolved = nil
		for i, l := range set.declared {
			r, err := c.catalog.ResolveLevel(ctx, scope, b.Namespace, l)
			r.ID = ids.Get(set.name, b.Namespace, l)
			switch {
			case err == nil:
				*set.resolved = append(*set.resolved, r)
			case errors.Is(err, catalog.ErrNotFound):
				if unresolved == nil {
					unresolved = reference.Unresolved(fmt.Sprintf("%s[%d]", set.name, i), err)
				}
			default:
				return err
			}
		}
	}
	return unresolved
}

// match shows which branches of the project are protected now; a group has none of its own.
func (c *Controller) match(ctx context.Context, b *v1alpha1.ProtectedBranch, scope catalog.Scope) error {
	b.Status.MatchedBranches, b.Status.MatchedBranchCount = nil, 0
	if scope.Project == nil {
		return nil
	}
	branches, err := c.repositories.Branches(c.repositories.For(ctx, scope.Project), scope.Project)
	if errors.Is(err, git.ErrNotFound) || errors.Is(err, git.ErrStorageMissing) || errors.Is(err, catalog.ErrNotFound) {
		// The project's own conditions speak of it, and its next change leads back here.
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the branches of %s: %w", scope.Path(), err)
	}
	for _, name := range branches {
		if !protection.Match(b.Spec.Branch, name) {
			continue
		}
		if b.Status.MatchedBranchCount++; b.Status.MatchedBranchCount <= maxMatched {
			b.Status.MatchedBranches = append(b.Status.MatchedBranches, name)
		}
	}
	return nil
}
