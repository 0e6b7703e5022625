package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/role"
)

// shareIndexes returns the indexes of groups and projects by the groups that they are shared with.
func shareIndexes() []Index {
	invited := func(o client.Object) (keys []string) {
		declared, _ := o.(v1alpha1.Shareable).Shares()
		for i := range declared {
			keys = append(keys, Key(o.GetNamespace(), declared[i].GroupRef))
		}
		return keys
	}
	return []Index{{&v1alpha1.Project{}, IndexInvited, invited}, {&v1alpha1.Group{}, IndexInvited, invited}}
}

// Invited returns the scope of the group that a share of a project or group refers to, as Foreign does.
func (c *Catalog) Invited(ctx context.Context, of v1alpha1.Shareable, ref v1alpha1.Reference) (Scope, error) {
	_, recorded := of.Shares()
	return c.Foreign(ctx, of.GetNamespace(), ref, *recorded)
}

// RecordShares records in the status of a project or group to which groups its shares lead. If a share leads nowhere, it returns the first
// such field of the spec, and ErrNotFound. A share that names the UID of a deleted group does not count as one: nothing can bring that group
// back.
func (c *Catalog) RecordShares(ctx context.Context, of v1alpha1.Shareable) (field string, unresolved error) {
	declared, recorded := of.Shares()
	refs := make([]v1alpha1.Reference, len(declared))
	for i := range declared {
		refs[i] = declared[i].GroupRef
	}
	_, failed, err := c.RecordForeign(ctx, of.GetNamespace(), refs, recorded)
	if err != nil {
		return "", err
	}
	for i := range refs {
		if failed[i] != nil && refs[i].UID == "" {
			return fmt.Sprintf("sharedWith[%d]", i), failed[i]
		}
	}
	return "", nil
}

// Shared is a share that is in force: a group whose members have a role in a project or group.
type Shared struct {
	// Of is the project or group that is shared: the target of a scope, or a group above it.
	Of    v1alpha1.Shareable
	Share *v1alpha1.Share
	// With is the scope of the group.
	With Scope
}

// SharesOf returns the shares of a project or group itself that are in force at a time, in the order of their declaration.
func (c *Catalog) SharesOf(ctx context.Context, of v1alpha1.Shareable, now time.Time) ([]Shared, error) {
	declared, _ := of.Shares()
	var all []Shared
	for i := range declared {
		if ended(declared[i].ExpiresAt, now) {
			continue
		}
		with, err := c.Invited(ctx, of, declared[i].GroupRef)
		switch {
		case errors.Is(err, ErrNotFound):
		case err != nil:
			return nil, err
		default:
			all = append(all, Shared{Of: of, Share: &declared[i], With: with})
		}
	}
	return all, nil
}

// sharing returns the project and the groups of a scope that declare shares, the nearest first.
func (s Scope) sharing() (all []v1alpha1.Shareable) {
	if s.Project != nil && len(s.Project.Spec.SharedWith) > 0 {
		all = append(all, s.Project)
	}
	for _, g := range s.Groups {
		if len(g.Spec.SharedWith) > 0 {
			all = append(all, g)
		}
	}
	return all
}

// Shared reports whether the project or group of a scope, or a group above it, declares shares.
func (s Scope) Shared() bool {
	if s.Project != nil && len(s.Project.Spec.SharedWith) > 0 {
		return true
	}
	return slices.ContainsFunc(s.Groups, func(g *v1alpha1.Group) bool { return len(g.Spec.SharedWith) > 0 })
}

// SharesEnd returns the time after now at which the next share of the project or group of a scope, or of a group above it, ends; zero if none
// of them ends.
func (s Scope) SharesEnd(now time.Time) (next time.Time) {
	for _, of := range s.sharing() {
		declared, _ := of.Shares()
		for i := range declared {
			if !ended(declared[i].ExpiresAt, now) {
				next = sooner(next, end(declared[i].ExpiresAt))
			}
		}
	}
	return next
}

// InvitedTo returns the scope of a group with which the project or group of a scope, or a group above it, is shared at a time; ErrNotFound if
// none of them is.
func (c *Catalog) InvitedTo(ctx context.Context, s Scope, g *v1alpha1.Group, now time.Time) (Scope, error) {
	for _, of := range s.sharing() {
		shares, err := c.SharesOf(ctx, of, now)
		if err != nil {
			return Scope{}, err
		}
		for _, share := range shares {
			if share.With.Groups[0].UID == g.UID {
				return share.With, nil
			}
		}
	}
	return Scope{}, ErrNotFound
}

// ProjectsSharedWith returns the UIDs of the projects that are themselves shared with a group at a time, and the time until which that is so
// at most; zero means that it does not end. It does not check the places of the projects.
func (c *Catalog) ProjectsSharedWith(ctx context.Context, g *v1alpha1.Group, now time.Time) (all []types.UID, until time.Time, err error) {
	found, err := List[*v1alpha1.Project](ctx, c, IndexInvited, c.GroupKeys(ctx, g)...)
	if err != nil {
		return nil, until, err
	}
	for _, p := range found {
		shares, err := c.SharesOf(ctx, p, now)
		if err != nil {
			return nil, until, err
		}
		for _, s := range shares {
			if s.With.Groups[0].UID == g.UID {
				all, until = append(all, p.UID), sooner(until, end(s.Share.ExpiresAt))
			}
		}
	}
	return all, until, nil
}

// sharedRole returns the highest role that a user has in a scope because they are a member of groups that it is shared with, and the time
// until which it lasts at most; zero means that it does not end. Only memberships count in such a group, not what is shared with that group
// in turn. So a share does not pass on, and groups that are shared with each other do not make a cycle.
func (c *Catalog) sharedRole(ctx context.Context, u *v1alpha1.User, userKeys []string, s Scope, now time.Time) (highest role.Role, until time.Time, err error) {
	for _, of := range s.sharing() {
		declared, _ := of.Shares()
		for i := range declared {
			limit := RoleOf(declared[i].Role)
			if limit <= highest || ended(declared[i].ExpiresAt, now) {
				continue
			}
			with, err := c.Invited(ctx, of, declared[i].GroupRef)
			if errors.Is(err, ErrNotFound) {
				continue
			}
			if err != nil {
				return role.None, until, err
			}
			given, ends, err := c.memberRoles(ctx, u, userKeys, with, now)
			if err != nil {
				return role.None, until, err
			}
			highest = max(highest, min(limit, given.Member()))
			until = sooner(sooner(until, ends), end(declared[i].ExpiresAt))
		}
	}
	return highest, until, nil
}
