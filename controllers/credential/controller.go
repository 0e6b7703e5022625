// Package credential removes Secrets in the platform's namespace with credentials of objects that no longer exist. Owner references cannot
// do that, because they cannot refer to another namespace. From other Secrets it removes the values that Forgeplane generated there for
// such objects, and for objects that now name another Secret or key.
package credential

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/credential"
)

// grace is the time for which a new Secret can exist before an object names it. Its creator writes the name to the status next, within
// seconds.
const grace = 10 * time.Minute

// lag is the maximum delay with which the cache shows a new Secret after the deletion of the object that it was created for.
const lag = time.Minute

// Controller reconciles the Secrets that Forgeplane created for objects of tenants, and those in which it generated values.
type Controller struct {
	client    client.Client
	catalog   *catalog.Catalog
	clock     clock.PassiveClock
	namespace string

	mu sync.Mutex
	// released are the Secrets that objects named until they were deleted or changed, with the UIDs of these objects.
	released map[types.NamespacedName]release
}

// release has the time at which an object last released a Secret, and the UIDs of all objects that did.
type release struct {
	at time.Time
	by map[types.UID]bool
}

// New returns the controller. namespace is the platform's.
func New(c client.Client, cat *catalog.Catalog, clk clock.PassiveClock, namespace string) *Controller {
	return &Controller{client: c, catalog: cat, clock: clk, namespace: namespace, released: map[types.NamespacedName]release{}}
}

// +kubebuilder:rbac:groups="",namespace=forgeplane-system,resources=secrets,verbs=list;watch;patch;delete
// +kubebuilder:rbac:groups="",resources=secrets,verbs=list;watch;patch

// SetupWithManager starts the controller with mgr.
func (c *Controller) SetupWithManager(mgr ctrl.Manager, o controller.Options) error {
	ours := predicate.NewPredicateFuncs(func(s client.Object) bool {
		return c.issued(s) || s.GetAnnotations()[v1alpha1.AnnotationGenerated] != ""
	})
	leave := func(o client.Object, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		if at := c.placeOf(o); at.secret.Name != "" {
			c.release(at.secret, o.GetUID())
			q.Add(reconcile.Request{NamespacedName: at.secret})
		}
	}
	gone := handler.Funcs{DeleteFunc: func(_ context.Context, e event.DeleteEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		leave(e.Object, q)
	}}
	changed := handler.Funcs{DeleteFunc: gone.DeleteFunc, UpdateFunc: func(_ context.Context, e event.UpdateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		if c.placeOf(e.ObjectOld) != c.placeOf(e.ObjectNew) {
			leave(e.ObjectOld, q)
		}
	}}
	// The Secret of a mirror was not generated, and is only removed with the mirror.
	return ctrl.NewControllerManagedBy(mgr).Named("credential").WithOptions(o).For(&corev1.Secret{}, builder.WithPredicates(ours)).
		Watches(&v1alpha1.AccessToken{}, changed).Watches(&v1alpha1.TriggerToken{}, changed).Watches(&v1alpha1.BotToken{}, changed).
		Watches(&v1alpha1.RemoteMirror{}, gone).Watches(&v1alpha1.Variable{}, changed).
		Complete(c)
}

// issued reports whether Forgeplane created a Secret for an object. Administrators can label a Secret for a variable of the installation.
func (c *Controller) issued(s client.Object) bool {
	return s.GetNamespace() == c.namespace && s.GetLabels()[v1alpha1.LabelSecret] != "" && s.GetAnnotations()[v1alpha1.AnnotationHolder] != ""
}

// place is a place for a value that was issued or generated for an object.
type place struct {
	secret types.NamespacedName
	// key is empty if the whole Secret was created for the object.
	key string
}

// placeOf returns the place of a value that was issued or generated for an object; its name is empty if there is none.
func (c *Controller) placeOf(o client.Object) place {
	if name := credential.Issued(o); name != "" {
		return place{secret: types.NamespacedName{Namespace: c.namespace, Name: name}}
	}
	namespace, ref := c.namespace, (*v1alpha1.SecretKeyReference)(nil)
	switch o := o.(type) {
	case *v1alpha1.AccessToken:
		ref = o.Spec.SecretRef
	case *v1alpha1.TriggerToken:
		namespace, ref = o.Namespace, o.Spec.SecretRef
	case *v1alpha1.BotToken:
		namespace, ref = o.Namespace, o.Spec.SecretRef
	}
	if ref == nil {
		return place{}
	}
	return place{secret: types.NamespacedName{Namespace: namespace, Name: ref.Name}, key: ref.Key}
}

func (c *Controller) release(key types.NamespacedName, by types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.released[key]
	if r.by == nil {
		r.by = map[types.UID]bool{}
	}
	r.at, r.by[by] = c.clock.Now(), true
	c.released[key] = r
}

// releasedAt returns when an object last released a Secret; zero if none has.
func (c *Controller) releasedAt(key types.NamespacedName) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.released[key].at
}

// forget returns, and forgets, the objects that named a Secret until they were deleted or changed.
func (c *Controller) forget(key types.NamespacedName) map[types.UID]bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	was := c.released[key].by
	delete(c.released, key)
	return was
}

// Reconcile removes a Secret that no object names, or the values in it that were generated for such objects.
func (c *Controller) Reconcile(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
	var s corev1.Secret
	if err := c.client.Get(ctx, r.NamespacedName, &s); apierrors.IsNotFound(err) {
		if left := lag - c.clock.Since(c.releasedAt(r.NamespacedName)); left > 0 {
			return reconcile.Result{RequeueAfter: left}, nil
		}
		c.forget(r.NamespacedName)
		return reconcile.Result{}, nil
	} else if err != nil {
		return reconcile.Result{}, fmt.Errorf("reading Secret %s: %w", r.Name, err)
	}
	ctx = audit.For(ctx, &s)
	if !c.issued(&s) {
		return c.clear(ctx, &s, c.forget(r.NamespacedName))
	}
	holders, err := credential.Holders(ctx, c.catalog, s.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	for _, h := range holders {
		if credential.Held(&s, s.Labels[v1alpha1.LabelSecret], h) {
			c.forget(r.NamespacedName)
			return reconcile.Result{}, nil
		}
	}
	if age := c.clock.Since(s.CreationTimestamp.Time); age < grace && c.releasedAt(r.NamespacedName).IsZero() {
		return reconcile.Result{RequeueAfter: grace - age}, nil
	}
	// The optimistic lock keeps a Secret that an object has just begun to use.
	told := audit.WithReason(ctx, audit.Event{Action: "remove", Reason: "no object references it"})
	err = c.client.Delete(told, &s, client.Preconditions{UID: &s.UID, ResourceVersion: &s.ResourceVersion})
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("removing the Secret %s, which no object references: %w", s.Name, err)
	}
	c.forget(r.NamespacedName)
	return reconcile.Result{}, nil
}
