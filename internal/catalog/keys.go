package catalog

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
)

// UserKeys returns every key by which a reference can name the user.
func UserKeys(u *v1alpha1.User) []string {
	return append(idKeys(u.RESTID()), nameKey("", u.Name), pathKey(u.Spec.Username))
}

// HeldKeys is UserKeys without the keys that belong to another user: declarations for that user are not for this one.
func (c *Catalog) HeldKeys(ctx context.Context, u *v1alpha1.User) ([]string, error) {
	keys := []string{nameKey("", u.Name)}
	for _, ref := range []v1alpha1.Reference{{Path: u.Spec.Username}, {ID: u.RESTID()}} {
		holder, err := c.User(ctx, ref)
		switch {
		case errors.Is(err, ErrNotFound):
		case err != nil:
			return nil, err
		case holder.UID == u.UID:
			keys = append(keys, Key("", ref))
		}
	}
	return keys, nil
}

// GroupKeys returns every key by which a reference can name the group: by its current path, and by the path that its status still shows.
func (c *Catalog) GroupKeys(ctx context.Context, g *v1alpha1.Group) []string {
	keys, err := c.groupKeys(ctx, g)
	if err != nil {
		keys = append(idKeys(g.RESTID()), nameKey(g.Namespace, g.Name))
	}
	return withPath(keys, g.Status.FullPath)
}

// ProjectKeys is GroupKeys for a project.
func (c *Catalog) ProjectKeys(ctx context.Context, p *v1alpha1.Project) []string {
	keys := append(idKeys(p.RESTID()), nameKey(p.Namespace, p.Name))
	if chain, err := c.GroupsOf(ctx, p); err == nil {
		keys = withPath(keys, FullPath(chain, p.Spec.Path))
	}
	return withPath(keys, p.Status.FullPath)
}

// DeployKeyKeys returns every key by which a reference can name the deploy key.
func DeployKeyKeys(k *v1alpha1.DeployKey) []string {
	return append(idKeys(k.RESTID()), nameKey(k.Namespace, k.Name))
}

// Standing returns the part of the status of a group or project that describes its place. It changes whenever the place does, and rarely
// otherwise.
func Standing(obj client.Object) string {
	var path string
	var common *v1alpha1.CommonStatus
	switch o := obj.(type) {
	case *v1alpha1.Group:
		path, common = o.Status.FullPath, o.GetCommonStatus()
	case *v1alpha1.Project:
		path, common = o.Status.FullPath, o.GetCommonStatus()
	default:
		return ""
	}
	// If it does not hold its path, the message of the condition contains the path.
	ready := meta.FindStatusCondition(common.Conditions, v1alpha1.ConditionReady)
	if ready == nil {
		return path
	}
	return path + " " + ready.Reason + " " + ready.Message
}

// groupKeys returns the keys of the group according to its current declaration.
func (c *Catalog) groupKeys(ctx context.Context, g *v1alpha1.Group) ([]string, error) {
	chain, err := c.Ancestors(ctx, g)
	if err != nil {
		return nil, err
	}
	return append(idKeys(g.RESTID()), nameKey(g.Namespace, g.Name), pathKey(FullPath(chain))), nil
}

func withPath(keys []string, fullPath string) []string {
	if fullPath == "" {
		return keys
	}
	key := pathKey(fullPath)
	for _, k := range keys {
		if k == key {
			return keys
		}
	}
	return append(keys, key)
}

func idKeys(id int64) []string {
	if id == 0 {
		return make([]string, 0, 3)
	}
	return append(make([]string, 0, 3), idKey(id))
}

// ClaimKeys returns the keys in IndexPathClaim by which a group or project and its rivals claim its segment.
func (c *Catalog) ClaimKeys(ctx context.Context, obj client.Object) []string {
	var own v1alpha1.Reference
	var segment string
	var parent *v1alpha1.Group
	var err error
	switch o := obj.(type) {
	case *v1alpha1.Group:
		if segment = o.Spec.Path; o.Spec.ParentRef == nil {
			return []string{claimKey("", segment)}
		}
		own = *o.Spec.ParentRef
		parent, err = c.AnyGroup(ctx, o.Namespace, own)
	case *v1alpha1.User:
		return []string{claimKey("", o.Spec.Username)}
	case *v1alpha1.Project:
		segment, own = o.Spec.Path, o.Spec.GroupRef
		parent, err = c.Group(ctx, o.Namespace, own)
	}
	if err != nil {
		return []string{claimKey(Key(obj.GetNamespace(), own), segment)}
	}
	keys := c.GroupKeys(ctx, parent)
	for i, k := range keys {
		keys[i] = claimKey(k, segment)
	}
	return keys
}
