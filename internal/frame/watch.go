package frame

import (
	"context"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
)

// Watch configures what triggers the controller of one kind.
type Watch struct{ builder *builder.Builder }

// Watch returns a watch on the kind of the frame, and on what follows from the interfaces of the kind: on objects that release an id or a
// claim that others wait for, and on the targets of Targeted objects. The frame's own write of a status does not trigger a reconcile if one
// is due anyway.
func (f *Frame[T]) Watch(mgr manager.Manager, o controller.Options) *Watch {
	kind := f.kind()
	list := kind.NewList()
	b := ctrlBuilder(mgr, strings.ToLower(kindOf(kind)), o).For(kind, builder.WithPredicates(f.news()))
	w := &Watch{b.Watches(kind, first, builder.WithPredicates(unseen))}
	if f.IDs != nil {
		w.OnReleased(kind, f.Catalog.Peers(list, catalog.IndexID, catalog.SpecID))
	}
	if f.claims != nil {
		w.OnClaimReleased(kind, f.Catalog.Waiting(kind))
	}
	if targeted, ok := kind.(v1alpha1.Targeted); ok {
		f.onTarget(w, &v1alpha1.Project{}, f.Catalog.Referrers(list, catalog.IndexProject))
		if project, _ := targeted.TargetRefs(); project == nil { // the target can also be a group
			f.onTarget(w, &v1alpha1.Group{}, f.Catalog.Referrers(list, catalog.IndexGroup))
		}
	}
	return w
}

// news drops the events of the frame's own writes of the status of objects that are retried after a delay. Otherwise, each attempt with another
// message would cause the next one at once, and the delay would have no effect. It lets through every other write of a status: those of others,
// and those after which nothing is due, because a step may continue once it sees its result stored. The optimistic lock makes a write known by
// the version that it replaces, which is known before the event.
func (f *Frame[T]) news() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		// After a relist, one event can contain both this write and a later change of the declaration.
		return !f.replaced.CompareAndDelete(e.ObjectOld.GetUID(), e.ObjectOld.GetResourceVersion()) || declared.Update(e)
	}, DeleteFunc: func(e event.DeleteEvent) bool {
		f.replaced.Delete(e.Object.GetUID())
		return true
	}}
}

func (f *Frame[T]) onTarget(w *Watch, target client.Object, affected handler.MapFunc) {
	if f.content {
		w.OnReferred(target, affected)
	} else {
		w.OnPart(target, catalog.Standing, affected)
	}
}

func ctrlBuilder(mgr manager.Manager, name string, o controller.Options) *builder.Builder {
	return builder.ControllerManagedBy(mgr).Named(name).WithOptions(o)
}

// OnReferred reconciles the objects that affected returns when an object that they may refer to appears, changes or disappears. It ignores
// the initial list, because everything in it is reconciled anyway.
func (w *Watch) OnReferred(obj client.Object, affected handler.MapFunc) *Watch {
	w.builder.Watches(obj, handler.EnqueueRequestsFromMapFunc(affected), builder.WithPredicates(later))
	return w
}

// OnDeclared is OnReferred for objects that depend only on the declaration of obj: it ignores changes of the status.
func (w *Watch) OnDeclared(obj client.Object, affected handler.MapFunc) *Watch {
	w.builder.Watches(obj, handler.EnqueueRequestsFromMapFunc(affected), builder.WithPredicates(later, declared))
	return w
}

// OnPart is OnDeclared for objects that also depend on another part of obj, such as a part of its status.
func (w *Watch) OnPart(obj client.Object, part func(client.Object) string, affected handler.MapFunc) *Watch {
	w.builder.Watches(obj, handler.EnqueueRequestsFromMapFunc(affected), builder.WithPredicates(later, changed(part)))
	return w
}

// OnCounted reconciles the objects that affected returns when obj appears, disappears, or changes in a part, such as a part of its status.
// It does so after a delay, so that many changes at a time cause only one reconcile.
func (w *Watch) OnCounted(obj client.Object, part func(client.Object) string, later time.Duration, affected handler.MapFunc) *Watch {
	w.builder.Watches(obj, counted(part, later, affected))
	return w
}

