package catalog

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/claim"
	"github.com/forgeplane/forgeplane/internal/role"
)

// RoleOf converts a declared role; an unknown one becomes role.None.
func RoleOf(declared v1alpha1.Role) role.Role {
	switch declared {
	case v1alpha1.RoleGuest:
		return role.Guest
	case v1alpha1.RoleReporter:
		return role.Reporter
	case v1alpha1.RoleDeveloper:
		return role.Developer
	case v1alpha1.RoleMaintainer:
		return role.Maintainer
	case v1alpha1.RoleOwner:
		return role.Owner
	default:
		return role.None
	}
}

// target is a group or project that has memberships.
type target struct {
	of   client.Object
	keys []string
}

// ProjectRole returns the highest role that a user has in a project, from memberships in the project and in every group above it. It does
// not consider whether the user is an administrator or blocked.
func (c *Catalog) ProjectRole(ctx context.Context, u *v1alpha1.User, p *v1alpha1.Project, now time.Time) (role.Role, error) {
	chain, err := c.GroupsOf(ctx, p)
	if err != nil {
		return role.None, err
	}
	roles, _, err := c.roles(ctx, u, Scope{Project: p, Groups: chain}, now)
	return roles.Highest(), err
}

// Roles are the roles of a user in a project or group: their own, from a direct membership, and the highest that they inherit from the
// groups above.
type Roles struct{ Own, Inherited role.Role }

// Highest returns the role that counts.
func (r Roles) Highest() role.Role { return max(r.Own, r.Inherited) }

// RolesIn returns the roles of a user in a scope that this catalog returned. Like ProjectRole, it does not consider whether the user is an
// administrator or blocked.
func (c *Catalog) RolesIn(ctx context.Context, u *v1alpha1.User, s Scope, now time.Time) (Roles, error) {
	if c.recalled == nil {
		found, _, err := c.roles(ctx, u, s, now)
		return found, err
	}
	question := rolesIn{u.UID, u.ResourceVersion, s.Version()}
	return c.recalled.Recall(question, now, func(c *Catalog) (Roles, time.Time, error) { return c.roles(ctx, u, s.lasting(), now) })
}

// maxRoles is the maximum number of remembered roles.
const maxRoles = 16384

// rolesIn is the question which roles a user has in a scope, identified by the versions of both.
type rolesIn struct {
	user           types.UID
	version, scope string
}

// GroupRole is ProjectRole for a group.
func (c *Catalog) GroupRole(ctx context.Context, u *v1alpha1.User, g *v1alpha1.Group, now time.Time) (role.Role, error) {
	chain, err := c.Ancestors(ctx, g)
	if err != nil {
		return role.None, err
	}
	roles, _, err := c.roles(ctx, u, Scope{Groups: chain}, now)
	return roles.Highest(), err
}

func targets(chain []*v1alpha1.Group) []target {
	all := make([]target, 0, len(chain)+1)
	for i, g := range chain {
		at := place{group: g, path: FullPath(chain[i:])}
		all = append(all, target{g, at.keys()})
	}
	return all
}

// roles returns the roles of a user in a scope, and the time until which they last at most; zero means that they do not end.
func (c *Catalog) roles(ctx context.Context, u *v1alpha1.User, s Scope, now time.Time) (roles Roles, until time.Time, err error) {
	userKeys, err := c.HeldKeys(ctx, u)
	if err != nil {
		return Roles{}, until, err
	}
	all := targets(s.Groups)
	if s.Project != nil {
		all = append([]target{{s.Project, s.Keys()}}, all...)
	}
	for i, t := range all {
		m, err := c.membership(ctx, u, userKeys, t)
		if err != nil {
			return Roles{}, until, err
		}
		if m == nil || Expired(m, now) {
			continue
		}
		until = sooner(until, m)
		if r := RoleOf(m.Spec.Role); i == 0 {
			roles.Own = r
		} else {
			roles.Inherited = max(roles.Inherited, r)
		}
	}
	return roles, until, nil
}

// sooner returns the earlier of until and the end of a membership. Zero means never.
func sooner(until time.Time, m *v1alpha1.Membership) time.Time {
	if m.Spec.ExpiresAt == nil || !until.IsZero() && until.Before(m.Spec.ExpiresAt.Time) {
		return until
	}
	return m.Spec.ExpiresAt.Time
}

// Expired reports whether a membership has ended.
func Expired(m *v1alpha1.Membership, now time.Time) bool {
	return m.Spec.ExpiresAt != nil && !now.Before(m.Spec.ExpiresAt.Time)
}

// membershipsOf returns the memberships that have the keys of a user in an index and mean this user.
func (c *Catalog) membershipsOf(ctx context.Context, u *v1alpha1.User, index string, keys ...string) ([]*v1alpha1.Membership, error) {
	found, err := List[*v1alpha1.Membership](ctx, c, index, keys...)
	return slices.DeleteFunc(found, func(m *v1alpha1.Membership) bool { return !Means(m.Spec.UserRef, u) }), err
}

// membership returns the membership of a user in one target that is in force, or nil: among those that belong to the target, the one that
// holds its claim.
func (c *Catalog) membership(ctx context.Context, u *v1alpha1.User, userKeys []string, t target) (*v1alpha1.Membership, error) {
	found, err := c.membershipsOf(ctx, u, IndexMember, MemberKeys(userKeys, t.keys)...)
	if err != nil {
		return nil, err
	}
	return claim.Holder(belonging(found, t.of), claim.Membership(t.of.GetUID(), u.UID)), nil
}

// MemberKeys returns the keys in IndexMember for every way to declare a membership of the user in the target.
func MemberKeys(user, target []string) []string {
	keys := make([]string, 0, len(user)*len(target))
	for _, u := range user {
		for _, t := range target {
			keys = append(keys, memberKey(u, t))
		}
	}
	return keys
}

// MembershipIn returns the direct membership of a user in a project or group that is in force, even if it has ended; nil if there is none.
func (c *Catalog) MembershipIn(ctx context.Context, u *v1alpha1.User, s Scope) (*v1alpha1.Membership, error) {
	userKeys, err := c.HeldKeys(ctx, u)
	if err != nil {
		return nil, err
	}
	return c.membership(ctx, u, userKeys, target{s.Target(), s.Keys()})
}
