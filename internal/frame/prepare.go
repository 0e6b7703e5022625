package frame

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/fieldmanager"
)

// prepare adds the finalizer, the id and the annotations, and corrects the owner, in one patch, before any step creates something that
// depends on them.
func (f *Frame[T]) prepare(ctx context.Context, obj T) error {
	before := obj.DeepCopyObject().(T)
	changed := f.finalizer != "" && controllerutil.AddFinalizer(obj, f.finalizer)
	owned, err := f.settleOwner(ctx, obj)
	if err != nil {
		return err
	}
	identified, err := f.identify(ctx, obj)
	if o := (*outcome)(nil); errors.As(err, &o) {
		return o // it already has a text for the condition
	} else if err != nil {
		return fmt.Errorf("allocating an id: %w", err)
	}
	annotated := false
	if f.annotate != nil {
		if annotated, err = f.annotate(ctx, obj); err != nil {
			return err
		}
	}
	if !changed && !owned && !identified && !annotated {
		return nil
	}
	// The optimistic lock prevents a stale cache from allocating twice.
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	ctx = audit.WithReason(ctx, audit.Event{Action: "prepare"})
	if err := f.Client.Patch(ctx, obj, patch); apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return errSuperseded
	} else if err != nil {
		return fmt.Errorf("writing the id, finalizer and owner: %w", err)
	}
	return nil
}

// settleOwner makes the target of an object that was created over REST its owner, removes this owner from an object that a user
// declares, and reports whether that changed the object. An object whose owner was deleted does not belong to the next owner of the same
// name.
func (f *Frame[T]) settleOwner(ctx context.Context, obj T) (bool, error) {
	targeted, ok := client.Object(obj).(v1alpha1.Targeted)
	if !ok {
		return false, nil
	}
	if fieldmanager.KeepsOwner(targeted) {
		obj.SetOwnerReferences(slices.DeleteFunc(slices.Clone(obj.GetOwnerReferences()), fieldmanager.IsTarget))
		return true, nil
	}
	owner, err := f.Catalog.Target(ctx, targeted)
	if err != nil {
		return false, nil //nolint:nilerr // a step resolves the same reference and says what is wrong with it
	}
	if slices.ContainsFunc(obj.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.UID == owner.GetUID() }) {
		return false, nil
	}
	// Replacing the reference would make the garbage collector find a living owner, and keep an object that must be deleted.
	former, err := controllerutil.HasOwnerReference(obj.GetOwnerReferences(), owner, f.Client.Scheme())
	if former {
		return false, Waiting(v1alpha1.ReasonReferenceNotFound,
			"the owner %s was deleted and created again; this object belonged to the deleted one and is deleted too", name(owner))
	}
	if err == nil && !fieldmanager.LacksOwner(targeted) {
		return false, nil
	}
	if err == nil {
		err = controllerutil.SetOwnerReference(owner, obj, f.Client.Scheme())
	}
	if err != nil {
		return false, fmt.Errorf("setting the owner of %s: %w", name(obj), err)
	}
	return true, nil
}

// identify sets spec.id if it is missing, and reports whether that changed the object.
func (f *Frame[T]) identify(ctx context.Context, obj T) (bool, error) {
	identified, ok := client.Object(obj).(v1alpha1.Identified)
	if !ok || f.IDs == nil {
		return false, nil
	}
	spec, status := identified.IDs()
	if *spec != 0 {
		return false, nil
	}
	if *status != 0 {
		// A replace dropped the id, which still belongs to the object.
		*spec = *status
		return true, nil
	}
	id, err := f.IDs.Allocate(ctx, identified)
	*spec = id
	return err == nil, err
}

// confirmID puts the id into force, unless another object holds it. An object that had it before must not get it back, so this waits until
// that object can no longer be created with the id.
func (f *Frame[T]) confirmID(ctx context.Context, obj T) error {
	identified, ok := client.Object(obj).(v1alpha1.Identified)
	if !ok {
		return nil
	}
	spec, status := identified.IDs()
	holder, err := f.IDs.Holder(ctx, identified, *spec)
	if err != nil {
		return fmt.Errorf("looking up who holds id %d: %w", *spec, err)
	}
	if holder != nil {
		*status = 0 // only the holder has the id in force
		return Stalled(v1alpha1.ReasonAlreadyExists, "id %d is held by %s; omit spec.id to get a free one",
			*spec, name(holder))
	}
	if *status == *spec {
		return nil
	}
	former, err := f.IDs.Former(ctx, identified, *spec)
	if err != nil {
		return fmt.Errorf("looking up who had id %d: %w", *spec, err)
	}
	if former != "" {
		return Progressing(conflictDelay, v1alpha1.ReasonProgressing, "id %d belonged to %[2]s; waiting until nobody can declare it for %[2]s again", *spec, former)
	}
	*status = *spec
	return nil
}
