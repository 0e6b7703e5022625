package store

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
)

// allowBelow returns a refusedError if a project or group below the group of a scope does not let REST callers change or remove an object of
// the group.
func (p policy) allowBelow(ctx context.Context, obj client.Object, in catalog.Scope) error {
	for _, limit := range []v1alpha1.RESTWrites{v1alpha1.RESTWritesRefuse, v1alpha1.RESTWritesRefuseDeclared} {
		by, err := p.below(ctx, in, limit)
		if err == nil && by != "" {
			err = p.decide(ctx, obj, limit, by)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// acceptBelow is allowBelow for an object that does not exist yet.
func (p policy) acceptBelow(ctx context.Context, in catalog.Scope) error {
	by, err := p.below(ctx, in, v1alpha1.RESTWritesRefuse)
	if err == nil && by != "" {
		err = &refusedError{by: by}
	}
	return err
}

// allowChange is allowBelow for a change of a group. A change that only concerns the group itself is always allowed.
func (p policy) allowChange(ctx context.Context, was, is client.Object) error {
	g, ok := was.(*v1alpha1.Group)
	if !ok || equality.Semantic.DeepEqual(inherited(g), inherited(is.(*v1alpha1.Group))) {
		return nil
	}
	return p.allowBelow(ctx, g, catalog.Scope{Groups: []*v1alpha1.Group{g}})
}

// inherited returns the part of a group's spec that also counts for what is below the group.
func inherited(g *v1alpha1.Group) v1alpha1.GroupSpec {
	spec := g.Spec
	spec.ID, spec.Name, spec.Description = 0, "", ""
	return spec
}

// below names a project or group below the group of a scope that declares a restWrites. It returns an empty name if nothing below declares it.
// The name tells callers nothing new: a role in the group, which they need to change it, is also a role in everything below.
func (p policy) below(ctx context.Context, in catalog.Scope, limit v1alpha1.RESTWrites) (string, error) {
	if in.Project != nil || len(in.Groups) == 0 {
		return "", nil
	}
	s, err := p.catalog.LimitedBelow(ctx, in.Groups[0], limit)
	switch {
	case err != nil:
		return "", catalog.IgnoreNotFound(err)
	case s.Project != nil:
		return "the project " + s.Path(), nil
	default:
		return "the group " + s.Path(), nil
	}
}
