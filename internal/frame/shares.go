package frame

import (
	"context"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
)

// RecordShares returns a step that records to which groups the shares of an object lead. It does not report shares that lead nowhere, so
// that they do not keep the object from working.
func RecordShares[T v1alpha1.Shareable](f *Frame[T]) Step[T] {
	return func(ctx context.Context, obj T) error {
		_, err := f.Catalog.RecordShares(ctx, obj)
		return catalog.IgnoreNotFound(err)
	}
}

// ResolveShares returns a step that reports shares that lead nowhere. It is the last step.
func ResolveShares[T v1alpha1.Shareable](f *Frame[T]) Step[T] {
	return func(ctx context.Context, obj T) error {
		field, err := f.Catalog.RecordShares(ctx, obj)
		return Unresolved(field, err)
	}
}
