// Package group reconciles groups: their place in the tree, and which group holds which full path.
package group

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/frame"
)

// Controller reconciles groups.
type Controller struct {
	clock clock.PassiveClock
	frame *frame.Frame[*v1alpha1.Group]
}

// New returns the controller.
func New(b frame.Base, clk clock.PassiveClock) *Controller {
	c := &Controller{clock: clk}
	c.frame = frame.New(b, frame.WithAnnotations(c.own), frame.WithClaims(catalog.GroupClaims))
	return c
}

// +kubebuilder:rbac:groups=forgeplane.dev,resources=groups,verbs=patch
// +kubebuilder:rbac:groups=forgeplane.dev,resources=groups/status,verbs=patch

// SetupWithManager starts the controller with mgr.
func (c *Controller) SetupWithManager(mgr ctrl.Manager, o controller.Options) error {
	groups := &v1alpha1.GroupList{}
	return c.frame.Watch(mgr, o).
		OnReferred(&v1alpha1.Group{}, c.frame.Catalog.Referrers(groups, catalog.IndexGroup)).
		OnReferred(&v1alpha1.Group{}, c.frame.Catalog.Referrers(groups, catalog.IndexInvited)).
		OnReleased(&v1alpha1.Group{}, c.frame.Catalog.Peers(groups, catalog.IndexPathClaim, c.frame.Catalog.ClaimKeys)).
		OnReleased(&v1alpha1.Project{}, c.frame.Catalog.Peers(groups, catalog.IndexPathClaim, c.frame.Catalog.ClaimKeys)).
		OnReleased(&v1alpha1.User{}, c.frame.Catalog.Peers(groups, catalog.IndexPathClaim, c.frame.Catalog.ClaimKeys)).
		OnClaimReleased(&v1alpha1.Project{}, c.frame.Catalog.Waiting(&v1alpha1.Group{})).
		OnReferred(&corev1.Namespace{}, c.inNamespace).
		Complete(reconcile.AsReconciler(c.frame.Client, c))
}

// Reconcile reconciles one group.
func (c *Controller) Reconcile(ctx context.Context, g *v1alpha1.Group) (reconcile.Result, error) {
	return c.frame.Run(ctx, g, c.recordParent, frame.RecordShares(c.frame), c.claimPath, c.awaitOwner, frame.ResolveShares(c.frame))
}

// recordParent records to which group a path or an id led, for as long as the reference does not change.
func (c *Controller) recordParent(ctx context.Context, g *v1alpha1.Group) error {
	if !catalog.Recorded(g) {
		g.Status.ParentRef = nil
	}
	parent, err := c.frame.Catalog.Parent(ctx, g)
	if err == nil && parent != nil && g.Spec.ParentRef.Name == "" {
		led := *g.Spec.ParentRef
		led.UID = string(parent.UID)
		g.Status.ParentRef = &led
	}
	return nil // the next step reports the problem with the reference
}

// claimPath puts the full path into force, unless it is not available.
func (c *Controller) claimPath(ctx context.Context, g *v1alpha1.Group) error {
	chain, err := c.frame.Catalog.Ancestors(ctx, g)
	scope := catalog.Scope{Groups: chain}
	if err == nil {
		err = c.frame.TakePath(ctx, g, scope)
	}
	if err != nil {
		g.Status.FullPath, g.Status.Visibility = "", ""
		return frame.Unresolved("parentRef", err)
	}
	g.Status.FullPath, g.Status.Visibility = scope.Path(), catalog.Visibility(g.Spec.Visibility, chain)
	return nil
}

// inNamespace maps a namespace, whose labels a parent group can select, to the groups in it.
func (c *Controller) inNamespace(ctx context.Context, ns client.Object) []reconcile.Request {
	var groups v1alpha1.GroupList
	if err := c.frame.Client.List(ctx, &groups, client.InNamespace(ns.GetName())); err != nil {
		log.FromContext(ctx).Error(err, "Failed to list the groups of a namespace", "namespace", ns.GetName())
		return nil
	}
	requests := make([]reconcile.Request, len(groups.Items))
	for i := range groups.Items {
		requests[i].NamespacedName = client.ObjectKeyFromObject(&groups.Items[i])
	}
	return requests
}
