// Package credential removes the Secrets of the platform's namespace that hold credentials of objects which are gone. Owner references
// would do so, but cannot lead to another namespace.
package credential

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/credential"
)

// grace is how long a new Secret may wait for an object to name it: who makes one writes that into the status next, within seconds.
const grace = 10 * time.Minute

// Controller looks at the Secrets that Forgeplane has made for objects of tenants.
type Controller struct {
	client    client.Client
	catalog   *catalog.Catalog
	clock     clock.PassiveClock
	namespace string

	mu sync.Mutex
	// released are Secrets that an object named until it went.
	released map[string]bool
}

// New returns the controller; namespace is the platform's.
func New(c client.Client, cat *catalog.Catalog, clk clock.PassiveClock, namespace string) *Controller {
	return &Controller{client: c, catalog: cat, clock: clk, namespace: namespace, released: map[string]bool{}}
}

// +kubebuilder:rbac:groups="",namespace=forgeplane-system,resources=secrets,verbs=list;watch;delete

// SetupWithManager starts the controller with mgr.
func (c *Controller) SetupWithManager(mgr ctrl.Manager, o controller.Options) error {
	ours := predicate.NewPredicateFuncs(func(s client.Object) bool {
		return s.GetNamespace() == c.namespace && s.GetLabels()[v1alpha1.LabelSecret] != ""
	})
	gone := handler.Funcs{DeleteFunc: func(_ context.Context, e event.DeleteEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		if name := catalog.IssuedSecret(e.Object); name != "" {
			c.release(name)
			q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: c.namespace, Name: name}})
		}
	}}
	b := ctrl.NewControllerManagedBy(mgr).Named("credential").WithOptions(o).For(&corev1.Secret{}, builder.WithPredicates(ours))
	for _, kind := range []client.Object{&v1alpha1.TriggerToken{}, &v1alpha1.RemoteMirror{}} {
		b = b.Watches(kind, gone)
	}
	return b.Complete(c)
}

func (c *Controller) release(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.released[name] = true
}

// forget reports whether an object that went has named a Secret, and remembers it no more.
func (c *Controller) forget(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	was := c.released[name]
	delete(c.released, name)
	return was
}

// Reconcile removes a Secret that no object names.
func (c *Controller) Reconcile(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
	var s corev1.Secret
	if err := c.client.Get(ctx, r.NamespacedName, &s); err != nil {
		c.forget(r.Name)
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	holders, err := c.catalog.HoldersOfSecret(ctx, s.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	for _, h := range holders {
		if credential.Held(&s, s.Labels[v1alpha1.LabelSecret], h) {
			c.forget(r.Name)
			return reconcile.Result{}, nil
		}
	}
	if age := c.clock.Since(s.CreationTimestamp.Time); age < grace && !c.forget(r.Name) {
		return reconcile.Result{RequeueAfter: grace - age}, nil
	}
	// The lock keeps one from going that somebody has begun to use.
	err = c.client.Delete(ctx, &s, client.Preconditions{UID: &s.UID, ResourceVersion: &s.ResourceVersion})
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("removing the Secret %s, which no object names: %w", s.Name, err)
	}
	return reconcile.Result{}, nil
}
