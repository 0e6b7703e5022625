// Package variable reconciles CI variables: it ensures that a key exists only once, and keeps a copy of the declared value in the namespace of
// the platform, from which jobs and the REST API read it.
package variable

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/credential"
	"github.com/forgeplane/forgeplane/internal/frame"
	"github.com/forgeplane/forgeplane/internal/variable"
)

// Options configure the controller.
type Options struct {
	// Secrets reads Secrets past the cache, which does not have the content of those with declared values, and can be behind.
	Secrets client.Reader
	// Store finds the values that are in force.
	Store *credential.Store
	// Namespace is the platform's namespace, which has the variables of the installation.
	Namespace string
	// Clock measures how long a new variable has had no value.
	Clock clock.PassiveClock
}

// Controller reconciles variables.
type Controller struct {
	variables *variable.Variables
	options   Options
	frame     *frame.Frame[*v1alpha1.Variable]
}

// New returns the controller.
func New(b frame.Base, o Options) *Controller {
	return &Controller{variables: variable.New(b.Catalog, o.Namespace), options: o, frame: frame.New(b, frame.WithClaims(variable.Claims))}
}

// +kubebuilder:rbac:groups=forgeplane.dev,resources=variables,verbs=patch
// +kubebuilder:rbac:groups=forgeplane.dev,resources=variables/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=list;watch
// +kubebuilder:rbac:groups="",namespace=forgeplane-system,resources=secrets,verbs=list;watch;create;patch

// SetupWithManager starts the controller with mgr.
func (c *Controller) SetupWithManager(mgr ctrl.Manager, o controller.Options) error {
	all := &v1alpha1.VariableList{}
	return c.frame.Watch(mgr, o).
		OnReferred(&corev1.Secret{}, c.frame.Catalog.Peers(all, credential.IndexSecret, credential.Keys)).
		OnReleased(&v1alpha1.Variable{}, c.frame.Catalog.Peers(all, variable.IndexKey, variable.Rivals(c.frame.Catalog))).
		Complete(reconcile.AsReconciler(c.frame.Client, c))
}

// Reconcile reconciles one variable.
func (c *Controller) Reconcile(ctx context.Context, v *v1alpha1.Variable) (reconcile.Result, error) {
	if v.OfInstallation() {
		return c.frame.Run(ctx, v, c.inPlatform, c.value)
	}
	return c.frame.Run(ctx, v, frame.InScope(c.frame, c.claim, frame.Reachable(c.frame)), c.value)
}

// inPlatform accepts variables of the installation only in the namespace of the platform, in which tenants cannot write.
func (c *Controller) inPlatform(ctx context.Context, v *v1alpha1.Variable) error {
	if v.Namespace != c.options.Namespace {
		return frame.Stalled(v1alpha1.ReasonInvalid,
			"neither projectRef nor groupRef is set, so the variable is for the whole installation: it must be in the namespace %s; for a project or group, make a new object with the reference",
			c.options.Namespace)
	}
	return c.claim(ctx, v, catalog.Scope{})
}

// claim prevents a project, a group or the installation from having a key twice with the same environment scope.
func (c *Controller) claim(ctx context.Context, v *v1alpha1.Variable, s catalog.Scope) error {
	holder, err := c.variables.Holder(ctx, s, v.Spec.Key, v.Spec.EnvironmentScope)
	if err != nil {
		return err
	}
	of := "the installation"
	if !v.OfInstallation() {
		of = s.Path()
	}
	return c.frame.Take(ctx, v, holder, variable.ClaimIn(s, v), "the key %s with the environment scope %s in %s",
		v.Spec.Key, v.Spec.EnvironmentScope, of)
}
