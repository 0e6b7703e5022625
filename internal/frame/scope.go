package frame

import (
	"context"
	"errors"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
)

// ScopeStep is a Step that is given the scope of what the object is declared for.
type ScopeStep[T v1alpha1.Targeted] func(ctx context.Context, obj T, s catalog.Scope) error

// InScope is a step that resolves what an object is declared for, and then runs others with that.
func InScope[T v1alpha1.Targeted](f *Frame[T], steps ...ScopeStep[T]) Step[T] {
	return func(ctx context.Context, obj T) error {
		s, err := f.Catalog.ScopeOf(ctx, obj)
		if err != nil {
			return Unresolved(targetField(obj), err)
		}
		scoped := make([]Step[T], len(steps))
		for i, step := range steps {
			scoped[i] = func(ctx context.Context, obj T) error { return step(ctx, obj, s) }
		}
		after, err := f.run(ctx, obj, scoped)
		if err == nil && after > 0 {
			return Again(after)
		}
		return err
	}
}

// Reachable is a step that succeeds when what an object is declared for holds its full path.
func Reachable[T v1alpha1.Targeted](f *Frame[T]) ScopeStep[T] {
	return func(ctx context.Context, obj T, s catalog.Scope) error {
		holder, err := f.Catalog.ByPath(ctx, s.Path())
		target := s.Target()
		if errors.Is(err, catalog.ErrNotFound) || err == nil && holder.GetUID() != target.GetUID() {
			return Waiting(v1alpha1.ReasonReferenceNotReady, "%s: the %s %s does not hold its full path %s",
				targetField(obj), kindOf(target), target.GetName(), s.Path())
		}
		return err
	}
}

// targetField is the field of the spec that names what an object is declared for.
func targetField(obj v1alpha1.Targeted) string {
	if _, group := obj.TargetRefs(); group != nil {
		return "groupRef"
	}
	return "projectRef"
}
