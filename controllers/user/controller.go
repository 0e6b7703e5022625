// Package user reconciles users: which user holds which username, address and Kubernetes identity.
package user

import (
	"context"
	"strings"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/claim"
	"github.com/forgeplane/forgeplane/internal/frame"
)

// Controller reconciles users.
type Controller struct {
	frame *frame.Frame[*v1alpha1.User]
}

// New returns the controller.
func New(b frame.Base) *Controller {
	return &Controller{frame.New(b, frame.WithClaims(catalog.UserClaims))}
}

// +kubebuilder:rbac:groups=forgeplane.dev,resources=users,verbs=patch
// +kubebuilder:rbac:groups=forgeplane.dev,resources=users/status,verbs=patch

// SetupWithManager starts the controller with mgr.
func (c *Controller) SetupWithManager(mgr ctrl.Manager, o controller.Options) error {
	return c.frame.Watch(mgr, o).
		OnReleased(&v1alpha1.User{}, c.frame.Catalog.Peers(&v1alpha1.UserList{}, catalog.IndexUsername, username)).
		OnReleased(&v1alpha1.User{}, c.frame.Catalog.Peers(&v1alpha1.UserList{}, catalog.IndexEmail, email)).
		OnReleased(&v1alpha1.User{}, c.frame.Catalog.Peers(&v1alpha1.UserList{}, catalog.IndexKubernetes, kubernetes)).
		Complete(reconcile.AsReconciler(c.frame.Client, c))
}

// Reconcile reconciles one user.
func (c *Controller) Reconcile(ctx context.Context, u *v1alpha1.User) (reconcile.Result, error) {
	return c.frame.Run(ctx, u, c.claimUsername, c.claimEmail, c.claimKubernetes)
}

func (c *Controller) claimUsername(ctx context.Context, u *v1alpha1.User) error {
	holder, err := c.frame.Catalog.UserByUsername(ctx, u.Spec.Username)
	if err != nil {
		return err
	}
	return c.frame.Take(ctx, u, holder, claim.Username(u.Spec.Username), "username %s", u.Spec.Username)
}

func (c *Controller) claimEmail(ctx context.Context, u *v1alpha1.User) error {
	if u.Spec.Email == "" {
		return nil
	}
	holder, err := c.frame.Catalog.UserByEmail(ctx, u.Spec.Email)
	if err != nil {
		return err
	}
	return c.frame.Take(ctx, u, holder, claim.Email(u.Spec.Email), "email %s", u.Spec.Email)
}

func (c *Controller) claimKubernetes(ctx context.Context, u *v1alpha1.User) error {
	k := u.Spec.Kubernetes
	if k == nil {
		return nil
	}
	holder, err := c.frame.Catalog.UserByKubernetes(ctx, k.Username)
	if err != nil {
		return err
	}
	return c.frame.Take(ctx, u, holder, claim.Kubernetes(k.Username), "the Kubernetes identity %s", k.Username)
}

func username(_ context.Context, obj client.Object) []string {
	return []string{strings.ToLower(obj.(*v1alpha1.User).Spec.Username)}
}

func email(_ context.Context, obj client.Object) []string {
	if e := obj.(*v1alpha1.User).Spec.Email; e != "" {
		return []string{strings.ToLower(e)}
	}
	return nil
}

func kubernetes(_ context.Context, obj client.Object) []string {
	if k := obj.(*v1alpha1.User).Spec.Kubernetes; k != nil {
		return []string{k.Username}
	}
	return nil
}
