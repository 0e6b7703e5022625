// Package remotemirror finds the mirrors that projects push to.
package remotemirror

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
)

// Of returns the mirrors of a project that are not on their way out.
func Of(ctx context.Context, c *catalog.Catalog, p *v1alpha1.Project) ([]*v1alpha1.RemoteMirror, error) {
	found, err := catalog.ListForProject[*v1alpha1.RemoteMirror](ctx, c, p)
	return slices.DeleteFunc(found, func(m *v1alpha1.RemoteMirror) bool { return !m.DeletionTimestamp.IsZero() }), err
}

// Guarded maps a ProtectedBranch to the mirrors of every project that it protects a branch of, and a Group to those of every project in it
// or below it.
func Guarded(c *catalog.Catalog) handler.MapFunc {
	return func(ctx context.Context, obj client.Object) (requests []reconcile.Request) {
		found, err := guarded(ctx, c, obj)
		if err != nil {
			log.FromContext(ctx).Error(err, "Failed to look up the mirrors that a protection affects", "object", client.ObjectKeyFromObject(obj))
		}
		for _, m := range found {
			if m.Spec.OnlyProtectedBranches {
				requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(m)})
			}
		}
		return requests
	}
}

func guarded(ctx context.Context, c *catalog.Catalog, obj client.Object) ([]*v1alpha1.RemoteMirror, error) {
	target := obj
	if b, ok := obj.(*v1alpha1.ProtectedBranch); ok {
		var err error
		if target, err = c.Target(ctx, b); err != nil {
			return nil, nil //nolint:nilerr // it protects nothing
		}
	}
	switch of := target.(type) {
	case *v1alpha1.Project:
		return Of(ctx, c, of)
	case *v1alpha1.Group:
		projects, err := catalog.List[*v1alpha1.Project](ctx, c, catalog.IndexGroup, append(c.GroupKeys(ctx, of), c.KeysBelow(ctx, of)...)...)
		var all []*v1alpha1.RemoteMirror
		seen := map[types.UID]bool{}
		for _, p := range projects {
			mirrors, mirrorsErr := Of(ctx, c, p)
			if mirrorsErr != nil {
				return nil, mirrorsErr
			}
			for _, m := range mirrors {
				if !seen[m.UID] {
					seen[m.UID] = true
					all = append(all, m)
				}
			}
		}
		return all, err
	default:
		return nil, nil
	}
}
