package declaredid

import (
	"context"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/fieldmanager"
	"github.com/forgeplane/forgeplane/internal/ids"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

func ofNamespace(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}
}

// recorded reconciles the namespace of a record.
var recorded = handler.EnqueueRequestsFromMapFunc(func(_ context.Context, binding client.Object) []reconcile.Request {
	if namespace := ids.RecordedNamespace(binding); namespace != "" {
		return []reconcile.Request{ofNamespace(namespace)}
	}
	return nil
})

// gone reconciles a namespace that is gone.
var gone = handler.Funcs{DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { q.Add(ofNamespace(e.Object.GetName())) }}

// declared reconciles the namespace of an object that is declared with its id and not recorded yet, and at once those of other objects that
// are recorded with this id.
func (c *Controller) declared() handler.Funcs {
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { c.wake(ctx, e.Object, q, false) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) { c.wake(ctx, e.ObjectNew, q, false) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { c.wake(ctx, e.Object, q, true) },
	}
}

func (c *Controller) wake(ctx context.Context, obj client.Object, q queue, deleted bool) {
	identified := obj.(v1alpha1.Identified)
	if identified.RESTID() == 0 {
		return
	}
	names, err := c.ids.Recorded(ctx, obj, identified.RESTID())
	if err != nil {
		log.FromContext(ctx).Error(err, "Failed to look up who had an id")
		q.Add(ofNamespace(obj.GetNamespace()))
		return
	}
	this := client.ObjectKeyFromObject(obj)
	for _, name := range names {
		if name != this || deleted { // then others may have waited for the id
			q.Add(ofNamespace(name.Namespace))
		}
	}
	switch {
	case deleted || slices.Contains(names, this):
	case fieldmanager.DeclaresID(obj):
		q.AddAfter(ofNamespace(obj.GetNamespace()), c.later)
	case c.outdated(ctx, obj):
		q.Add(ofNamespace(obj.GetNamespace()))
	}
}

// outdated reports whether another id of an object is recorded, which an earlier object of this name had.
func (c *Controller) outdated(ctx context.Context, obj client.Object) bool {
	var binding rbacv1.RoleBinding
	d, err := c.ids.DeclarerOf(obj)
	if err != nil || c.client.Get(ctx, c.ids.BindingKey(obj.GetNamespace()), &binding) != nil {
		return false // without a record, nothing is outdated
	}
	return slices.ContainsFunc(binding.Subjects, func(s rbacv1.Subject) bool {
		_, recorded := ids.Record([]rbacv1.Subject{s}, types.UID(s.Namespace))[d]
		return recorded
	})
}
