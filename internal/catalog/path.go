package catalog

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
)

// Errors about a group's place in the tree.
var (
	// ErrCycle says that a group is its own ancestor, or nested too deeply to tell.
	ErrCycle = fmt.Errorf(
		"the parents of the group lead back to it, or it is more than %d levels deep: change the parentRef of one of these groups, or remove it to make a root group", MaxDepth)
	// ErrParentNotFound is the ErrNotFound about a parent by path or id. It also stands for ErrParentNotAllowed if not everybody can see the
	// parent: another tenant must not learn that it exists.
	ErrParentNotFound = fmt.Errorf("%w, or it does not allow groups of this namespace in its allowedNamespaces", ErrNotFound)
	// ErrParentNotAllowed says that the parent, which is public, does not admit groups of this namespace.
	ErrParentNotAllowed = errors.New("the parent group does not allow groups of this namespace in its allowedNamespaces")
	// ErrParentReplaced says that the path or id of the parent now belongs to a different group, of another tenant, than when the reference
	// was declared.
	ErrParentReplaced = errors.New("belongs to a different group than when this object was declared: to use that group as the parent, set its uid in parentRef as well")
)

// MaxDepth is the maximum number of groups in a chain of groups. The reference product limits nesting to the same depth.
const MaxDepth = 20

// Misplaced reports whether an error says that a group or project currently has no place in the tree: the parent that it names does not
// exist, leads back to it, or does not admit it. It cannot be reached then.
func Misplaced(err error) bool {
	return errors.Is(err, ErrNotFound) || errors.Is(err, ErrCycle) || errors.Is(err, ErrParentNotAllowed) ||
		errors.Is(err, ErrParentReplaced) || errors.Is(err, ErrRootNotAllowed) || errors.Is(err, ErrRootOfUser)
}

// Parent returns the group above g, or nil for a root group. The error is ErrNotFound, ErrParentNotAllowed, ErrParentReplaced,
// ErrRootNotAllowed or ErrRootOfUser if g has no valid place.
func (c *Catalog) Parent(ctx context.Context, g *v1alpha1.Group) (*v1alpha1.Group, error) {
	above, err := c.above(ctx, g)
	if err != nil || len(above) == 0 {
		return nil, err
	}
	return above[0], nil
}

// above returns the parent of g, or nothing for a root group. If a path names the parent, resolving it finds all ancestors, so above
// returns them too, the nearest first. That keeps a walk up a deep tree fast.
func (c *Catalog) above(ctx context.Context, g *v1alpha1.Group) ([]*v1alpha1.Group, error) {
	ref := g.Spec.ParentRef
	if ref == nil {
		return nil, (&root{catalog: c}).check(ctx, g)
	}
	var parent *v1alpha1.Group
	var further []*v1alpha1.Group
	var err error
	if ref.Path != "" {
		var holder client.Object
		var ok bool
		holder, further, err = c.walk(ctx, ref.Path)
		if parent, ok = holder.(*v1alpha1.Group); err == nil && (!ok || !Means(*ref, parent)) {
			err = ErrNotFound
		}
	} else {
		parent, err = c.AnyGroup(ctx, g.Namespace, *ref)
	}
	if errors.Is(err, ErrNotFound) {
		return nil, parentNotFound(*ref)
	} else if err != nil {
		return nil, err
	}
	admitted, err := c.Admits(ctx, parent.Spec.AllowedNamespaces, parent.Namespace, g.Namespace)
	if err != nil {
		return nil, err
	}
	if !admitted && parent.Status.Visibility != v1alpha1.VisibilityPublic {
		return nil, parentNotFound(*ref)
	}
	if !admitted {
		return nil, ErrParentNotAllowed
	}
	if !follows(g, parent) {
		return nil, fmt.Errorf("group %s: %w", Show(*ref), ErrParentReplaced)
	}
	return append([]*v1alpha1.Group{parent}, further...), nil
}

// parentNotFound returns the error about a parent that does not exist, or that looks like that. A name leads only to the own namespace, which
// is always admitted.
func parentNotFound(ref v1alpha1.Reference) error {
	if ref.Name != "" {
		return fmt.Errorf("group %s: %w", Show(ref), ErrNotFound)
	}
	return fmt.Errorf("group %s: %w", Show(ref), ErrParentNotFound)
}

// follows reports whether a group is below the parent that its path or id names now. If the parent belongs to another tenant, the reference
// must have named that parent first, or contain its UID: a tenant who takes over a path that others refer to must not get what they
// declared.
func follows(g, parent *v1alpha1.Group) bool {
	if g.Spec.ParentRef.UID != "" {
		return Means(*g.Spec.ParentRef, parent)
	}
	return parent.Namespace == g.Namespace || !Recorded(g) || g.Status.ParentRef.UID == string(parent.UID)
}

