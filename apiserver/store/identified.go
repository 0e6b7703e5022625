package store

import (
	"cmp"
	"context"
	"slices"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/internal/catalog"
)

// Own returns all of a project's own objects of a kind. They are shared with the cache.
type Own[T v1alpha1.Identified] func(ctx context.Context, c *catalog.Catalog, in catalog.Scope) ([]T, error)

// OfProject returns an Own for a kind that only projects have.
func OfProject[T v1alpha1.Identified](all func(context.Context, *catalog.Catalog, *v1alpha1.Project) ([]T, error)) Own[T] {
	return func(ctx context.Context, c *catalog.Catalog, in catalog.Scope) ([]T, error) {
		return all(ctx, c, in.Project)
	}
}

// Identified is a Store of objects that requests name by REST id.
type Identified[T v1alpha1.Identified] struct {
	*Store[int64, T]
	catalog *catalog.Catalog
	own     Own[T]
}

// ByID returns a store of a project's own objects.
func ByID[T v1alpha1.Identified](b Backend, c *catalog.Catalog, own Own[T]) Identified[T] {
	find := func(ctx context.Context, of auth.Subject, id int64) (found T, err error) {
		all, err := own(ctx, c, of.Scope)
		if err != nil {
			return found, err
		}
		return catalog.WithID(ctx, c, all, id)
	}
	return Identified[T]{New(b, find), c, own}
}

// Named is Store.Named.
func (s Identified[T]) Named(missing, removed string) Identified[T] {
	s.Store.Named(missing, removed)
	return s
}

// List returns the objects, sorted by id.
func (s Identified[T]) List(ctx context.Context, of auth.Subject) ([]T, error) {
	all, err := s.own(ctx, s.catalog, of.Scope)
	if err != nil {
		return nil, err
	}
	return InOrder(Visible(slices.Clone(all), nil)), nil
}

// Visible returns the objects that have an id and that wanted accepts; a nil wanted accepts all. An object without an id is not visible in
// the API yet. Visible reuses the given slice.
func Visible[T interface{ RESTID() int64 }](all []T, wanted func(T) bool) []T {
	return slices.DeleteFunc(all, func(o T) bool { return o.RESTID() == 0 || wanted != nil && !wanted(o) })
}

// InOrder sorts objects by id, in place.
func InOrder[T interface{ RESTID() int64 }](all []T) []T {
	slices.SortFunc(all, func(a, b T) int { return cmp.Compare(a.RESTID(), b.RESTID()) })
	return all
}
