package catalog

import (
	"context"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
)

// restWritesIndexes returns the indexes of groups and projects that limit what REST callers can change.
func restWritesIndexes() []Index {
	return []Index{
		{&v1alpha1.Project{}, IndexRESTWrites, func(o client.Object) []string {
			spec := &o.(*v1alpha1.Project).Spec
			return limitKeys(RefKeys(o, &spec.GroupRef), spec.RESTWrites)
		}},
		{&v1alpha1.Group{}, IndexRESTWrites, func(o client.Object) []string {
			spec := &o.(*v1alpha1.Group).Spec
			return limitKeys(RefKeys(o, spec.ParentRef), spec.RESTWrites)
		}},
	}
}

// limitKeys returns the keys of what declares a restWrites directly below a group with any of the keys.
func limitKeys(group []string, by v1alpha1.RESTWrites) (keys []string) {
	if by == "" {
		return nil
	}
	for _, key := range group {
		keys = append(keys, string(by)+"|"+key)
	}
	return keys
}

// LimitedBelow returns a project or group below a group that itself declares a restWrites, or ErrNotFound. Its cost grows with the number of
// groups below the group, and of what declares it there.
func (c *Catalog) LimitedBelow(ctx context.Context, g *v1alpha1.Group, by v1alpha1.RESTWrites) (Scope, error) {
	below, err := c.keysBelow(ctx, g)
	if err != nil {
		return Scope{}, err
	}
	keys := limitKeys(append(c.GroupKeys(ctx, g), below...), by)
	groups, err := List[*v1alpha1.Group](ctx, c, IndexRESTWrites, keys...)
	if err != nil {
		return Scope{}, err
	}
	projects, err := List[*v1alpha1.Project](ctx, c, IndexRESTWrites, keys...)
	if err != nil {
		return Scope{}, err
	}
	v := c.View(nil, time.Time{})
	for _, o := range groups {
		at := v.place(ctx, o)
		if ok, err := v.below(ctx, g, o, o.Status.FullPath, at.scope, at.err); err != nil || ok {
			return at.scope, err
		}
	}
	for _, o := range projects {
		at := v.home(ctx, home{o.Namespace, o.Spec.GroupRef})
		s := Scope{Project: o, Groups: at.scope.Groups}
		if ok, err := v.below(ctx, g, o, o.Status.FullPath, s, at.err); err != nil || ok {
			return s, err
		}
	}
	return Scope{}, ErrNotFound
}

// below reports whether an object holds a place below a group. misplaced is nil unless the object has no valid place.
func (v *View) below(ctx context.Context, g *v1alpha1.Group, obj v1alpha1.Object, shown string, s Scope, misplaced error) (bool, error) {
	if misplaced != nil {
		if Misplaced(misplaced) {
			misplaced = nil
		}
		return false, misplaced
	}
	above, _ := s.Above()
	return slices.ContainsFunc(above.Groups, func(a *v1alpha1.Group) bool { return same(a, g) }) && v.holds(ctx, obj, shown, s), nil
}
