package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/claim"
	"github.com/forgeplane/forgeplane/internal/protection"
	"github.com/forgeplane/forgeplane/internal/role"
)

// Scope is what a setting is declared for: a project, or a group and all that is below it.
type Scope struct {
	// Project is nil for the setting of a group.
	Project *v1alpha1.Project
	// Groups are the group itself, or those that the project is in, the nearest first.
	Groups []*v1alpha1.Group
}

// Target is the project or group.
func (s Scope) Target() client.Object {
	if s.Project != nil {
		return s.Project
	}
	return s.Groups[0]
}

// Path is the full path of the project or group.
func (s Scope) Path() string {
	if s.Project != nil {
		return FullPath(s.Groups, s.Project.Spec.Path)
	}
	return FullPath(s.Groups)
}

// Version tells the scope from what it was or will be, as before the project was moved or a group got another path. A request has its
// scope from when it began, so that whatever follows from a scope is remembered of this version alone.
func (s Scope) Version() string {
	var b strings.Builder
	b.Grow((len(s.Groups) + 1) * len("12345678-1234-1234-1234-123456789abc@12345678 "))
	write := func(o client.Object) {
		b.WriteString(string(o.GetUID()))
		b.WriteByte('@')
		b.WriteString(o.GetResourceVersion())
		b.WriteByte(' ')
	}
	if s.Project != nil {
		write(s.Project)
	}
	for _, g := range s.Groups {
		write(g)
	}
	return b.String()
}

// Namespace is the one of the project or group.
func (s Scope) Namespace() string { return s.Target().GetNamespace() }

// Parent is the group right above the project or group; nil for a root group.
func (s Scope) Parent() *v1alpha1.Group {
	above, ok := s.Above()
	if !ok {
		return nil
	}
	return above.Groups[0]
}

// PathClaim is that of the project or group to its place.
func (s Scope) PathClaim() claim.Claim {
	parent := place{group: s.Parent()}.uid()
	if s.Project != nil {
		return claim.Path(parent, s.Project.Spec.Path)
	}
	return claim.Path(parent, s.Groups[0].Spec.Path)
}

func (s Scope) keys() []string {
	if s.Project != nil {
		return append(idKeys(s.Project.RESTID()), nameKey(s.Project.Namespace, s.Project.Name), pathKey(s.Path()))
	}
	return place{group: s.Groups[0], path: s.Path()}.keys()
}

// owns reports whether a deploy key is one of the project; below a group each project has its own.
func (s Scope) owns(k *v1alpha1.DeployKey) bool {
	return s.Project == nil || Belongs(k, s.Project) && slices.Contains(s.keys(), Key(k.Namespace, k.Spec.ProjectRef))
}

// ScopeOf returns what a protection is declared for.
func (c *Catalog) ScopeOf(ctx context.Context, b *v1alpha1.ProtectedBranch) (Scope, error) {
	return c.TargetScope(ctx, b.Namespace, b.Spec.ProjectRef, b.Spec.GroupRef)
}

// TargetScope returns the scope of a setting in a namespace, whichever of the references is given.
func (c *Catalog) TargetScope(ctx context.Context, namespace string, project, group *v1alpha1.Reference) (Scope, error) {
	if group != nil {
		g, err := c.Group(ctx, namespace, *group)
		if err != nil {
			return Scope{}, err
		}
		chain, err := c.Ancestors(ctx, g)
		return Scope{Groups: chain}, err
	}
	p, err := c.Project(ctx, namespace, *project)
	if err != nil {
		return Scope{}, err
	}
	return c.ProjectScope(ctx, p)
}

// ProjectScope returns the scope of a project.
func (c *Catalog) ProjectScope(ctx context.Context, p *v1alpha1.Project) (Scope, error) {
	chain, err := c.GroupsOf(ctx, p)
	return Scope{Project: p, Groups: chain}, err
}

// ProtectionsIn returns the protections that are declared for a scope itself and in force there: of two of the same branch,
// one that somebody declared goes before the one that the project made, and else the one that holds it. They are in the order of
// their branches.
func (c *Catalog) ProtectionsIn(ctx context.Context, s Scope) ([]*v1alpha1.ProtectedBranch, error) {
	return c.protectionsIn(ctx, s, func(string) bool { return true })
}

// protectionsIn returns those of them whose branch name or wildcard is wanted.
func (c *Catalog) protectionsIn(ctx context.Context, s Scope, wanted func(name string) bool) ([]*v1alpha1.ProtectedBranch, error) {
	index := IndexGroup
	if s.Project != nil {
		index = IndexProject
	}
	found, err := c.protectedBranches(ctx, index, s.keys()...)
	if err != nil {
		return nil, err
	}
	holders := map[string]int{}
	var all []*v1alpha1.ProtectedBranch
	for _, b := range found {
		if !Belongs(b, s.Target()) || !wanted(b.Spec.Branch) {
			continue
		}
		i, taken := holders[b.Spec.Branch]
		switch {
		case !taken:
			holders[b.Spec.Branch] = len(all)
			all = append(all, b)
		case precedes(b, all[i], s.Target().GetUID()):
			all[i] = b
		}
	}
	slices.SortFunc(all, func(a, b *v1alpha1.ProtectedBranch) int { return strings.Compare(a.Spec.Branch, b.Spec.Branch) })
	return all, nil
}

