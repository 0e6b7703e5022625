package catalog

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
)

func (c *Catalog) remoteMirrors(ctx context.Context, index string, keys ...string) ([]*v1alpha1.RemoteMirror, error) {
	var l v1alpha1.RemoteMirrorList
	return list(ctx, c.reader, &l, func() []v1alpha1.RemoteMirror { return l.Items }, index, keys...)
}

// RemoteMirrorsOf returns the mirrors of a project that are not on their way out.
func (c *Catalog) RemoteMirrorsOf(ctx context.Context, p *v1alpha1.Project) ([]*v1alpha1.RemoteMirror, error) {
	found, err := c.remoteMirrors(ctx, IndexProject, c.ProjectKeys(ctx, p)...)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(found, func(m *v1alpha1.RemoteMirror) bool {
		return !Belongs(m, p) || !m.DeletionTimestamp.IsZero()
	}), nil
}

// GuardedMirrors maps a ProtectedBranch to the mirrors of every project that it protects a branch of, and a Group to those of
// every project in it or below it.
func (c *Catalog) GuardedMirrors(ctx context.Context, obj client.Object) []reconcile.Request {
	found, err := c.guardedMirrors(ctx, obj)
	if err != nil {
		log.FromContext(ctx).Error(err, "Looking up the mirrors that a protection affects", "object", client.ObjectKeyFromObject(obj))
	}
	var requests []reconcile.Request
	for _, m := range found {
		if m.Spec.OnlyProtectedBranches {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(m)})
		}
	}
	return requests
}

var _ handler.MapFunc = (*Catalog)(nil).GuardedMirrors

func (c *Catalog) guardedMirrors(ctx context.Context, obj client.Object) ([]*v1alpha1.RemoteMirror, error) {
	target := obj
	if b, ok := obj.(*v1alpha1.ProtectedBranch); ok {
		var err error
		if target, err = c.Target(ctx, b.Namespace, b.Spec.ProjectRef, b.Spec.GroupRef); err != nil {
			return nil, nil //nolint:nilerr // it protects nothing
		}
	}
	switch of := target.(type) {
	case *v1alpha1.Project:
		return c.RemoteMirrorsOf(ctx, of)
	case *v1alpha1.Group:
		projects, err := c.projects(ctx, IndexGroup, append(c.GroupKeys(ctx, of), c.KeysBelow(ctx, of)...)...)
		var all []*v1alpha1.RemoteMirror
		seen := map[types.UID]bool{}
		for _, p := range projects {
			mirrors, mirrorsErr := c.RemoteMirrorsOf(ctx, p)
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
