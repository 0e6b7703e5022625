// Package toy reconciles toys: it shows what each is of.
package toy

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/frame"
)

// Controller reconciles toys.
type Controller struct {
	frame *frame.Frame[*v1alpha1.Toy]
}

// New returns the controller.
func New(b frame.Base) *Controller { return &Controller{frame.New[*v1alpha1.Toy](b)} }

// +kubebuilder:rbac:groups=forgeplane.dev,resources=toys,verbs=patch
// +kubebuilder:rbac:groups=forgeplane.dev,resources=toys/status,verbs=patch

// SetupWithManager starts the controller with mgr.
func (c *Controller) SetupWithManager(mgr ctrl.Manager, o controller.Options) error {
	return c.frame.Watch(mgr, o).Complete(reconcile.AsReconciler(c.frame.Client, c))
}

// Reconcile brings one toy up to date.
func (c *Controller) Reconcile(ctx context.Context, t *v1alpha1.Toy) (reconcile.Result, error) {
	return c.frame.Run(ctx, t, frame.InScope(c.frame, frame.Reachable(c.frame)))
}
