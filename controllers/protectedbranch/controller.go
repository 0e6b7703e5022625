// Package protectedbranch reconciles protections: it resolves whom they permit, and shows the matching branches. Protections are enforced
// by their declarations, not by what this controller writes.
package protectedbranch

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/accesslevel"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/frame"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/protection"
	"github.com/forgeplane/forgeplane/internal/repository"
)

// maxMatched is the maximum length of the list in the status; the number still counts all.
const maxMatched = 100

// Controller reconciles protections.
type Controller struct {
	repositories *repository.Repositories
	frame        *frame.Frame[*v1alpha1.ProtectedBranch]
	clock        clock.PassiveClock
}

// New returns the controller. levels allocates the ids of access levels.
func New(b frame.Base, levels accesslevel.Allocator, repos *repository.Repositories, clk clock.PassiveClock) *Controller {
	return &Controller{
		repositories: repos, clock: clk,
		frame: frame.New(b,
			frame.WithClaims(protection.Claims),
			frame.WithContent[*v1alpha1.ProtectedBranch](), // the matching branches
			frame.WithAnnotations(func(ctx context.Context, p *v1alpha1.ProtectedBranch) (bool, error) {
				return accesslevel.Assign(ctx, levels, p)
			})),
	}
}

// +kubebuilder:rbac:groups=forgeplane.dev,resources=protectedbranches,verbs=create;patch;delete
// +kubebuilder:rbac:groups=forgeplane.dev,resources=protectedbranches/status,verbs=patch

// SetupWithManager starts the controller with mgr.
func (c *Controller) SetupWithManager(mgr ctrl.Manager, o controller.Options) error {
	cat, all := c.frame.Catalog, &v1alpha1.ProtectedBranchList{}
	return c.frame.Watch(mgr, o).
		OnReferred(&v1alpha1.Group{}, cat.Referrers(all, protection.IndexGrantee)).
		OnReferred(&v1alpha1.User{}, cat.Referrers(all, catalog.IndexUser)).
		OnReferred(&v1alpha1.DeployKey{}, cat.Referrers(all, protection.IndexGrantee)).
		OnReleased(&v1alpha1.ProtectedBranch{}, cat.Peers(all, protection.IndexBranch, protection.Rivals(cat))).
		Complete(reconcile.AsReconciler(c.frame.Client, c))
}

// Reconcile reconciles one protection.
func (c *Controller) Reconcile(ctx context.Context, b *v1alpha1.ProtectedBranch) (reconcile.Result, error) {
	return c.frame.Run(ctx, b, forget, check, c.expire, frame.InScope(c.frame, c.match, c.claim, c.resolve, frame.Reachable(c.frame)))
}

// forget clears the status, which depends on the project or group.
func forget(_ context.Context, b *v1alpha1.ProtectedBranch) error {
	b.Status = v1alpha1.ProtectedBranchStatus{CommonStatus: b.Status.CommonStatus, TargetStatus: b.Status.TargetStatus, ID: b.Status.ID}
	return nil
}

// check rejects names that the schema accepts and that match no branch.
func check(_ context.Context, b *v1alpha1.ProtectedBranch) error {
	if err := protection.CheckName(b.Spec.Branch); err != nil {
		return frame.Stalled(v1alpha1.ReasonInvalid, "branch %w", err)
	}
	return nil
}

// expire schedules a reconcile for the end of the next share: a level for the members of its group then lets nobody through.
func (c *Controller) expire(ctx context.Context, b *v1alpha1.ProtectedBranch) error {
	toGroup := func(l v1alpha1.AccessLevel) bool { return l.GroupRef != nil }
	if !slices.ContainsFunc(slices.Concat(b.Spec.Push, b.Spec.Merge, b.Spec.Unprotect), toGroup) {
		return nil
	}
	scope, err := c.frame.Catalog.ScopeOf(ctx, b)
	if err != nil {
		return nil //nolint:nilerr // the next step resolves the same reference
	}
	now := c.clock.Now()
	if end := scope.SharesEnd(now); !end.IsZero() {
		return frame.RequeueAfter(end.Sub(now))
	}
	return nil
}

// claim prevents a project or group from protecting the same branch twice.
func (c *Controller) claim(ctx context.Context, b *v1alpha1.ProtectedBranch, scope catalog.Scope) error {
	holder, err := protection.Holder(ctx, c.frame.Catalog, scope, b.Spec.Branch)
	if err != nil {
		return err
	}
	k := protection.Claim(b, scope.Target().GetUID())
	return c.frame.Take(ctx, b, holder, k, "the protection of %s in %s", b.Spec.Branch, scope.Path())
}

// resolve sets whom each level permits. A level that does not resolve permits nobody, and is named in the condition.
func (c *Controller) resolve(ctx context.Context, b *v1alpha1.ProtectedBranch, scope catalog.Scope) error {
	var unresolved error
	ids, now := accesslevel.Of(b), c.clock.Now()
	for _, set := range []struct {
		name     accesslevel.Set
		declared []v1alpha1.AccessLevel
		resolved *[]v1alpha1.ResolvedAccessLevel
	}{
		{accesslevel.Push, b.Spec.Push, &b.Status.Push},
		{accesslevel.Merge, b.Spec.Merge, &b.Status.Merge},
		{accesslevel.Unprotect, b.Spec.Unprotect, &b.Status.Unprotect},
	} {
		for i, l := range set.declared {
			r, err := protection.Resolve(ctx, c.frame.Catalog, scope, b.Namespace, l, now)
			r.ID = ids.Get(set.name, b.Namespace, l)
			switch {
			case err == nil:
				*set.resolved = append(*set.resolved, r)
			case errors.Is(err, catalog.ErrNotFound):
				if unresolved == nil {
					unresolved = frame.Unresolved(fmt.Sprintf("%s[%d]", set.name, i), err)
				}
			default:
				return err
			}
		}
	}
	push := make([]string, len(b.Status.Push))
	for i, l := range b.Status.Push {
		push[i] = l.Description
	}
	b.Status.PushDescription = frame.Column(push)
	return unresolved
}

// match sets the branches of the project that are protected now; a group has none.
func (c *Controller) match(ctx context.Context, b *v1alpha1.ProtectedBranch, scope catalog.Scope) error {
	if scope.Project == nil {
		return nil
	}
	branches, err := c.repositories.Branches(c.repositories.WithTenant(ctx, scope.Project), scope.Project)
	if git.OutOfReach(err) || errors.Is(err, catalog.ErrNotFound) {
		// The project's own conditions report this, and its next change triggers a reconcile here.
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