func counted(part func(client.Object) string, later time.Duration, affected handler.MapFunc) handler.Funcs {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	wake := func(ctx context.Context, q queue, objects ...client.Object) {
		for _, obj := range objects {
			for _, request := range affected(ctx, obj) {
				q.AddAfter(request, later)
			}
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) {
			if !e.IsInInitialList {
				wake(ctx, q, e.Object)
			}
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			if part(e.ObjectOld) != part(e.ObjectNew) {
				wake(ctx, q, e.ObjectOld, e.ObjectNew)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { wake(ctx, q, e.Object) },
	}
}

// OnReady reconciles the objects that affected returns when obj comes into force, is no longer in force, or disappears.
func (w *Watch) OnReady(obj client.Object, affected handler.MapFunc) *Watch {
	w.builder.Watches(obj, handler.EnqueueRequestsFromMapFunc(affected), builder.WithPredicates(later, readiness))
	return w
}

// OnReleased reconciles the objects that affected returns when an object changes its declaration or disappears, because it may release a
// name or an id that others wait for. A new object changes its declaration when it gets its id. An object that is created with an id does
// not, but it may have been created in the same second as another object with the same claim, and take precedence over it.
func (w *Watch) OnReleased(obj client.Object, affected handler.MapFunc) *Watch {
	w.builder.Watches(obj, handler.EnqueueRequestsFromMapFunc(affected), builder.WithPredicates(released))
	return w
}

// OnClaimReleased reconciles the objects that wait for a claim when the status of obj no longer shows the claim, or obj is gone. waiting
// returns, and forgets, their names by the canonical form of the claim.
func (w *Watch) OnClaimReleased(obj client.Object, waiting func(key string) []types.NamespacedName) *Watch {
	wake := func(released []string, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		for _, key := range released {
			for _, name := range waiting(key) {
				q.Add(reconcile.Request{NamespacedName: name})
			}
		}
	}
	w.builder.Watches(obj, handler.Funcs{
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			had, has := e.ObjectOld.(v1alpha1.Object).GetCommonStatus().Claims, e.ObjectNew.(v1alpha1.Object).GetCommonStatus().Claims
			if !slices.Equal(had, has) {
				wake(slices.DeleteFunc(slices.Clone(had), func(key string) bool { return slices.Contains(has, key) }), q)
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			wake(e.Object.(v1alpha1.Object).GetCommonStatus().Claims, q)
		},
	})
	return w
}

// OnGone calls gone with each object that has disappeared, for state that is kept outside of reconciles.
func (w *Watch) OnGone(obj client.Object, gone func(client.Object)) *Watch {
	w.builder.Watches(obj, handler.Funcs{
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, _ workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			gone(e.Object)
		},
	})
	return w
}

// OnEnded reconciles the objects that arrive through a channel, for example when background work has ended.
func OnEnded[T client.Object](w *Watch, ended <-chan event.TypedGenericEvent[T]) *Watch {
	w.builder.WatchesRawSource(source.TypedChannel(ended, &handler.TypedEnqueueRequestForObject[T]{}))
	return w
}

// Complete registers the controller.
func (w *Watch) Complete(r reconcile.Reconciler) error { return w.builder.Complete(r) }

// first enqueues new objects with normal priority, ahead of periodic reconciles: when a process starts, all existing objects are enqueued
// with a low priority.
var first = handler.Funcs{CreateFunc: func(_ context.Context, e event.CreateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	request := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(e.Object)}
	if prioritized, ok := q.(priorityqueue.PriorityQueue[reconcile.Request]); ok {
		prioritized.AddWithOpts(priorityqueue.AddOpts{Priority: ptr.To(0)}, request)
		return
	}
	q.Add(request)
}}

var (
	// unseen lets through objects that were created or changed while no process was running to see it.
	unseen = predicate.Funcs{CreateFunc: func(e event.CreateEvent) bool {
		o, ok := e.Object.(v1alpha1.Object)
		return ok && e.IsInInitialList && o.GetCommonStatus().ObservedGeneration != o.GetGeneration()
	}}

	later = predicate.Funcs{CreateFunc: func(e event.CreateEvent) bool { return !e.IsInInitialList }}

	readiness = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool { return InForce(e.ObjectOld) != InForce(e.ObjectNew) }}

	declared = predicate.Or(predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{})

	released = predicate.And(declared, predicate.Funcs{CreateFunc: func(e event.CreateEvent) bool {
		return !e.IsInInitialList && pinned(e.Object)
	}})
)

// changed lets through changes of the declaration and changes of a part.
func changed(part func(client.Object) string) predicate.Predicate {
	return predicate.Or(declared, predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return part(e.ObjectOld) != part(e.ObjectNew)
	}})
}

// pinned reports whether an object declares an id before it was given one.
func pinned(obj client.Object) bool {
	identified, ok := obj.(v1alpha1.Identified)
	if !ok {
		return false
	}
	spec, status := identified.IDs()
	return *spec != 0 && *status == 0
}

// InForce reports whether an object is ready and not being deleted, and has the effect that it declares: one that is settled, such as one
// that has expired, is not in force.
func InForce(obj client.Object) bool {
	o, ok := obj.(v1alpha1.Object)
	if !ok || !o.GetDeletionTimestamp().IsZero() {
		return false
	}
	ready := meta.FindStatusCondition(o.GetCommonStatus().Conditions, v1alpha1.ConditionReady)
	return ready != nil && ready.Status == metav1.ConditionTrue && ready.Reason == v1alpha1.ReasonReady
}

// AllInForce returns the objects that are in force.
func AllInForce[T client.Object](all []T) []T {
	return slices.DeleteFunc(slices.Clone(all), func(obj T) bool { return !InForce(obj) })
}
