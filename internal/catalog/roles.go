package catalog

import (
	"context"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// ProjectRole returns the highest role that a user has in a project, from memberships in the project and in every group above it, and from
// groups that these are shared with. It does not consider whether the user is an administrator or blocked.
func (c *Catalog) ProjectRole(ctx context.Context, u *v1alpha1.User, p *v1alpha1.Project, now time.Time) (role.Role, error) {
	s, err := c.ProjectScope(ctx, p)
	if err != nil {
		return role.None, err
	}
	roles, _, err := c.roles(ctx, u, s, now)
	return roles.Highest(), err
}

// Roles are the roles of a user in a project or group.
type Roles struct {
	// Own is from a direct membership, and Inherited is the highest from memberships in the groups above.
	Own, Inherited role.Role
	// Shared is the highest from groups that the project or group, or a group above it, is shared with.
	Shared role.Role
}

// Highest returns the role that counts.
func (r Roles) Highest() role.Role { return max(r.Own, r.Inherited, r.Shared) }

// Member returns the highest role from memberships.
func (r Roles) Member() role.Role { return max(r.Own, r.Inherited) }

// RolesIn returns the roles of a user in a scope that this catalog returned. Like ProjectRole, it does not consider whether the user is an
// administrator or blocked.
func (c *Catalog) RolesIn(ctx context.Context, u *v1alpha1.User, s Scope, now time.Time) (Roles, error) {
	memory := c.recalled
	if s.Shared() {
		memory = c.recalledShared
	}
	if memory == nil {
		found, _, err := c.roles(ctx, u, s, now)
		return found, err
	}
	question := rolesIn{u.UID, u.ResourceVersion, s.Version()}
	return memory.Recall(question, now, func(c *Catalog) (Roles, time.Time, error) { return c.roles(ctx, u, s.lasting(), now) })
}

// maxRoles is the maximum number of remembered roles.
const maxRoles = 16384

// rolesIn is the question which roles a user has in a scope, identified by the versions of both.
type rolesIn struct {
	user           types.UID
	version, scope string
}

// MemberRole returns the highest role that a user has in a group from memberships in it and in the groups above it. This is the role that
// counts where something names the members of a group.
func (c *Catalog) MemberRole(ctx context.Context, u *v1alpha1.User, g *v1alpha1.Group, now time.Time) (role.Role, error) {
	chain, err := c.Ancestors(ctx, g)
	if err != nil {
		return role.None, err
	}
	keys, err := c.HeldKeys(ctx, u)
	if err != nil {
		return role.None, err
	}
	roles, _, err := c.memberRoles(ctx, u, keys, Scope{Groups: chain}, now)
	return roles.Member(), err
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
	roles, until, err = c.memberRoles(ctx, u, userKeys, s, now)
	if err != nil || !s.Shared() {
		return roles, until, err
	}
	shared, ends, err := c.sharedRole(ctx, u, userKeys, s, now)
	roles.Shared = shared
	return roles, sooner(until, ends), err
}

// memberRoles is roles without Shared. userKeys are the held keys of the user.
func (c *Catalog) memberRoles(ctx context.Context, u *v1alpha1.User, userKeys []string, s Scope, now time.Time) (roles Roles, until time.Time, err error) {
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
		until = sooner(until, end(m.Spec.ExpiresAt))
		if r := RoleOf(m.Spec.Role); i == 0 {
			roles.Own = r
		} else {
			roles.Inherited = max(roles.Inherited, r)
		}
	}
	return roles, until, nil
}

// end returns the time at which something ends; zero means never.
func end(expires *metav1.Time) time.Time {
	if expires == nil {
		return time.Time{}
	}
	return expires.Time
}

// sooner returns the earlier of two times at which something ends. Zero means never.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// ended reports whether something that expires has ended.
func ended(expires *metav1.Time, now time.Time) bool {
	return expires != nil && !now.Before(expires.Time)
}

// Expired reports whether a membership has ended.
func Expired(m *v1alpha1.Membership, now time.Time) bool { return ended(m.Spec.ExpiresAt, now) }

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
