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

// Keys returns every key by which a reference can name obj; none for a kind that nothing refers to.
func (c *Catalog) Keys(ctx context.Context, obj client.Object) []string {
	switch o := obj.(type) {
	case *v1alpha1.User:
		return UserKeys(o)
	case *v1alpha1.Group:
		return c.GroupKeys(ctx, o)
	case *v1alpha1.Project:
		return c.ProjectKeys(ctx, o)
	case *v1alpha1.DeployKey:
		return DeployKeyKeys(o)
	default:
		return nil
	}
}

// Referrers maps an object to the objects of the list's kind that refer to it by an index, so that a controller reconciles them when the
// object appears, changes or disappears.
func (c *Catalog) Referrers(of client.ObjectList, index string) handler.MapFunc {
	return c.Peers(of, index, c.Keys)
}

// KeysBelow returns every key by which a reference can name any group below obj, a group.
func (c *Catalog) KeysBelow(ctx context.Context, obj client.Object) []string {
	g, ok := obj.(*v1alpha1.Group)
	if !ok {
		return nil
	}
	keys, err := c.keysBelow(ctx, g)
	if err != nil {
		log.FromContext(ctx).Error(err, "Failed to look up the groups below a group", "group", client.ObjectKeyFromObject(g))
	}
	return keys
}

// keysBelow is KeysBelow for callers that must not miss a key. With an error, it returns the keys found so far.
func (c *Catalog) keysBelow(ctx context.Context, g *v1alpha1.Group) ([]string, error) {
	var keys []string
	seen := map[types.UID]bool{g.UID: true} // the groups can form a cycle
	for next := []*v1alpha1.Group{g}; len(next) > 0; next = next[1:] {
		own := c.GroupKeys(ctx, next[0])
		if next[0] != g {
			keys = append(keys, own...)
		}
		children, err := List[*v1alpha1.Group](ctx, c, IndexGroup, own...)
		if err != nil {
			return keys, err
		}
		for _, child := range children {
			if !seen[child.UID] {
				seen[child.UID] = true
				next = append(next, child)
			}
		}
	}
	return keys, nil
}

// ProjectsBelow returns the projects anywhere below a group.
func (c *Catalog) ProjectsBelow(ctx context.Context, g *v1alpha1.Group) ([]*v1alpha1.Project, error) {
	keys, err := c.keysBelow(ctx, g)
	if err != nil {
		return nil, err
	}
	found, err := List[*v1alpha1.Project](ctx, c, IndexGroup, append(c.GroupKeys(ctx, g), keys...)...)
	if err != nil {
		return nil, err
	}
	var below []*v1alpha1.Project
	for _, p := range found {
		// The key can also belong to an older group, and a group that names one above it may not be admitted there.
		chain, err := c.GroupsOf(ctx, p)
		if err != nil && !Misplaced(err) {
			return nil, err
		}
		if err == nil && slices.ContainsFunc(chain, func(above *v1alpha1.Group) bool { return same(above, g) }) {
			below = append(below, p)
		}
	}
	return below, nil
}

// Peers maps an object to the objects of the list's kind that share any of its keys in an index.
func (c *Catalog) Peers(of client.ObjectList, index string, keys func(context.Context, client.Object) []string) handler.MapFunc {
	list := func() client.ObjectList { return of.DeepCopyObject().(client.ObjectList) }
	return func(ctx context.Context, obj client.Object) []reconcile.Request {
		var requests []reconcile.Request
		for _, key := range keys(ctx, obj) {
			found, err := c.withKey(ctx, of, list, index, key)
			for _, o := range found {
				requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(o.(client.Object))})
			}
			if err != nil {
				log.FromContext(ctx).Error(err, "Failed to look up the objects that refer to an object", "index", index, "key", key)
			}
		}
		return requests
	}
}

// SpecID returns the declared id in the form of IndexID, for Peers.
func SpecID(_ context.Context, obj client.Object) []string { return specID(obj) }