// ProtectionOf returns the protection of one branch name or wildcard that is in force in a scope itself, or nil.
func (c *Catalog) ProtectionOf(ctx context.Context, s Scope, branch string) (*v1alpha1.ProtectedBranch, error) {
	found, err := c.protectedBranches(ctx, IndexBranch, branchKeys(s.keys(), branch)...)
	if err != nil {
		return nil, err
	}
	var holder *v1alpha1.ProtectedBranch
	for _, b := range found {
		if Belongs(b, s.Target()) && (holder == nil || precedes(b, holder, s.Target().GetUID())) {
			holder = b
		}
	}
	return holder, nil
}

// BranchKeys returns the keys in IndexBranch of every way to protect the branch that obj protects, a ProtectedBranch.
func (c *Catalog) BranchKeys(ctx context.Context, obj client.Object) []string {
	b := obj.(*v1alpha1.ProtectedBranch)
	target, err := c.Target(ctx, b.Namespace, b.Spec.ProjectRef, b.Spec.GroupRef)
	if err != nil {
		return nil // nothing is protected
	}
	return branchKeys(c.Keys(ctx, target), b.Spec.Branch)
}

func branchKeys(targets []string, branch string) []string {
	keys := make([]string, 0, len(targets))
	for _, t := range targets {
		keys = append(keys, branchKey(t, branch))
	}
	return keys
}

// precedes reports whether a is in force rather than b, which protects the same branch of the target.
func precedes(a, b *v1alpha1.ProtectedBranch, target types.UID) bool {
	if IsDefaultProtection(a) != IsDefaultProtection(b) {
		return IsDefaultProtection(b)
	}
	k := ProtectionClaim(a, target)
	return claim.Precedes(a, k.ShownBy(a), b, k.ShownBy(b))
}

// ProtectionClaim is what a protection claims in its target.
func ProtectionClaim(b *v1alpha1.ProtectedBranch, target types.UID) claim.Claim {
	if IsDefaultProtection(b) {
		return claim.DefaultProtection(target, b.Spec.Branch)
	}
	return claim.Protection(target, b.Spec.Branch)
}

// IsDefaultProtection reports whether a project made the protection for its default branch.
func IsDefaultProtection(b *v1alpha1.ProtectedBranch) bool {
	_, ok := b.Labels[v1alpha1.LabelDefaultProtection]
	return ok
}

// Protections returns every protection that a project is under, its own first, then those of its groups.
func (c *Catalog) Protections(ctx context.Context, s Scope) ([]*v1alpha1.ProtectedBranch, error) {
	return c.protections(ctx, s, func(string) bool { return true })
}

func (c *Catalog) protections(ctx context.Context, s Scope, wanted func(name string) bool) ([]*v1alpha1.ProtectedBranch, error) {
	all, err := c.protectionsIn(ctx, s, wanted)
	if err != nil {
		return nil, err
	}
	for i := range s.Groups {
		inherited, err := c.protectionsIn(ctx, Scope{Groups: s.Groups[i:]}, wanted)
		if err != nil {
			return nil, err
		}
		all = append(all, inherited...)
	}
	return all, nil
}

// Rules returns the protections that a project is under and that match any of these branches, resolved for a decision. A
// level whose reference leads nowhere grants nothing.
func (c *Catalog) Rules(ctx context.Context, s Scope, branches []string) ([]protection.Rule, error) {
	all, err := c.protections(ctx, s, func(name string) bool {
		return slices.ContainsFunc(branches, func(branch string) bool { return protection.Match(name, branch) })
	})
	if err != nil {
		return nil, err
	}
	rules := make([]protection.Rule, 0, len(all))
	// Many rules name the same few users and groups.
	known := map[grantee]protection.Grant{}
	for _, b := range all {
		rule := protection.Rule{
			Name: b.Spec.Branch, Source: b.Namespace + "/" + b.Name,
			AllowForcePush: b.Spec.AllowForcePush, CodeOwnerApprovalRequired: b.Spec.CodeOwnerApprovalRequired,
		}
		for _, set := range []struct {
			levels []v1alpha1.AccessLevel
			grants *[]protection.Grant
		}{{b.Spec.Push, &rule.Push}, {b.Spec.Merge, &rule.Merge}, {b.Spec.Unprotect, &rule.Unprotect}} {
			for _, l := range set.levels {
				named := granteeOf(b.Namespace, l)
				grant, ok := known[named]
				if !ok {
					resolved, err := c.ResolveLevel(ctx, s, b.Namespace, l)
					if err != nil && !errors.Is(err, ErrNotFound) {
						return nil, err
					}
					// An unresolved level is the zero Grant, which lets nobody through.
					grant = Grant(resolved)
					known[named] = grant
				}
				*set.grants = append(*set.grants, grant)
			}
		}
		rules = append(rules, rule)
	}
	return rules, nil
}

