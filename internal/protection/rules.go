package protection

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/utils/ptr"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/deploykey"
	"github.com/forgeplane/forgeplane/internal/role"
)

// Rules returns the protections that apply to a project and match any of these branches, resolved for a decision at a time. An access level
// with an unresolvable reference grants nothing. The default branch of a new project is protected before its ProtectedBranch is created and
// is in the cache.
func Rules(ctx context.Context, c *catalog.Catalog, s catalog.Scope, branches []string, now time.Time) ([]Rule, error) {
	unknown := pending(c, s.Project) // before the protections are read: they can arrive in between
	found, err := all(ctx, c, s, func(name string) bool {
		return slices.ContainsFunc(branches, func(branch string) bool { return Match(name, branch) })
	})
	if err != nil {
		return nil, err
	}
	rules := make([]Rule, 0, len(found)+1)
	for _, branch := range branches {
		if unknown(branch) && !slices.ContainsFunc(found, protects(branch)) {
			rules = append(rules, Rule{Name: branch, Source: "the default branch", Push: maintainers(), Merge: maintainers()})
		}
	}
	// Many rules name the same few users and groups.
	known := map[grantee]Grant{}
	for _, b := range found {
		rule := Rule{
			Name: b.Spec.Branch, Source: b.Namespace + "/" + b.Name,
			AllowForcePush: b.Spec.AllowForcePush, CodeOwnerApprovalRequired: b.Spec.CodeOwnerApprovalRequired,
		}
		for _, set := range []struct {
			levels []v1alpha1.AccessLevel
			grants *[]Grant
		}{{b.Spec.Push, &rule.Push}, {b.Spec.Merge, &rule.Merge}, {b.Spec.Unprotect, &rule.Unprotect}} {
			for _, l := range set.levels {
				named := granteeOf(b.Namespace, l)
				grant, ok := known[named]
				if !ok {
					resolved, err := Resolve(ctx, c, s, b.Namespace, l, now)
					if err != nil && !errors.Is(err, catalog.ErrNotFound) {
						return nil, err
					}
					// An unresolved level is the zero Grant, which permits no one.
					grant = GrantOf(resolved)
					known[named] = grant
				}
				*set.grants = append(*set.grants, grant)
			}
		}
		rules = append(rules, rule)
	}
	return rules, nil
}

// pending returns a function that reports whether a branch may be the default branch of a project whose protection for it is not created
// yet, or not in the cache yet. While the default branch of an import is unknown, it may be any branch.
func pending(c *catalog.Catalog, p *v1alpha1.Project) func(branch string) bool {
	if p == nil {
		return func(string) bool { return false }
	}
	known := catalog.DefaultBranch(p)
	if done := p.Status.ProtectedDefaultBranch; done != "" {
		if c.Reached(&v1alpha1.ProtectedBranch{}, p.Status.ProtectedDefaultBranchVersion) {
			return func(string) bool { return false }
		}
		known = done
	}
	return func(branch string) bool { return branch != "" && (known == "" || known == branch) }
}

// protects returns a function that reports whether a protection of a project itself, not of a group, is for a branch.
func protects(branch string) func(*v1alpha1.ProtectedBranch) bool {
	return func(b *v1alpha1.ProtectedBranch) bool { return b.Spec.ProjectRef != nil && b.Spec.Branch == branch }
}

func maintainers() []Grant { return []Grant{{Role: role.Maintainer}} }

// grantee identifies what an access level of a protection in a namespace names.
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

// GrantOf converts a resolved level to a grant.
func GrantOf(l v1alpha1.ResolvedAccessLevel) Grant {
	g := Grant{UserID: l.UserID, GroupID: l.GroupID, DeployKeyID: l.DeployKeyID}
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

// Resolve resolves one access level of a protection in a namespace, as it is in force in scope s at a time.
func Resolve(
	ctx context.Context, c *catalog.Catalog, s catalog.Scope, namespace string, l v1alpha1.AccessLevel, now time.Time,
) (v1alpha1.ResolvedAccessLevel, error) {
	var r v1alpha1.ResolvedAccessLevel
	switch {
	case l.UserRef != nil:
		u, err := c.User(ctx, *l.UserRef)
		if err != nil {
			return r, err
		}
		r.UserID, r.Description = u.RESTID(), catalog.DisplayName(u)
	case l.GroupRef != nil:
		g, description, err := group(ctx, c, s, namespace, *l.GroupRef, now)
		if err != nil {
			return r, err
		}
		r.GroupID, r.Description = g.RESTID(), description
	case l.DeployKeyRef != nil:
		k, err := deploykey.Named(ctx, c, namespace, *l.DeployKeyRef)
		if err == nil && !owns(s, k) {
			err = fmt.Errorf("deploy key %s of %s: %w", catalog.Show(*l.DeployKeyRef), s.Path(), catalog.ErrNotFound)
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

// owns reports whether a deploy key belongs to the project of a scope. Below a group, each project has its own keys.
func owns(s catalog.Scope, k *v1alpha1.DeployKey) bool {
	return s.Project == nil || catalog.Belongs(k, s.Project) && slices.ContainsFunc(catalog.TargetKeys(k), func(key string) bool { return slices.Contains(s.Keys(), key) })
}

// describe returns the description of a level in the REST API.
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

// group returns a group that a protection may name, and its description: a group in its own namespace, one that contains the project, or one
// with which the project or a group above it is shared. Of the last kind, only public groups are described by their names, because a tenant
// can share a project with a group that they do not see.
func group(
	ctx context.Context, c *catalog.Catalog, s catalog.Scope, namespace string, ref v1alpha1.Reference, now time.Time,
) (g *v1alpha1.Group, description string, err error) {
	if g, err = c.AnyGroup(ctx, namespace, ref); err != nil {
		return nil, "", err
	}
	title := catalog.Title(g.Spec.Name, g.Spec.Path)
	if g.Namespace == namespace || slices.ContainsFunc(s.Groups, func(a *v1alpha1.Group) bool { return a.UID == g.UID }) {
		return g, title, nil
	}
	invited, err := c.InvitedTo(ctx, s, g, now)
	if err != nil {
		return nil, "", fmt.Errorf("group %s: %w", catalog.Show(ref), err)
	}
	if catalog.Visibility(g.Spec.Visibility, invited.Groups) != v1alpha1.VisibilityPublic {
		title = fmt.Sprintf("Group %d", g.RESTID())
	}
	return g, title, nil
}
