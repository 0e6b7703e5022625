// Package label reconciles labels: it shows their colors, and ensures that a project has each title only once, including the labels of its
// groups.
package label

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/claim"
	"github.com/forgeplane/forgeplane/internal/frame"
	"github.com/forgeplane/forgeplane/internal/label"
)

// Controller reconciles labels.
type Controller struct {
	frame *frame.Frame[*v1alpha1.Label]
}

// New returns the controller.
func New(b frame.Base) *Controller {
	return &Controller{frame.New(b, frame.WithClaims(label.Claims))}
}

// +kubebuilder:rbac:groups=forgeplane.dev,resources=labels,verbs=patch
// +kubebuilder:rbac:groups=forgeplane.dev,resources=labels/status,verbs=patch

// SetupWithManager starts the controller with mgr.
func (c *Controller) SetupWithManager(mgr ctrl.Manager, o controller.Options) error {
	return c.frame.Watch(mgr, o).
		OnReleased(&v1alpha1.Label{}, label.Rivals(c.frame.Catalog)).
		Complete(reconcile.AsReconciler(c.frame.Client, c))
}

// Reconcile reconciles one label.
func (c *Controller) Reconcile(ctx context.Context, l *v1alpha1.Label) (reconcile.Result, error) {
	return c.frame.Run(ctx, l, show, frame.InScope(c.frame, check, c.claim, frame.Reachable(c.frame)))
}

// show sets the colors in the status.
func show(_ context.Context, l *v1alpha1.Label) error {
	hex, isColor := label.Hex(l.Spec.Color)
	l.Status.Color, l.Status.TextColor = hex, ""
	if isColor {
		l.Status.TextColor = label.TextColor(hex)
	}
	return nil
}

func check(_ context.Context, l *v1alpha1.Label, _ catalog.Scope) error {
	if _, isColor := label.Hex(l.Spec.Color); !isColor {
		return frame.Stalled(v1alpha1.ReasonInvalid, "color %s is not valid: it must be #RGB, #RRGGBB or the name of a CSS color", l.Spec.Color)
	}
	return nil
}

// claim prevents a project from having the same title twice.
func (c *Controller) claim(ctx context.Context, l *v1alpha1.Label, s catalog.Scope) error {
	holder, err := label.Holder(ctx, c.frame.Catalog, s, l.Spec.Title)
	if err != nil {
		return err
	}
	k := claim.Label(s.Target().GetUID(), l.Spec.Title)
	return c.frame.Take(ctx, l, holder, k, "the title %s in %s", l.Spec.Title, s.Path())
}
