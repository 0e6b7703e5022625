// Package membership reconciles memberships: their users, and the resulting roles.
package membership

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
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

// New returns the controller. o removes the objects of deleted users.
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
		// A membership of a group changes the resulting roles further down; a membership of a project only in that project.
		OnDeclared(&v1alpha1.Membership{}, c.below).
		OnDeclared(&v1alpha1.Membership{}, c.frame.Catalog.Peers(members, catalog.IndexMember, c.projectMember)).
		// Only the condition shows that a membership further up has expired.
		OnReady(&v1alpha1.Membership{}, c.below).
		OnPart(&v1alpha1.Project{}, shares, c.sharing).
		OnPart(&v1alpha1.Group{}, shares, c.sharing).
		OnPart(&v1alpha1.Group{}, catalog.Standing, c.invited).
		Complete(reconcile.AsReconciler(c.frame.Client, c))
}

// Reconcile reconciles one membership.
func (c *Controller) Reconcile(ctx context.Context, m *v1alpha1.Membership) (reconcile.Result, error) {
	return c.frame.Run(ctx, m, c.resolveUser, frame.InScope(c.frame, frame.Reachable(c.frame), c.show), c.expire)
}

// resolveUser clears the status, and sets the user.
func (c *Controller) resolveUser(ctx context.Context, m *v1alpha1.Membership) error {
	m.Status.UserID, m.Status.Username, m.Status.EffectiveRole = 0, "", ""
	u, err := c.frame.Catalog.User(ctx, m.Spec.UserRef)
	if err == nil {
		m.Status.UserID, m.Status.Username = u.RESTID(), u.Spec.Username
	}
	return c.orphans.Unresolved(ctx, m, "userRef", m.Spec.UserRef, err)
}

// show sets the resulting role, if the user has no other membership in the target.
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
	now := c.clock.Now()
	roles, err := c.frame.Catalog.RolesIn(ctx, u, s, now)
	if err != nil {
		return err
	}
	m.Status.EffectiveRole = declared(roles.Highest())
	if end := s.SharesEnd(now); !end.IsZero() {
		return frame.RequeueAfter(end.Sub(now))
	}
	return nil
}

// declared returns the API's name of a role; empty if there is none.
func declared(r role.Role) v1alpha1.Role {
	if r == role.None {
		return ""
	}
	return v1alpha1.Role(r.String())
}

// expire sets the condition of a membership that has ended, and schedules a reconcile for that time.
func (c *Controller) expire(_ context.Context, m *v1alpha1.Membership) error {
	if m.Spec.ExpiresAt == nil {
		return nil
	}
	if now := c.clock.Now(); !catalog.Expired(m, now) {
		return frame.RequeueAfter(m.Spec.ExpiresAt.Sub(now))
	}
	return frame.Settled(v1alpha1.ReasonExpired, "the membership ended at %s", m.Spec.ExpiresAt.UTC().Format(time.RFC3339))
}

// below maps the membership of a group to the memberships of the same user in the group and below it, and in what may be shared with it.
func (c *Controller) below(ctx context.Context, obj client.Object) []reconcile.Request {
	m := obj.(*v1alpha1.Membership)
	if m.Spec.GroupRef == nil {
		return nil
	}
	all := c.frame.Catalog.Peers(&v1alpha1.MembershipList{}, catalog.IndexUser, c.user)(ctx, m)
	group, err := c.frame.Catalog.Target(ctx, m)
	if err != nil {
		return all
	}
	return slices.DeleteFunc(all, func(r reconcile.Request) bool {
		peer, err := catalog.Get[*v1alpha1.Membership](ctx, c.frame.Catalog, r.Namespace, r.Name)
		if err != nil {
			return false
		}
		s, err := c.frame.Catalog.ScopeOf(ctx, peer)
		return err == nil && !s.Shared() && !s.Includes(group.GetUID())
	})
}

// shares is the part of a project or group that says whose members it invites.
func shares(obj client.Object) string {
	declared, recorded := obj.(v1alpha1.Shareable).Shares()
	text, err := json.Marshal([]any{declared, recorded})
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// sharing maps a project or group that is shared to the memberships in it and below it.
func (c *Controller) sharing(ctx context.Context, obj client.Object) []reconcile.Request {
	if declared, _ := obj.(v1alpha1.Shareable).Shares(); len(declared) == 0 {
		return nil
	}
	cat, members := c.frame.Catalog, &v1alpha1.MembershipList{}
	inProject := cat.Referrers(members, catalog.IndexProject)
	if _, ok := obj.(*v1alpha1.Project); ok {
		return inProject(ctx, obj)
	}
	below := append(cat.Keys(ctx, obj), cat.KeysBelow(ctx, obj)...)
	all := cat.Peers(members, catalog.IndexGroup, func(context.Context, client.Object) []string { return below })(ctx, obj)
	projects, err := catalog.List[*v1alpha1.Project](ctx, cat, catalog.IndexGroup, below...)
	if err != nil {
		log.FromContext(ctx).Error(err, "Failed to look up the projects below a group", "group", client.ObjectKeyFromObject(obj))
	}
	for _, p := range projects {
		all = append(all, inProject(ctx, p)...)
	}
	return all
}

// invited maps a group to the memberships in what is shared with it: its members are also those of the groups above it.
func (c *Controller) invited(ctx context.Context, obj client.Object) (all []reconcile.Request) {
	keys := c.frame.Catalog.Keys(ctx, obj)
	projects, err := catalog.List[*v1alpha1.Project](ctx, c.frame.Catalog, catalog.IndexInvited, keys...)
	groups, failed := catalog.List[*v1alpha1.Group](ctx, c.frame.Catalog, catalog.IndexInvited, keys...)
	if err := errors.Join(err, failed); err != nil {
		log.FromContext(ctx).Error(err, "Failed to look up what is shared with a group", "group", client.ObjectKeyFromObject(obj))
	}
	for _, p := range projects {
		all = append(all, c.sharing(ctx, p)...)
	}
	for _, g := range groups {
		all = append(all, c.sharing(ctx, g)...)
	}
	return all
}

// user maps a membership to the keys of its user.
func (c *Controller) user(ctx context.Context, obj client.Object) []string {
	u, err := c.frame.Catalog.User(ctx, obj.(*v1alpha1.Membership).Spec.UserRef)
	if err != nil {
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
	p, err := c.frame.Catalog.Target(ctx, m)
	if err != nil {
		return nil
	}
	return catalog.MemberKeys(c.user(ctx, m), c.frame.Catalog.Keys(ctx, p))
}
