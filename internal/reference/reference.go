// Package reference says in conditions what the catalog found out about references and claims, with the same reasons
// and words for every kind.
package reference

import (
	"context"
	"errors"
	"reflect"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/frame"
)

// Unresolved turns an error of the catalog about the reference in a field of the spec into the outcome of a step. Any
// other error comes back as it is.
func Unresolved(field string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, catalog.ErrParentNotAllowed):
		return frame.Waiting(v1alpha1.ReasonReferenceNotAllowed, "%s: %w", field, err)
	case errors.Is(err, catalog.ErrRootNotAllowed):
		return frame.Stalled(v1alpha1.ReasonNamespaceNotAllowed, "%s: %w", field, err)
	case errors.Is(err, catalog.ErrCycle):
		return frame.Stalled(v1alpha1.ReasonReferenceCycle, "%s: %w", field, err)
	case errors.Is(err, catalog.ErrNotFound):
		return frame.Waiting(v1alpha1.ReasonReferenceNotFound, "%s: %w", field, err)
	default:
		return err
	}
}

// Claim succeeds when obj holds a full path.
func Claim(ctx context.Context, c *catalog.Catalog, obj client.Object, fullPath string) error {
	holder, err := c.ByPath(ctx, fullPath)
	if errors.Is(err, catalog.ErrNotFound) {
		return frame.Waiting(v1alpha1.ReasonReferenceNotReady, "a group above does not hold its own full path, so nothing below it can be reached")
	}
	if err != nil {
		return err
	}
	if holder.GetUID() != obj.GetUID() {
		return AlreadyExists(obj, holder, "full path %s", fullPath)
	}
	return nil
}

// Reachable succeeds when target, which the reference in a field of the spec names, holds its full path.
func Reachable(ctx context.Context, c *catalog.Catalog, field string, target client.Object, fullPath string) error {
	holder, err := c.ByPath(ctx, fullPath)
	switch {
	case errors.Is(err, catalog.ErrNotFound), err == nil && holder.GetUID() != target.GetUID():
		return frame.Waiting(v1alpha1.ReasonReferenceNotReady, "%s: the %s %s does not hold its full path %s",
			field, kind(target), target.GetName(), fullPath)
	default:
		return err
	}
}

// AlreadyExists is the outcome for an object that claims what holder, another one, holds.
func AlreadyExists(obj, holder client.Object, format string, args ...any) error {
	args = append(args, kind(holder), name(obj, holder))
	return frame.Stalled(v1alpha1.ReasonAlreadyExists, format+" is held by the older %s %s", args...)
}

func kind(obj client.Object) string { return reflect.TypeOf(obj).Elem().Name() }

// name leaves the namespace out where it is the reader's own.
func name(obj, holder client.Object) string {
	if holder.GetNamespace() == obj.GetNamespace() {
		return holder.GetName()
	}
	return holder.GetNamespace() + "/" + holder.GetName()
}
