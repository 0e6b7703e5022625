package frame

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/fieldmanager"
)

// conclude sets the conditions from the result of the steps.
func (f *Frame[T]) conclude(obj T, err error) {
	ready, present, reason, message := metav1.ConditionFalse, v1alpha1.ConditionReconciling, v1alpha1.ReasonFailed, ""
	var o *outcome
	if errors.As(err, &o) {
		reason = o.reason
	}
	switch {
	case err == nil:
		ready, present, reason = metav1.ConditionTrue, "", v1alpha1.ReasonReady
	case is(err, settled):
		ready, present = metav1.ConditionTrue, ""
	case is(err, stalled):
		present = v1alpha1.ConditionStalled
	}
	if err != nil {
		message = Sanitise(err.Error())
	}
	status := obj.GetCommonStatus()
	status.ObservedGeneration = obj.GetGeneration()
	f.set(obj, v1alpha1.ConditionReady, ready, reason, message)
	for _, other := range []string{v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled} {
		if other == present {
			f.set(obj, other, metav1.ConditionTrue, reason, message)
		} else {
			meta.RemoveStatusCondition(&status.Conditions, other)
		}
	}
}

func (f *Frame[T]) set(obj T, conditionType string, value metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&obj.GetCommonStatus().Conditions, metav1.Condition{
		Type: conditionType, Status: value, Reason: reason, Message: message,
		ObservedGeneration: obj.GetGeneration(),
	})
}

// patchStatus writes the difference between the two statuses. If they are equal, it writes nothing. It fails with a conflict if the object has
// changed. Only the optimistic lock ensures that the status of one object is never written to a later object of the same name. If the
// reconcile is retried, the write does not trigger another one.
func (f *Frame[T]) patchStatus(ctx context.Context, before, obj T, retried bool) error {
	// Comparing patches would encode both objects as JSON, for every object at each start.
	if equality.Semantic.DeepEqual(before, obj) {
		return nil
	}
	before.SetResourceVersion(obj.GetResourceVersion()) // a step may have written a part of the status itself
	data, err := client.MergeFrom(before).Data(obj)
	if err != nil {
		return fmt.Errorf("comparing the status of %s: %w", name(obj), err)
	}
	if string(data) == "{}" {
		return nil
	}
	if retried {
		f.replaced.Store(obj.GetUID(), obj.GetResourceVersion()) // before the write, because the event can arrive before the answer
	}
	ctx = identify(ctx, before, obj)
	if err := f.Client.Status().Patch(ctx, obj, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		f.replaced.Delete(obj.GetUID())
		return fmt.Errorf("writing the status of %s: %w", name(obj), err)
	}
	if takes(before, obj) {
		// Until the cache shows the new status, no other object is checked against it.
		if err := f.Client.Get(ctx, client.ObjectKeyFromObject(obj), before.DeepCopyObject().(T)); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("waiting for the status of %s: %w", name(obj), err)
		}
	}
	return nil
}

// identify returns a context for writing a status that records in the audit log if a different id comes into force.
func identify(ctx context.Context, before, obj client.Object) context.Context {
	identified, ok := obj.(v1alpha1.Identified)
	if !ok {
		return ctx
	}
	_, was := before.(v1alpha1.Identified).IDs()
	_, is := identified.IDs()
	if *was == *is {
		return ctx
	}
	return audit.WithReason(ctx, audit.Event{Action: "identify", Reason: fmt.Sprintf("status.id was %d and is %d", *was, *is)})
}

// takes reports whether an object holds a claim that it did not hold before.
func takes[T v1alpha1.Object](before, obj T) bool {
	had := before.GetCommonStatus().Claims
	return slices.ContainsFunc(obj.GetCommonStatus().Claims, func(k string) bool { return !slices.Contains(had, k) })
}

// commitTime is the maximum time in which the objects of one commit are applied, in any order.
const commitTime = time.Minute

// follows reports whether an object waits for another one that may well be part of the same commit.
func follows(obj client.Object, reason string, err error) bool {
	return is(err, waiting) && (reason == v1alpha1.ReasonReferenceNotFound || reason == v1alpha1.ReasonReferenceNotReady) &&
		time.Since(obj.GetCreationTimestamp().Time) < commitTime
}

// tell records an event when the reason of Ready changes: a warning if there is a problem. A new object that becomes ready does not get one:
// it is not worth a write. Neither does an object that goes with another one. err is the result of the steps.
func (f *Frame[T]) tell(ctx context.Context, before, obj T, err error) {
	was := meta.FindStatusCondition(before.GetCommonStatus().Conditions, v1alpha1.ConditionReady)
	is := meta.FindStatusCondition(obj.GetCommonStatus().Conditions, v1alpha1.ConditionReady)
	switch {
	case was != nil && was.Reason == is.Reason, f.goes(ctx, obj):
	case is.Status == metav1.ConditionFalse && !progresses(err) && !follows(obj, is.Reason, err):
		f.Events.Eventf(obj, nil, corev1.EventTypeWarning, is.Reason, "Reconcile", "%s", is.Message)
	case is.Status == metav1.ConditionFalse || was != nil:
		f.Events.Eventf(obj, nil, corev1.EventTypeNormal, is.Reason, "Reconcile", "%s", cmp.Or(is.Message, "in force"))
	}
}

// goes reports whether an object is deleted together with its namespace, which accepts no events any more, or with the project or group that
// owns it. An object that is being deleted itself only has events about what blocks that, so it does not count.
func (f *Frame[T]) goes(ctx context.Context, obj T) bool {
	if obj.GetNamespace() != "" && f.Catalog.Terminating(ctx, obj.GetNamespace()) {
		return true
	}
	targeted, ok := client.Object(obj).(v1alpha1.Targeted)
	if !ok || !fieldmanager.Owned(targeted) || !obj.GetDeletionTimestamp().IsZero() {
		return false
	}
	owner, err := f.Catalog.Target(ctx, targeted)
	if err != nil {
		return errors.Is(err, catalog.ErrNotFound)
	}
	owns := func(r metav1.OwnerReference) bool { return r.UID == owner.GetUID() }
	return !owner.GetDeletionTimestamp().IsZero() || !slices.ContainsFunc(obj.GetOwnerReferences(), owns)
}
