package frame

import (
	"context"
	"errors"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/claim"
)

// Unresolved converts an error of the catalog about the reference in a field of the spec to the outcome of a step. It returns any other
// error unchanged.
func Unresolved(field string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, catalog.ErrParentNotAllowed):
		return Waiting(v1alpha1.ReasonReferenceNotAllowed, "%s: %w", field, err)
	case errors.Is(err, catalog.ErrParentReplaced):
		return Waiting(v1alpha1.ReasonReferenceNotReady, "%s: %w", field, err)
	case errors.Is(err, catalog.ErrRootNotAllowed):
		return Stalled(v1alpha1.ReasonNamespaceNotAllowed, "%s: %w", field, err)
	case errors.Is(err, catalog.ErrRootOfUser):
		return Stalled(v1alpha1.ReasonAlreadyExists, "%w", err)
	case errors.Is(err, catalog.ErrCycle):
		return Stalled(v1alpha1.ReasonReferenceCycle, "%s: %w", field, err)
	case errors.Is(err, catalog.ErrNotFound):
		return Waiting(v1alpha1.ReasonReferenceNotFound, "%s: %w", field, err)
	default:
		return err
	}
}

// TakePath is Take for the full path of obj, which is the group or project of the scope.
func (f *Frame[T]) TakePath(ctx context.Context, obj T, s catalog.Scope) error {
	k := s.PathClaim()
	if parent := s.Parent(); parent != nil && !parent.DeletionTimestamp.IsZero() && !k.ShownBy(obj) {
		return Waiting(v1alpha1.ReasonReferenceNotReady, "the group %s is being deleted and accepts nothing new", s.Parent().Name)
	}
	holder, err := f.Catalog.HolderAt(ctx, s)
	if errors.Is(err, catalog.ErrNotFound) {
		return Waiting(v1alpha1.ReasonReferenceNotReady, "a parent group does not hold its own full path, so nothing in it can be reached")
	}
	if err != nil {
		return err
	}
	return f.Take(ctx, obj, holder, k, "full path %s", s.Path())
}

// Take succeeds if obj holds a claim, or takes it if it is free. holder is the object that holds it according to the declarations; the
// format names what is claimed.
func (f *Frame[T]) Take(ctx context.Context, obj T, holder client.Object, k claim.Claim, format string, args ...any) error {
	if !isNil(holder) && holder.GetUID() != obj.GetUID() {
		claim.Release(obj, k)
		return AlreadyExists(obj, holder, format, args...)
	}
	taken, err := f.Catalog.Take(ctx, obj, k)
	switch {
	case err != nil:
		return err
	case taken.Busy:
		return apierrors.NewConflict(v1alpha1.GroupVersion.WithResource("claims").GroupResource(), k.String(), errBusy)
	case taken.By != nil:
		return Waiting(v1alpha1.ReasonAlreadyExists, format+" is still held by %s %s, which has not released it yet",
			append(args, kindOf(taken.By), nameFor(obj, taken.By))...)
	default:
		return nil
	}
}

// errBusy says that the claim must be tried again.
var errBusy = errors.New("another object is claiming it")

// AlreadyExists returns the outcome for an object whose claim is held by another object, holder.
func AlreadyExists(obj, holder client.Object, format string, args ...any) error {
	args = append(args, kindOf(holder), nameFor(obj, holder))
	return Stalled(v1alpha1.ReasonAlreadyExists, format+" is held by %s %s", args...)
}

// isNil reports whether there is no object, including a nil pointer of any type.
func isNil(obj client.Object) bool { return obj == nil || reflect.ValueOf(obj).IsNil() }

func kindOf(obj client.Object) string { return reflect.TypeOf(obj).Elem().Name() }

// nameFor returns the name of the holder, with its namespace unless that is the namespace of obj.
func nameFor(obj, holder client.Object) string {
	if holder.GetNamespace() == obj.GetNamespace() {
		return holder.GetName()
	}
	return holder.GetNamespace() + "/" + holder.GetName()
}
