package frame

import (
	"cmp"
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
		switch {
		case after == 0:
			return err
		case err == nil:
			return RequeueAfter(after)
		default:
			return &scheduled{err, after}
		}
	}
}

// locate shows the full path of the target of a Targeted object, and records the target. An object whose reference was changed to lead to
// another target stays in force where it is, and none of its other steps runs. If the reference does not resolve, a step of the controller
// says so.
func (f *Frame[T]) locate(ctx context.Context, obj T) error {
	targeted, ok := v1alpha1.Object(obj).(v1alpha1.Targeted)
	if !ok {
		return nil
	}
	status := targeted.GetTargetStatus()
	status.TargetPath = ""
	s, err := f.Catalog.ScopeOf(ctx, targeted)
	if err != nil {
		return nil //nolint:nilerr // a step of the controller resolves the same reference
	}
	status.TargetPath = s.Path()
	named, err := f.Catalog.Named(ctx, targeted)
	if err != nil && !errors.Is(err, catalog.ErrNotFound) {
		return err
	}
	if err != nil || named.GetUID() != s.Target().GetUID() {
		return Stalled(v1alpha1.ReasonInvalid, "%s was changed and does not lead to the %s %s any more, to which this object belongs: "+
			"change it back, or delete this object and make another one", targetField(targeted), kindOf(s.Target()), s.Path())
	}
	project, group := targeted.TargetRefs()
	ref := *cmp.Or(project, group)
	ref.UID = string(named.GetUID())
	status.TargetRef = &ref
	return nil
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
