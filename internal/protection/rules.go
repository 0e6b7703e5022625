package protection

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/utils/ptr"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/deploykey"
	"github.com/forgeplane/forgeplane/internal/role"
)

// Rules returns the protections that apply to a project and match any of these branches, resolved for a decision. An access level with an
// unresolvable reference grants nothing.
func Rules(ctx context.Context, c *catalog.Catalog, s catalog.Scope, branches []string) ([]Rule, error) {
	found, err := all(ctx, c, s, func(name string) bool {
		return slices.ContainsFunc(branches, func(branch string) bool { return Match(name, branch) })
	})
	if err != nil {
		return nil, err
	}
	rules := make([]Rule, 0, len(found))
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
					resolved, err := Resolve(ctx, c, s, b.Namespace, l)
					if err != nil && !errors.Is(err, catalog.ErrNotFound) {
						return nil, err
					}
					// An unresolved level is the zero Grant, which permits nobody.
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

// Resolve resolves one access level of a protection in a namespace that is in force in scope s.
func Resolve(
	ctx context.Context, c *catalog.Catalog, s catalog.Scope, namespace string, l v1alpha1.AccessLevel,
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
		g, err := group(ctx, c, s, namespace, *l.GroupRef)
		if err != nil {
			return r, err
		}
		r.GroupID, r.Description = g.RESTID(), catalog.Title(g.Spec.Name, g.Spec.Path)
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
	return s.Project == nil || catalog.Belongs(k, s.Project) && slices.Contains(s.Keys(), catalog.Key(k.Namespace, k.Spec.ProjectRef))
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

// group returns a group that a protection may name: a group in its own namespace, or one that contains the project.
func group(ctx context.Context, c *catalog.Catalog, s catalog.Scope, namespace string, ref v1alpha1.Reference) (*v1alpha1.Group, error) {
	g, err := c.AnyGroup(ctx, namespace, ref)
	if err != nil {
		return nil, err
	}
	above := slices.ContainsFunc(s.Groups, func(a *v1alpha1.Group) bool { return a.UID == g.UID })
	if g.Namespace != namespace && !above {
		return nil, fmt.Errorf("group %s: %w", catalog.Show(ref), catalog.ErrNotFound)
	}
	return g, nil
}
