package frame

import (
	"context"
	"errors"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
)

// ScopeStep is a Step that also gets the scope of the target of the object.
type ScopeStep[T v1alpha1.Targeted] func(ctx context.Context, obj T, s catalog.Scope) error

// InScope returns a step that resolves the target of an object, and then runs other steps with its scope.
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

// Reachable returns a step that succeeds if the target of an object holds its full path.
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

// targetField returns the field of the spec that names the target of an object.
func targetField(obj v1alpha1.Targeted) string {
	if _, group := obj.TargetRefs(); group != nil {
		return "groupRef"
	}
	return "projectRef"
}
