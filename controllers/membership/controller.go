// Package membership reconciles memberships: whom they are of, and the role that comes out.
package membership

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/claim"
	"github.com/forgeplane/forgeplane/internal/frame"
	"github.com/forgeplane/forgeplane/internal/orphan"
	"github.com/forgeplane/forgeplane/internal/reference"
	"github.com/forgeplane/forgeplane/internal/role"
)

// Controller reconciles memberships.
type Controller struct {
	client  client.Client
	orphans *orphan.Collector
	catalog *catalog.Catalog
	clock   clock.PassiveClock
	frame   *frame.Frame[*v1alpha1.Membership]
}

// New returns the controller; o removes what is left of users who are gone.
func New(c client.Client, o *orphan.Collector, r events.EventRecorder, cat *catalog.Catalog, clk clock.PassiveClock) *Controller {
	return &Controller{
		client: c, orphans: o, catalog: cat, clock: clk,
		frame: frame.New(c, r, frame.WithOwner(func(ctx context.Context, m *v1alpha1.Membership) (client.Object, error) {
			return cat.Target(ctx, m.Namespace, m.Spec.ProjectRef, m.Spec.GroupRef)
		}), frame.WithClaims(cat.Register(), cat.MembershipClaims)),
	}
}

// +kubebuilder:rbac:groups=forgeplane.dev,resources=memberships,verbs=get;patch;delete
// +kubebuilder:rbac:groups=forgeplane.dev,resources=memberships/status,verbs=patch

// SetupWithManager starts the controller with mgr.
func (c *Controller) SetupWithManager(mgr ctrl.Manager, o controller.Options) error {
	members := &v1alpha1.MembershipList{}
	return frame.NewWatch(mgr, "membership", &v1alpha1.Membership{}, o).
		OnReferred(&v1alpha1.User{}, c.catalog.Referrers(members, catalog.IndexUser)).
		OnReferred(&v1alpha1.Group{}, c.catalog.Referrers(members, catalog.IndexGroup)).
		OnReferred(&v1alpha1.Project{}, c.catalog.Referrers(members, catalog.IndexProject)).
		// A membership of a group changes the role that comes out further down; one of a project only there.
		OnDeclared(&v1alpha1.Membership{}, c.catalog.Peers(members, catalog.IndexUser, c.groupMember)).
		OnDeclared(&v1alpha1.Membership{}, c.catalog.Peers(members, catalog.IndexMember, c.projectMember)).
		OnClaimReleased(&v1alpha1.Membership{}, c.catalog.Waiting(&v1alpha1.Membership{})).
		// Only its readiness tells that one further up has expired.
		OnReady(&v1alpha1.Membership{}, c.catalog.Peers(members, catalog.IndexUser, c.groupMember)).
		Complete(reconcile.AsReconciler(c.client, c))
}

// Reconcile brings one membership up to date.
func (c *Controller) Reconcile(ctx context.Context, m *v1alpha1.Membership) (reconcile.Result, error) {
	return c.frame.Run(ctx, m, c.resolve, c.expire)
}

// resolve shows whom the membership is of and what role comes out.
func (c *Controller) resolve(ctx context.Context, m *v1alpha1.Membership) error {
	m.Status.UserID, m.Status.TargetPath, m.Status.EffectiveRole = 0, "", ""
	u, err := c.catalog.User(ctx, m.Spec.UserRef)
	if err != nil {
		return c.orphans.Unresolved(ctx, m, "userRef", m.Spec.UserRef, err)
	}
	of, err := c.target(ctx, m, u)
	if err != nil {
		return err
	}
	k := claim.Membership(of.uid, u.UID)
	if err := reference.Take(ctx, c.catalog, m, of.holder, k, "the membership of %s in %s", u.Spec.Username, of.path); err != nil {
		return err
	}
	m.Status.UserID, m.Status.TargetPath, m.Status.EffectiveRole = u.RESTID(), of.path, declared(of.role)
	return nil
}

// target is what a membership is of.
type target struct {
	uid    types.UID
	path   string
	role   role.Role
	holder *v1alpha1.Membership
}

func (c *Controller) target(ctx context.Context, m *v1alpha1.Membership, u *v1alpha1.User) (of target, err error) {
	if m.Spec.GroupRef != nil {
		g, err := c.catalog.Group(ctx, m.Namespace, *m.Spec.GroupRef)
		if err != nil {
			return of, reference.Unresolved("groupRef", err)
		}
		chain, err := c.catalog.Ancestors(ctx, g)
		if err != nil {
			return of, reference.Unresolved("groupRef", err)
		}
		of.uid, of.path = g.UID, catalog.FullPath(chain)
		if err := reference.Reachable(ctx, c.catalog, "groupRef", g, of.path); err != nil {
			return of, err
		}
		if of.holder, err = c.catalog.GroupMembership(ctx, u, g); err != nil {
			return of, err
		}
		of.role, err = c.catalog.GroupRole(ctx, u, g, c.clock.Now())
		return of, err
	}
	p, err := c.catalog.Project(ctx, m.Namespace, *m.Spec.ProjectRef)
	if err != nil {
		return of, reference.Unresolved("projectRef", err)
	}
	chain, err := c.catalog.GroupsOf(ctx, p)
	if err != nil {
		return of, reference.Unresolved("projectRef", err)
	}
	of.uid, of.path = p.UID, catalog.FullPath(chain, p.Spec.Path)
	if err := reference.Reachable(ctx, c.catalog, "projectRef", p, of.path); err != nil {
		return of, err
	}
	if of.holder, err = c.catalog.ProjectMembership(ctx, u, p); err != nil {
		return of, err
	}
	of.role, err = c.catalog.ProjectRole(ctx, u, p, c.clock.Now())
	return of, err
}

// declared is the API's name of a role; empty for none.
func declared(r role.Role) v1alpha1.Role {
	if r == role.None {
		return ""
	}
	return v1alpha1.Role(r.String())
}

// expire shows a membership that has ended, and looks again when that will be.
func (c *Controller) expire(_ context.Context, m *v1alpha1.Membership) error {
	if m.Spec.ExpiresAt == nil {
		return nil
	}
	if now := c.clock.Now(); !catalog.Expired(m, now) {
		return frame.Again(m.Spec.ExpiresAt.Sub(now))
	}
	return frame.Stalled(v1alpha1.ReasonExpired, "the membership ended at %s", m.Spec.ExpiresAt.UTC().Format(time.RFC3339))
}

// groupMember maps the membership of a group to the keys of its user.
func (c *Controller) groupMember(ctx context.Context, obj client.Object) []string {
	m := obj.(*v1alpha1.Membership)
	u, err := c.catalog.User(ctx, m.Spec.UserRef)
	if err != nil || m.Spec.GroupRef == nil {
		return nil
	}
	return catalog.UserKeys(u)
}

// projectMember maps the membership of a project to the keys of all memberships of the same user in it.
func (c *Controller) projectMember(ctx context.Context, obj client.Object) []string {
	m := obj.(*v1alpha1.Membership)
	if m.Spec.ProjectRef == nil {
		return nil
	}
	u, err := c.catalog.User(ctx, m.Spec.UserRef)
	if err != nil {
		return nil
	}
	p, err := c.catalog.Project(ctx, m.Namespace, *m.Spec.ProjectRef)
	if err != nil {
		return nil
	}
	return catalog.MemberKeys(catalog.UserKeys(u), c.catalog.ProjectKeys(ctx, p))
}
