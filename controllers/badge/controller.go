// Package badge reconciles badges: it renders their URLs with the placeholders filled in.
package badge

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/badge"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/frame"
)

// Controller reconciles badges.
type Controller struct {
	frame *frame.Frame[*v1alpha1.Badge]
}

// New returns the controller.
func New(b frame.Base) *Controller {
	return &Controller{frame.New(b, frame.WithContent[*v1alpha1.Badge]())} // the content is rendered
}

// +kubebuilder:rbac:groups=forgeplane.dev,resources=badges,verbs=patch
// +kubebuilder:rbac:groups=forgeplane.dev,resources=badges/status,verbs=patch

// SetupWithManager starts the controller with mgr.
func (c *Controller) SetupWithManager(mgr ctrl.Manager, o controller.Options) error {
	return c.frame.Watch(mgr, o).Complete(reconcile.AsReconciler(c.frame.Client, c))
}

// Reconcile reconciles one badge.
func (c *Controller) Reconcile(ctx context.Context, b *v1alpha1.Badge) (reconcile.Result, error) {
	return c.frame.Run(ctx, b, forget, frame.InScope(c.frame, render, frame.Reachable(c.frame)))
}

// forget clears the rendered URLs, which depend on the project or group.
func forget(_ context.Context, b *v1alpha1.Badge) error {
	b.Status = v1alpha1.BadgeStatus{CommonStatus: b.Status.CommonStatus, TargetStatus: b.Status.TargetStatus, ID: b.Status.ID}
	return nil
}

// render sets the URLs for the project, or the parts of them that are the same for every project of the group.
func render(_ context.Context, b *v1alpha1.Badge, s catalog.Scope) error {
	values := badge.ValuesOf(s)
	b.Status.RenderedLinkURL = badge.Render(b.Spec.LinkURL, values)
	b.Status.RenderedImageURL = badge.Render(b.Spec.ImageURL, values)
	return nil
}
