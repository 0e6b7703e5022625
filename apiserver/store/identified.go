package store

import (
	"cmp"
	"context"
	"slices"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/declare"
	"github.com/forgeplane/forgeplane/internal/frame"
)

// Own returns all objects of a kind that are a project's own, shared with the cache.
type Own[T frame.Identified] func(ctx context.Context, in catalog.Scope) ([]T, error)

// OfProject is Own for what a project alone can have.
func OfProject[T frame.Identified](all func(context.Context, *v1alpha1.Project) ([]T, error)) Own[T] {
	return func(ctx context.Context, in catalog.Scope) ([]T, error) { return all(ctx, in.Project) }
}

// Identified is a Store of objects that requests name by their REST id.
type Identified[T frame.Identified] struct {
	*Store[int64, T]
	own Own[T]
}

// ByID returns a store of a project's own objects.
func ByID[T frame.Identified](w *declare.Writer, c *catalog.Catalog, own Own[T]) Identified[T] {
	find := func(ctx context.Context, in catalog.Scope, id int64) (found T, err error) {
		all, err := own(ctx, in)
		if err != nil {
			return found, err
		}
		found, ok, err := catalog.WithID(ctx, c, all, id)
		if err == nil && !ok {
			err = catalog.ErrNotFound
		}
		return found, err
	}
	return Identified[T]{New(w, find), own}
}

// Named is Store.Named.
func (s Identified[T]) Named(missing, removed string) Identified[T] {
	s.Store.Named(missing, removed)
	return s
}

// List returns the objects in the order of their ids. What has no id yet is not known to the API.
func (s Identified[T]) List(ctx context.Context, of auth.Subject) ([]T, error) {
	all, err := s.own(ctx, of.Scope)
	if err != nil {
		return nil, err
	}
	known := make([]T, 0, len(all))
	for _, o := range all {
		if o.RESTID() != 0 {
			known = append(known, o)
		}
	}
	slices.SortFunc(known, func(a, b T) int { return cmp.Compare(a.RESTID(), b.RESTID()) })
	return known, nil
}