// grantee is whom an access level of a protection in a namespace names.
type grantee struct {
	namespace              string
	role                   v1alpha1.AccessRole
	user, group, deployKey v1alpha1.Reference
}

func granteeOf(namespace string, l v1alpha1.AccessLevel) grantee {
	var none v1alpha1.Reference
	return grantee{
		namespace: namespace, role: l.Role,
		user: ptr.Deref(l.UserRef, none), group: ptr.Deref(l.GroupRef, none), deployKey: ptr.Deref(l.DeployKeyRef, none),
	}
}

// Grant is the decision's form of a resolved level.
func Grant(l v1alpha1.ResolvedAccessLevel) protection.Grant {
	g := protection.Grant{UserID: l.UserID, GroupID: l.GroupID, DeployKeyID: l.DeployKeyID}
	switch l.Role {
	case v1alpha1.AccessDeveloper:
		g.Role = role.Developer
	case v1alpha1.AccessMaintainer:
		g.Role = role.Maintainer
	case v1alpha1.AccessAdmin:
		g.Role = role.Admin
	case v1alpha1.AccessNoOne, "":
		g.Title = l.Description
	}
	return g
}

// ResolveLevel resolves one access level of a protection in a namespace, which is in force in scope s.
func (c *Catalog) ResolveLevel(ctx context.Context, s Scope, namespace string, l v1alpha1.AccessLevel) (v1alpha1.ResolvedAccessLevel, error) {
	var r v1alpha1.ResolvedAccessLevel
	switch {
	case l.UserRef != nil:
		u, err := c.User(ctx, *l.UserRef)
		if err != nil {
			return r, err
		}
		r.UserID, r.Description = u.RESTID(), DisplayName(u)
	case l.GroupRef != nil:
		g, err := c.grantee(ctx, s, namespace, *l.GroupRef)
		if err != nil {
			return r, err
		}
		r.GroupID, r.Description = g.RESTID(), Title(g.Spec.Name, g.Spec.Path)
	case l.DeployKeyRef != nil:
		k, err := c.DeployKey(ctx, namespace, *l.DeployKeyRef)
		if err == nil && !s.owns(k) {
			err = fmt.Errorf("deploy key %s of %s: %w", Show(*l.DeployKeyRef), s.Path(), ErrNotFound)
		}
		if err != nil {
			return r, err
		}
		r.DeployKeyID, r.Description = k.RESTID(), k.Spec.Title
	default:
		r.Role, r.Description = l.Role, describe(l.Role)
	}
	return r, nil
}

// describe gives the words of the REST API for a level.
func describe(r v1alpha1.AccessRole) string {
	switch r {
	case v1alpha1.AccessDeveloper:
		return "Developers + Maintainers"
	case v1alpha1.AccessMaintainer:
		return "Maintainers"
	case v1alpha1.AccessAdmin:
		return "Instance admins"
	default:
		return "No one"
	}
}

// grantee returns a group that a protection may name: one of its own namespace, or one that the project is in.
func (c *Catalog) grantee(ctx context.Context, s Scope, namespace string, ref v1alpha1.Reference) (*v1alpha1.Group, error) {
	g, err := c.anyGroup(ctx, namespace, ref)
	if err != nil {
		return nil, err
	}
	above := slices.ContainsFunc(s.Groups, func(a *v1alpha1.Group) bool { return a.UID == g.UID })
	if g.Namespace != namespace && !above {
		return nil, fmt.Errorf("group %s: %w", Show(ref), ErrNotFound)
	}
	return g, nil
}

// DeployKey returns the deploy key that a reference names in a namespace.
func (c *Catalog) DeployKey(ctx context.Context, namespace string, ref v1alpha1.Reference) (*v1alpha1.DeployKey, error) {
	var k *v1alpha1.DeployKey
	var err error
	if ref.Name != "" {
		k = &v1alpha1.DeployKey{}
		err = c.get(ctx, client.ObjectKey{Namespace: namespace, Name: ref.Name}, k)
	} else {
		var found []*v1alpha1.DeployKey
		found, err = c.deployKeys(ctx, IndexID, strconv.FormatInt(ref.ID, 10))
		k = claim.HolderOfID(found, ref.ID)
	}
	if err == nil && (k == nil || k.Namespace != namespace || !means(ref, k)) {
		err = ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("deploy key %s: %w", Show(ref), err)
	}
	return k, nil
}

// DeployKeysOf returns the deploy keys of a project.
func (c *Catalog) DeployKeysOf(ctx context.Context, p *v1alpha1.Project) ([]*v1alpha1.DeployKey, error) {
	found, err := c.deployKeys(ctx, IndexProject, c.ProjectKeys(ctx, p)...)
	if err != nil {
		return nil, err
	}
	return belonging(found, p), nil
}

// DisplayName is what people call a user.
func DisplayName(u *v1alpha1.User) string { return Title(u.Spec.Name, u.Spec.Username) }

// Title is the declared name, or the path in its place.
func Title(name, segment string) string {
	if name != "" {
		return name
	}
	return segment
}
