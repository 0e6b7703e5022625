// Package membership reconciles memberships: whom they are of, and the role that comes out.
package membership

import (
	"context"
	"time"

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
	"github.com/forgeplane/forgeplane/internal/role"
)

// Controller reconciles memberships.
type Controller struct {
	orphans *orphan.Collector
	clock   clock.PassiveClock
	frame   *frame.Frame[*v1alpha1.Membership]
}

// New returns the controller; o removes what is left of users who are gone.
func New(b frame.Base, o *orphan.Collector, clk clock.PassiveClock) *Controller {
	return &Controller{orphans: o, clock: clk, frame: frame.New(b, frame.WithClaims(catalog.MembershipClaims))}
}

// +kubebuilder:rbac:groups=forgeplane.dev,resources=memberships,verbs=get;patch;delete
// +kubebuilder:rbac:groups=forgeplane.dev,resources=memberships/status,verbs=patch

// SetupWithManager starts the controller with mgr.
func (c *Controller) SetupWithManager(mgr ctrl.Manager, o controller.Options) error {
	members := &v1alpha1.MembershipList{}
	return c.frame.Watch(mgr, o).
		OnReferred(&v1alpha1.User{}, c.frame.Catalog.Referrers(members, catalog.IndexUser)).
		// A membership of a group changes the role that comes out further down; one of a project only there.
		OnDeclared(&v1alpha1.Membership{}, c.frame.Catalog.Peers(members, catalog.IndexUser, c.groupMember)).
		OnDeclared(&v1alpha1.Membership{}, c.frame.Catalog.Peers(members, catalog.IndexMember, c.projectMember)).
		// Only its readiness tells that one further up has expired.
		OnReady(&v1alpha1.Membership{}, c.frame.Catalog.Peers(members, catalog.IndexUser, c.groupMember)).
		Complete(reconcile.AsReconciler(c.frame.Client, c))
}

// Reconcile brings one membership up to date.
func (c *Controller) Reconcile(ctx context.Context, m *v1alpha1.Membership) (reconcile.Result, error) {
	return c.frame.Run(ctx, m, c.resolveUser, frame.InScope(c.frame, frame.Reachable(c.frame), c.show), c.expire)
}

// resolveUser takes back what is shown, and says whether there is the user.
func (c *Controller) resolveUser(ctx context.Context, m *v1alpha1.Membership) error {
	m.Status.UserID, m.Status.TargetPath, m.Status.EffectiveRole = 0, "", ""
	_, err := c.frame.Catalog.User(ctx, m.Spec.UserRef)
	return c.orphans.Unresolved(ctx, m, "userRef", m.Spec.UserRef, err)
}

// show shows whom the membership is of and what role comes out, if it is the only one of the user.
func (c *Controller) show(ctx context.Context, m *v1alpha1.Membership, s catalog.Scope) error {
	u, err := c.frame.Catalog.User(ctx, m.Spec.UserRef)
	if err != nil {
		return frame.Unresolved("userRef", err)
	}
	holder, err := c.frame.Catalog.MembershipIn(ctx, u, s)
	if err != nil {
		return err
	}
	k := claim.Membership(s.Target().GetUID(), u.UID)
	if err := c.frame.Take(ctx, m, holder, k, "the membership of %s in %s", u.Spec.Username, s.Path()); err != nil {
		return err
	}
	roles, err := c.frame.Catalog.RolesIn(ctx, u, s, c.clock.Now())
	if err != nil {
		return err
	}
	m.Status.UserID, m.Status.TargetPath, m.Status.EffectiveRole = u.RESTID(), s.Path(), declared(roles.Highest())
	return nil
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
	u, err := c.frame.Catalog.User(ctx, m.Spec.UserRef)
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
	u, err := c.frame.Catalog.User(ctx, m.Spec.UserRef)
	if err != nil {
		return nil
	}
	p, err := c.frame.Catalog.Project(ctx, m.Namespace, *m.Spec.ProjectRef)
	if err != nil {
		return nil
	}
	return catalog.MemberKeys(catalog.UserKeys(u), c.frame.Catalog.ProjectKeys(ctx, p))
}
