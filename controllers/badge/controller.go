// Package badge reconciles badges: it shows their URLs with the placeholders filled in.
package badge

import (
	"context"

	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/badge"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/frame"
	"github.com/forgeplane/forgeplane/internal/reference"
)

// Controller reconciles badges.
type Controller struct {
	client  client.Client
	catalog *catalog.Catalog
	frame   *frame.Frame[*v1alpha1.Badge]
}

// New returns the controller.
func New(c client.Client, r events.EventRecorder, cat *catalog.Catalog, ids frame.Allocator) *Controller {
	return &Controller{
		client: c, catalog: cat,
		frame: frame.New(c, r,
			frame.WithIDs[*v1alpha1.Badge](ids),
			frame.WithOwner(func(ctx context.Context, b *v1alpha1.Badge) (client.Object, error) {
				return cat.Target(ctx, b.Namespace, b.Spec.ProjectRef, b.Spec.GroupRef)
			})),
	}
}

// +kubebuilder:rbac:groups=forgeplane.dev,resources=badges,verbs=patch
// +kubebuilder:rbac:groups=forgeplane.dev,resources=badges/status,verbs=patch

// SetupWithManager starts the controller with mgr.
func (c *Controller) SetupWithManager(mgr ctrl.Manager, o controller.Options) error {
	all := &v1alpha1.BadgeList{}
	return frame.NewWatch(mgr, "badge", &v1alpha1.Badge{}, o).
		OnReferred(&v1alpha1.Project{}, c.catalog.Referrers(all, catalog.IndexProject)).
		OnReferred(&v1alpha1.Group{}, c.catalog.Referrers(all, catalog.IndexGroup)).
		OnReleased(&v1alpha1.Badge{}, c.catalog.Peers(all, catalog.IndexID, catalog.SpecID)).
		Complete(reconcile.AsReconciler(c.client, c))
}

// Reconcile brings one badge up to date.
func (c *Controller) Reconcile(ctx context.Context, b *v1alpha1.Badge) (reconcile.Result, error) {
	return c.frame.Run(ctx, b, c.render)
}

// render shows what the URLs are for the project, or what is known of them for every project of the group.
func (c *Controller) render(ctx context.Context, b *v1alpha1.Badge) error {
	field := "projectRef"
	if b.Spec.GroupRef != nil {
		field = "groupRef"
	}
	scope, err := c.catalog.TargetScope(ctx, b.Namespace, b.Spec.ProjectRef, b.Spec.GroupRef)
	if err != nil {
		b.Status = v1alpha1.BadgeStatus{CommonStatus: b.Status.CommonStatus, ID: b.Status.ID}
		return reference.Unresolved(field, err)
	}
	values := badge.ValuesOf(scope)
	b.Status.TargetPath = scope.Path()
	b.Status.RenderedLinkURL = badge.Render(b.Spec.LinkURL, values)
	b.Status.RenderedImageURL = badge.Render(b.Spec.ImageURL, values)
	return reference.Reachable(ctx, c.catalog, field, scope.Target(), scope.Path())
}