// Recorded reports whether the status records which group the current parentRef of a group leads to.
func Recorded(g *v1alpha1.Group) bool {
	if g.Spec.ParentRef == nil || g.Status.ParentRef == nil {
		return false
	}
	return sameButUID(*g.Spec.ParentRef, *g.Status.ParentRef)
}

// sameButUID reports whether two references are equal except for their UIDs.
func sameButUID(a, b v1alpha1.Reference) bool {
	a.UID, b.UID = "", ""
	return a == b
}

// Admits reports whether an object with these allowedNamespaces admits objects of a namespace. It always admits those of its own namespace,
// or of Forgeplane's for an object of the cluster.
func (c *Catalog) Admits(ctx context.Context, allowed *v1alpha1.AllowedNamespaces, own, namespace string) (bool, error) {
	if own == namespace {
		return true, nil
	}
	switch {
	case allowed == nil:
		return false, nil
	case allowed.From == v1alpha1.NamespacesFromAll:
		return true, nil
	case allowed.From != v1alpha1.NamespacesFromSelector || allowed.Selector == nil:
		return false, nil
	}
	ns, err := get[*corev1.Namespace](ctx, c, "", namespace)
	if err != nil {
		return false, err
	}
	want := labels.Set{}
	for k, v := range allowed.Selector.MatchLabels {
		want[k] = string(v)
	}
	return want.AsSelector().Matches(labels.Set(ns.Labels)), nil
}

// Terminating reports whether a namespace is being deleted, so that nothing can be created in it.
func (c *Catalog) Terminating(ctx context.Context, namespace string) bool {
	ns, err := get[*corev1.Namespace](ctx, c, "", namespace)
	return err == nil && !ns.DeletionTimestamp.IsZero()
}

// Ancestors returns g and the groups above it, the nearest first.
func (c *Catalog) Ancestors(ctx context.Context, g *v1alpha1.Group) ([]*v1alpha1.Group, error) {
	chain := []*v1alpha1.Group{g}
	for {
		above, err := c.above(ctx, chain[len(chain)-1])
		if err != nil {
			return nil, err
		}
		if len(above) == 0 {
			return chain, nil
		}
		if chain = append(chain, above...); len(chain) > MaxDepth {
			return nil, ErrCycle
		}
	}
}

// GroupsOf returns the groups that a project is in, the nearest first.
func (c *Catalog) GroupsOf(ctx context.Context, p *v1alpha1.Project) ([]*v1alpha1.Group, error) {
	g, err := c.Group(ctx, p.Namespace, p.Spec.GroupRef)
	if err != nil {
		return nil, err
	}
	return c.Ancestors(ctx, g)
}

// FullPath joins the paths of a chain that Ancestors or GroupsOf returned, followed by the segments below it.
func FullPath(chain []*v1alpha1.Group, below ...string) string {
	segments := make([]string, 0, len(chain)+len(below))
	for i := len(chain) - 1; i >= 0; i-- {
		segments = append(segments, chain[i].Spec.Path)
	}
	return strings.Join(append(segments, below...), "/")
}

// Visibility returns the narrowest of the object's own visibility and the visibilities of a chain.
func Visibility(own v1alpha1.Visibility, chain []*v1alpha1.Group) v1alpha1.Visibility {
	narrowest := own
	for _, g := range chain {
		if width(g.Spec.Visibility) < width(narrowest) {
			narrowest = g.Spec.Visibility
		}
	}
	return narrowest
}

// Wider reports whether a is visible to more people than b.
func Wider(a, b v1alpha1.Visibility) bool { return width(a) > width(b) }

func width(v v1alpha1.Visibility) int {
	switch v {
	case v1alpha1.VisibilityPublic:
		return 2
	case v1alpha1.VisibilityInternal:
		return 1
	default:
		return 0
	}
}

// ProjectByPath returns the project that holds a full path, or ErrNotFound.
func (c *Catalog) ProjectByPath(ctx context.Context, fullPath string) (*v1alpha1.Project, error) {
	holder, err := c.ByPath(ctx, fullPath)
	if err != nil {
		return nil, err
	}
	if p, ok := holder.(*v1alpha1.Project); ok {
		return p, nil
	}
	return nil, ErrNotFound
}

