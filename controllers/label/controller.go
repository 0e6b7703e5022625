// Package label reconciles labels: it shows their colors, and that a project has each title once, its groups' labels included.
package label

import (
	"context"

	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/claim"
	"github.com/forgeplane/forgeplane/internal/frame"
	"github.com/forgeplane/forgeplane/internal/label"
	"github.com/forgeplane/forgeplane/internal/reference"
)

// Controller reconciles labels.
type Controller struct {
	client  client.Client
	catalog *catalog.Catalog
	frame   *frame.Frame[*v1alpha1.Label]
}

// New returns the controller.
func New(c client.Client, r events.EventRecorder, cat *catalog.Catalog, ids frame.Allocator) *Controller {
	return &Controller{
		client: c, catalog: cat,
		frame: frame.New(c, r,
			frame.WithIDs[*v1alpha1.Label](ids),
			frame.WithClaims(cat.Register(), cat.LabelClaims),
			frame.WithOwner(func(ctx context.Context, l *v1alpha1.Label) (client.Object, error) {
				return cat.Target(ctx, l.Namespace, l.Spec.ProjectRef, l.Spec.GroupRef)
			})),
	}
}

// +kubebuilder:rbac:groups=forgeplane.dev,resources=labels,verbs=patch
// +kubebuilder:rbac:groups=forgeplane.dev,resources=labels/status,verbs=patch

// SetupWithManager starts the controller with mgr.
func (c *Controller) SetupWithManager(mgr ctrl.Manager, o controller.Options) error {
	all := &v1alpha1.LabelList{}
	// A project may have many labels, and each push changes its status.
	return frame.NewWatch(mgr, "label", &v1alpha1.Label{}, o).
		OnPart(&v1alpha1.Project{}, catalog.Standing, c.catalog.Referrers(all, catalog.IndexProject)).
		OnPart(&v1alpha1.Group{}, catalog.Standing, c.catalog.Referrers(all, catalog.IndexGroup)).
		OnReleased(&v1alpha1.Label{}, c.catalog.LabelRivals).
		OnReleased(&v1alpha1.Label{}, c.catalog.Peers(all, catalog.IndexID, catalog.SpecID)).
		OnClaimReleased(&v1alpha1.Label{}, c.catalog.Waiting(&v1alpha1.Label{})).
		Complete(reconcile.AsReconciler(c.client, c))
}

// Reconcile brings one label up to date.
func (c *Controller) Reconcile(ctx context.Context, l *v1alpha1.Label) (reconcile.Result, error) {
	return c.frame.Run(ctx, l, c.reconcile)
}

// reconcile looks up what the label is for, and does the rest with it.
func (c *Controller) reconcile(ctx context.Context, l *v1alpha1.Label) error {
	hex, isColor := label.Hex(l.Spec.Color)
	l.Status.Color, l.Status.TextColor, l.Status.TargetPath = hex, "", ""
	if isColor {
		l.Status.TextColor = label.TextColor(hex)
	}
	field := "projectRef"
	if l.Spec.GroupRef != nil {
		field = "groupRef"
	}
	scope, err := c.catalog.LabelScope(ctx, l)
	if err != nil {
		return reference.Unresolved(field, err)
	}
	l.Status.TargetPath = scope.Path()
	if !isColor {
		return frame.Stalled(v1alpha1.ReasonInvalid, "color %s is none: it is to be #RGB, #RRGGBB or the name of a color of CSS", l.Spec.Color)
	}
	if err := c.claim(ctx, l, scope); err != nil {
		return err
	}
	return reference.Reachable(ctx, c.catalog, field, scope.Target(), scope.Path())
}

// claim keeps a title from being there twice for a project.
func (c *Controller) claim(ctx context.Context, l *v1alpha1.Label, scope catalog.Scope) error {
	holder, err := c.catalog.LabelHolder(ctx, scope, l.Spec.Title)
	if err != nil {
		return err
	}
	k := claim.Label(scope.Target().GetUID(), l.Spec.Title)
	return reference.Take(ctx, c.catalog, l, holder, k, "the title %s in %s", l.Spec.Title, scope.Path())
}
