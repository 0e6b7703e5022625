package catalog

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/claim"
)

// place is the place in the tree that a full path leads to. The zero place is the root.
type place struct {
	group *v1alpha1.Group
	path  string
}

// keys returns the keys by which the children of the place refer to it.
func (p place) keys() []string {
	if p.group == nil {
		return []string{""}
	}
	return append(idKeys(p.group.RESTID()), nameKey(p.group.Namespace, p.group.Name), pathKey(p.path))
}

// uid returns the UID of the group; empty for the root.
func (p place) uid() types.UID {
	if p.group == nil {
		return ""
	}
	return p.group.UID
}

// closing reports whether the place is being deleted: its children stay for that long, and no new ones are admitted.
func (p place) closing() bool { return p.group != nil && !p.group.DeletionTimestamp.IsZero() }

// claimant returns the object that holds a segment below a place, or nil. It chooses among the groups and projects that claim the segment
// and are allowed there. It is not recursive, so that deep nesting does not make a lookup slow.
func (c *Catalog) claimant(ctx context.Context, at place, segment string) (client.Object, error) {
	keys := at.keys()
	if at.group != nil && at.group.RESTID() != 0 {
		// If another group holds a pinned id, the id does not refer to this group.
		having, err := AllWithID[*v1alpha1.Group](ctx, c, at.group.RESTID())
		if err != nil {
			return nil, err
		}
		if !same(claim.HolderOfID(having, at.group.RESTID()), at.group) {
			keys = keys[1:]
		}
	}
	for i, k := range keys {
		keys[i] = claimKey(k, segment)
	}
	groups, err := List[*v1alpha1.Group](ctx, c, IndexPathClaim, keys...)
	if err != nil {
		return nil, err
	}
	var claimants []v1alpha1.Object
	top := root{catalog: c}
	for _, g := range groups {
		ok, err := c.mayBeAt(ctx, at, &top, g)
		if err != nil {
			return nil, err
		}
		if ok {
			claimants = append(claimants, g)
		}
	}
	if at.group == nil {
		return holderOf(claimants, at, segment), nil
	}
	projects, err := List[*v1alpha1.Project](ctx, c, IndexPathClaim, keys...)
	if err != nil {
		return nil, err
	}
	for _, p := range projects {
		if p.Namespace == at.group.Namespace && Means(p.Spec.GroupRef, at.group) {
			claimants = append(claimants, p)
		}
	}
	return holderOf(claimants, at, segment), nil
}

// mayBeAt reports whether a group that claims a segment below a place refers to that place and is admitted there.
func (c *Catalog) mayBeAt(ctx context.Context, at place, top *root, g *v1alpha1.Group) (bool, error) {
	if at.group == nil {
		err := top.check(ctx, g)
		if Misplaced(err) {
			return false, nil
		}
		return err == nil, err
	}
	ok, err := c.Admits(ctx, at.group.Spec.AllowedNamespaces, at.group.Namespace, g.Namespace)
	return ok && follows(g, at.group), IgnoreNotFound(err)
}

// holderOf returns the claimant that holds a segment below a place. Nothing new comes to a place that is being deleted, and an object that is
// being deleted takes no new place: its status no longer follows, so the objects in it would not learn that another one has taken the place.
func holderOf(claimants []v1alpha1.Object, at place, segment string) client.Object {
	if len(claimants) == 0 {
		return nil
	}
	k := claim.Path(at.uid(), segment)
	holder := claim.Holder(claimants, k)
	if (at.closing() || !holder.GetDeletionTimestamp().IsZero()) && !k.ShownBy(holder) {
		return nil
	}
	return holder
}

func same(a, b *v1alpha1.Group) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.UID == b.UID
}

// ByPath returns the group or project that holds a full path, or ErrNotFound.
func (c *Catalog) ByPath(ctx context.Context, fullPath string) (client.Object, error) {
	holder, _, err := c.walk(ctx, fullPath)
	return holder, err
}

// HolderAt returns the object at the place of a project or group, or ErrNotFound. It returns ErrNotFound if the group above does not hold
// its own full path, even if the path leads to something else.
func (c *Catalog) HolderAt(ctx context.Context, s Scope) (client.Object, error) {
	holder, above, err := c.walk(ctx, s.Path())
	if err != nil {
		return nil, err
	}
	if parent := s.Parent(); parent != nil && !same(above[0], parent) {
		return nil, ErrNotFound
	}
	return holder, nil
}

// walk returns the object that holds a full path, and the groups above it, the nearest first.
func (c *Catalog) walk(ctx context.Context, fullPath string) (holder client.Object, above []*v1alpha1.Group, err error) {
	segments := strings.Split(fullPath, "/")
	if len(segments) > MaxDepth+1 {
		return nil, nil, ErrNotFound
	}
	var at place
	for i, segment := range segments {
		holder, err := c.claimant(ctx, at, segment)
		if err != nil {
			return nil, nil, err
		}
		if i == len(segments)-1 && holder != nil {
			return holder, above, nil
		}
		g, ok := holder.(*v1alpha1.Group)
		if !ok {
			return nil, nil, ErrNotFound
		}
		at = place{group: g, path: strings.Join(segments[:i+1], "/")}
		above = slices.Insert(above, 0, g)
	}
	return nil, nil, ErrNotFound
}
