package catalog

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/claim"
)

// Scope is the target of a setting: a project, or a group with everything below it.
type Scope struct {
	// Project is nil if the target is a group.
	Project *v1alpha1.Project
	// Groups are the group and its ancestors, or the groups that the project is in, the nearest first.
	Groups []*v1alpha1.Group
}

// Target returns the project or group.
func (s Scope) Target() client.Object {
	if s.Project != nil {
		return s.Project
	}
	return s.Groups[0]
}

// RESTID returns the id of the project or group; 0 if it has none yet.
func (s Scope) RESTID() int64 {
	if s.Project != nil {
		return s.Project.RESTID()
	}
	return s.Groups[0].RESTID()
}

// Path returns the full path of the project or group.
func (s Scope) Path() string {
	if s.Project != nil {
		return FullPath(s.Groups, s.Project.Spec.Path)
	}
	return FullPath(s.Groups)
}

// Version distinguishes the scope from earlier and later states of it, for example before a project was moved or a group changed its path.
// A request keeps the scope from its beginning, so whatever is derived from a scope must be remembered for this version only. For a
// project, the version contains the spec, the id and the record of its shares, so a push does not change it.
func (s Scope) Version() string {
	var b strings.Builder
	b.Grow((len(s.Groups) + 1) * len("12345678-1234-1234-1234-123456789abc@12345678 "))
	write := func(o client.Object, version string) {
		b.WriteString(string(o.GetUID()))
		b.WriteByte('@')
		b.WriteString(version)
		b.WriteByte(' ')
	}
	if p := s.Project; p != nil {
		write(p, strconv.FormatInt(p.Generation, 10)+"."+strconv.FormatInt(p.RESTID(), 10))
		for i := range p.Status.RecordedShares {
			b.WriteString(p.Status.RecordedShares[i].UID)
			b.WriteByte(' ')
		}
	}
	for _, g := range s.Groups {
		write(g, g.ResourceVersion)
	}
	return b.String()
}

// lasting returns the scope without what changes with every push.
func (s Scope) lasting() Scope {
	if s.Project != nil {
		p := *s.Project
		p.DropObserved()
		s.Project = &p
	}
	return s
}

// Namespace returns the namespace of the project or group.
func (s Scope) Namespace() string { return s.Target().GetNamespace() }

// Parent returns the group directly above the project or group; nil for a root group.
func (s Scope) Parent() *v1alpha1.Group {
	above, ok := s.Above()
	if !ok {
		return nil
	}
	return above.Groups[0]
}

// PathClaim returns the claim of the project or group to its place.
func (s Scope) PathClaim() claim.Claim {
	parent := place{group: s.Parent()}.uid()
	if s.Project != nil {
		return claim.Path(parent, s.Project.Spec.Path)
	}
	return claim.Path(parent, s.Groups[0].Spec.Path)
}

// Includes reports whether the project or group with a UID is the target of the scope, or a group above it.
func (s Scope) Includes(uid types.UID) bool {
	return s.Project != nil && s.Project.UID == uid || slices.ContainsFunc(s.Groups, func(g *v1alpha1.Group) bool { return g.UID == uid })
}

// Levels returns the scope itself and the scopes of the groups above it, the nearest first.
func (s Scope) Levels() []Scope {
	all := make([]Scope, 0, len(s.Groups)+1)
	if s.Project != nil {
		all = append(all, s)
	}
	for i := range s.Groups {
		all = append(all, Scope{Groups: s.Groups[i:]})
	}
	return all
}

// Refs returns the references by which REST declares an object for the project or group. One of them is nil.
func (s Scope) Refs() (project, group *v1alpha1.Reference) {
	if s.Project != nil {
		ref := ReferNamed(s.Project)
		return &ref, nil
	}
	ref := ReferNamed(s.Groups[0])
	return nil, &ref
}

// Keys returns every key by which a reference can name the project or group.
func (s Scope) Keys() []string {
	if s.Project != nil {
		return append(idKeys(s.Project.RESTID()), nameKey(s.Project.Namespace, s.Project.Name), pathKey(s.Path()))
	}
	return place{group: s.Groups[0], path: s.Path()}.keys()
}

// ScopeOf returns the scope that an object is declared for.
func (c *Catalog) ScopeOf(ctx context.Context, o v1alpha1.Targeted) (Scope, error) {
	target, err := c.Target(ctx, o)
	if err != nil {
		return Scope{}, err
	}
	if p, ok := target.(*v1alpha1.Project); ok {
		return c.ProjectScope(ctx, p)
	}
	chain, err := c.Ancestors(ctx, target.(*v1alpha1.Group))
	return Scope{Groups: chain}, err
}

// ProjectScope returns the scope of a project.
func (c *Catalog) ProjectScope(ctx context.Context, p *v1alpha1.Project) (Scope, error) {
	chain, err := c.GroupsOf(ctx, p)
	return Scope{Project: p, Groups: chain}, err
}