// Group returns the group that a reference in an object of this namespace names, if the group is in the same namespace.
func (c *Catalog) Group(ctx context.Context, namespace string, ref v1alpha1.Reference) (*v1alpha1.Group, error) {
	g, err := c.AnyGroup(ctx, namespace, ref)
	if err != nil {
		return nil, err
	}
	if g.Namespace != namespace {
		return nil, fmt.Errorf("group %s: %w", Show(ref), ErrNotFound)
	}
	return g, nil
}

// AnyGroup is Group for groups in any namespace.
func (c *Catalog) AnyGroup(ctx context.Context, namespace string, ref v1alpha1.Reference) (g *v1alpha1.Group, err error) {
	switch {
	case ref.Name != "":
		g, err = get[*v1alpha1.Group](ctx, c, namespace, ref.Name)
	case ref.Path != "":
		g, err = c.GroupByPath(ctx, ref.Path)
	default:
		g, err = ByID[*v1alpha1.Group](ctx, c, ref.ID)
	}
	if err == nil && !Means(ref, g) {
		err = ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("group %s: %w", Show(ref), err)
	}
	return g, nil
}

// GroupByPath returns the group that holds a full path, or ErrNotFound.
func (c *Catalog) GroupByPath(ctx context.Context, fullPath string) (*v1alpha1.Group, error) {
	holder, err := c.ByPath(ctx, fullPath)
	if err != nil {
		return nil, err
	}
	if g, ok := holder.(*v1alpha1.Group); ok {
		return g, nil
	}
	return nil, ErrNotFound
}

// Project returns the project that a reference in an object of this namespace names, if the project is in the same namespace.
func (c *Catalog) Project(ctx context.Context, namespace string, ref v1alpha1.Reference) (*v1alpha1.Project, error) {
	p, err := c.AnyProject(ctx, namespace, ref)
	if err != nil {
		return nil, err
	}
	if p.Namespace != namespace {
		return nil, fmt.Errorf("project %s: %w", Show(ref), ErrNotFound)
	}
	return p, nil
}

// AnyProject is Project for projects in any namespace.
func (c *Catalog) AnyProject(ctx context.Context, namespace string, ref v1alpha1.Reference) (p *v1alpha1.Project, err error) {
	switch {
	case ref.Name != "":
		p, err = get[*v1alpha1.Project](ctx, c, namespace, ref.Name)
	case ref.Path != "":
		p, err = c.ProjectByPath(ctx, ref.Path)
	default:
		p, err = ByID[*v1alpha1.Project](ctx, c, ref.ID)
	}
	if err == nil && !Means(ref, p) {
		err = ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("project %s: %w", Show(ref), err)
	}
	return p, nil
}

// Current returns the current state of a project, uncopied, or ErrNotFound if it is gone.
func (c *Catalog) Current(ctx context.Context, p *v1alpha1.Project) (*v1alpha1.Project, error) {
	now, err := get[*v1alpha1.Project](ctx, c, p.Namespace, p.Name)
	if err == nil && now.UID != p.UID {
		return nil, ErrNotFound
	}
	return now, err
}

// Storage returns the shard with a name, uncopied, or ErrNotFound.
func (c *Catalog) Storage(ctx context.Context, name string) (*v1alpha1.RepositoryStorage, error) {
	s, err := get[*v1alpha1.RepositoryStorage](ctx, c, "", name)
	if err != nil {
		return nil, fmt.Errorf("RepositoryStorage %s: %w", name, err)
	}
	return s, nil
}

// Target returns the project or group that an object is declared for. If the reference to it has changed since a controller last saw it,
// and does not lead to the same one, Target returns the one to which the former reference leads.
func (c *Catalog) Target(ctx context.Context, o v1alpha1.Targeted) (client.Object, error) {
	target, err := c.Named(ctx, o)
	was := formerRef(o)
	if was == nil || err == nil && was.UID == string(target.GetUID()) || err != nil && !errors.Is(err, ErrNotFound) {
		return target, err
	}
	return c.targetOf(ctx, o, *was)
}

// Named returns the project or group that the spec of an object names, whether or not the object belongs to it.
func (c *Catalog) Named(ctx context.Context, o v1alpha1.Targeted) (client.Object, error) {
	ref := targetRef(o)
	if ref == nil {
		return nil, fmt.Errorf("neither a project nor a group is named: %w", ErrNotFound)
	}
	return c.targetOf(ctx, o, *ref)
}

// targetOf resolves a reference to the project or group of an object.
func (c *Catalog) targetOf(ctx context.Context, o v1alpha1.Targeted, ref v1alpha1.Reference) (client.Object, error) {
	if _, group := o.TargetRefs(); group != nil {
		return c.Group(ctx, o.GetNamespace(), ref)
	}
	return c.Project(ctx, o.GetNamespace(), ref)
}
