package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/owner"
)

// settleTimeout limits the check of a new place, and taking the move back.
const settleTimeout = 20 * time.Second

// settle checks the new place of a project or group that has just been moved or renamed, and takes the change back if it cannot stay there.
// Each request checks the new place before it writes, but two requests at the same time can create a cycle or take the same path together.
// settle reads past the cache, so at least the later request sees the other one. The error is ErrExists or catalog.ErrCycle, or says that the
// group is gone.
func (p policy) settle(ctx context.Context, was, is client.Object) error {
	to := placeOf(is)
	if to.same(placeOf(was)) {
		return nil
	}
	// The object is in its new place now, even if the client has disconnected.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	above, err := p.above(ctx, is)
	if err == nil {
		err = p.alone(ctx, is, to.path, above)
	}
	if err == nil {
		return nil
	}
	return errors.Join(err, p.takeBack(ctx, was, is))
}

// place has the fields of the spec of a project or group that determine its place in the tree. It is empty for other kinds.
type place struct {
	above *v1alpha1.Reference
	path  string
}

func (p place) same(as place) bool { return p.path == as.path && ptr.Equal(p.above, as.above) }

func placeOf(obj client.Object) place {
	switch o := obj.(type) {
	case *v1alpha1.Project:
		return place{&o.Spec.GroupRef, o.Spec.Path}
	case *v1alpha1.Group:
		return place{o.Spec.ParentRef, o.Spec.Path}
	default:
		return place{}
	}
}

// above returns the groups above a project or group, the nearest first. It reads past the cache.
func (p policy) above(ctx context.Context, obj client.Object) (above []*v1alpha1.Group, err error) {
	seen := []types.UID{obj.GetUID()}
	for at := obj; placeOf(at).above != nil; at = above[len(above)-1] {
		g, err := p.current(ctx, at.GetNamespace(), *placeOf(at).above)
		if err != nil {
			return nil, err
		}
		if slices.Contains(seen, g.UID) || len(above) == catalog.MaxDepth {
			return nil, catalog.ErrCycle
		}
		seen, above = append(seen, g.UID), append(above, g)
	}
	if len(above) > 0 && !above[0].DeletionTimestamp.IsZero() {
		return nil, endpoint.NotFound("Group")
	}
	return above, nil
}

// current returns the group that a reference leads to. It reads past the cache.
func (p policy) current(ctx context.Context, namespace string, ref v1alpha1.Reference) (*v1alpha1.Group, error) {
	g := &v1alpha1.Group{}
	g.Namespace, g.Name = namespace, ref.Name
	if ref.Name == "" {
		known, err := p.catalog.AnyGroup(ctx, namespace, ref)
		if errors.Is(err, catalog.ErrNotFound) {
			return nil, endpoint.NotFound("Group")
		}
		if err != nil {
			return nil, err
		}
		g.Namespace, g.Name, ref.UID = known.Namespace, known.Name, string(known.UID)
	}
	err := p.writer.Reread(ctx, g)
	if apierrors.IsNotFound(err) || err == nil && ref.UID != "" && ref.UID != string(g.UID) {
		return nil, endpoint.NotFound("Group")
	}
	if err != nil {
		return nil, fmt.Errorf("checking whether group %s still exists: %w", catalog.Show(ref), err)
	}
	return g, nil
}

// alone returns ErrExists if another project or group below the nearest of the groups above, or another root group, has the path of obj.
func (p policy) alone(ctx context.Context, obj client.Object, path string, above []*v1alpha1.Group) error {
	var projects []*v1alpha1.Project
	var groups []*v1alpha1.Group
	var err error
	if len(above) > 0 {
		projects, groups, err = p.writer.Below(ctx, above[0])
	} else {
		groups, err = p.writer.Roots(ctx)
	}
	if err != nil {
		return err
	}
	other := func(o client.Object) bool {
		return o.GetUID() != obj.GetUID() && strings.EqualFold(placeOf(o).path, path)
	}
	if slices.ContainsFunc(projects, func(o *v1alpha1.Project) bool { return other(o) }) {
		return ErrExists
	}
	for _, g := range groups {
		if !other(g) {
			continue
		}
		// A root group that its namespace may not have holds no path.
		if _, err := p.catalog.Parent(ctx, g); err == nil {
			return ErrExists
		} else if !catalog.Misplaced(err) {
			return err
		}
	}
	return nil
}

// takeBack restores the spec of an object that was moved. An object that another writer has moved again stays there.
func (p policy) takeBack(ctx context.Context, was, is client.Object) error {
	obj, to := is.DeepCopyObject().(client.Object), placeOf(is)
	return p.writer.Update(ctx, obj, func() error {
		if obj.GetUID() != is.GetUID() || !placeOf(obj).same(to) {
			return nil
		}
		switch o := obj.(type) {
		case *v1alpha1.Project:
			id := o.Spec.ID
			was.(*v1alpha1.Project).Spec.DeepCopyInto(&o.Spec)
			o.Spec.ID = id
		case *v1alpha1.Group:
			id := o.Spec.ID
			was.(*v1alpha1.Group).Spec.DeepCopyInto(&o.Spec)
			o.Spec.ID = id
			if _, expected := owner.Expected(was.(*v1alpha1.Group)); !expected {
				owner.Settle(o)
			}
		}
		return nil
	})
}
