package catalog

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/claim"
	"github.com/forgeplane/forgeplane/internal/role"
)

// Member is a user, and the membership that gives them a role.
type Member struct {
	User       *v1alpha1.User
	Membership *v1alpha1.Membership
	// Shared is the share through which the membership counts, which is then in the group of the share or in one above it; nil if the
	// membership counts by itself.
	Shared *Shared
}

// Role returns the role that the membership gives, at most that of the share.
func (m Member) Role() role.Role {
	r := RoleOf(m.Membership.Spec.Role)
	if m.Shared != nil {
		return min(r, RoleOf(m.Shared.Share.Role))
	}
	return r
}

// Ends returns the time at which the role ends; zero means never.
func (m Member) Ends() time.Time {
	ends := end(m.Membership.Spec.ExpiresAt)
	if m.Shared != nil {
		return sooner(ends, end(m.Shared.Share.ExpiresAt))
	}
	return ends
}

// RESTID returns the id of the user; 0 if they have none yet.
func (m Member) RESTID() int64 { return m.User.RESTID() }

// MembersOf returns the direct members of a project or group at a time, sorted by user id.
func (c *Catalog) MembersOf(ctx context.Context, s Scope, now time.Time) ([]Member, error) {
	index := IndexGroup
	if s.Project != nil {
		index = IndexProject
	}
	own, err := c.members(ctx, index, target{s.Target(), s.Keys()})
	return inForce(now, own), err
}

// AllMembersOf is MembersOf together with the members that a project or group inherits from the groups above it. If a user has several
// memberships, it returns the one with the highest role, and among these the nearest.
func (c *Catalog) AllMembersOf(ctx context.Context, s Scope, now time.Time) ([]Member, error) {
	all, err := c.MembersOf(ctx, s, now)
	if err != nil {
		return nil, err
	}
	above := s.Groups
	if s.Project == nil {
		above = above[1:]
	}
	for _, t := range targets(above) {
		more, err := c.members(ctx, IndexGroup, t)
		if err != nil {
			return nil, err
		}
		all = append(all, inForce(now, more)...)
	}
	return highestOf(all), nil
}

// SharedMembersOf returns the members of the groups that a project or group, or a group above it, is shared with. wanted says which of these
// groups count. If a user has several roles, it returns the highest.
func (c *Catalog) SharedMembersOf(ctx context.Context, s Scope, now time.Time, wanted func(Shared) (bool, error)) ([]Member, error) {
	var all []Member
	for _, of := range s.sharing() {
		shares, err := c.SharesOf(ctx, of, now)
		if err != nil {
			return nil, err
		}
		for i := range shares {
			if ok, err := wanted(shares[i]); err != nil {
				return nil, err
			} else if !ok {
				continue
			}
			members, err := c.AllMembersOf(ctx, shares[i].With, now)
			if err != nil {
				return nil, err
			}
			for _, m := range members {
				m.Shared = &shares[i]
				all = append(all, m)
			}
		}
	}
	return highestOf(all), nil
}

// HighestOf returns, for each user among the members, the first one with the highest role, sorted by user id.
func HighestOf(members ...[]Member) []Member { return highestOf(slices.Concat(members...)) }

// Above returns the scope from which a project or group inherits members; false for a root group.
func (s Scope) Above() (Scope, bool) {
	if s.Project != nil {
		return Scope{Groups: s.Groups}, true
	}
	return Scope{Groups: s.Groups[1:]}, len(s.Groups) > 1
}

// Given is a membership, and its project or group.
type Given struct {
	Scope
	Membership *v1alpha1.Membership
}

// GivenBelow returns the memberships of a user in the groups and projects below a group, including those that have ended.
func (c *Catalog) GivenBelow(ctx context.Context, u *v1alpha1.User, g *v1alpha1.Group) ([]Given, error) {
	keys, err := c.HeldKeys(ctx, u)
	if err != nil {
		return nil, err
	}
	all, err := c.membershipsOf(ctx, u, IndexUser, keys...)
	if err != nil {
		return nil, err
	}
	var below []Given
	for _, m := range all {
		s, err := c.ScopeOf(ctx, m)
		if errors.Is(err, ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		above, _ := s.Above()
		if Belongs(m, s.Target()) && slices.ContainsFunc(above.Groups, func(a *v1alpha1.Group) bool { return a.UID == g.UID }) {
			below = append(below, Given{s, m})
		}
	}
	return below, nil
}

// members returns the members of a target, each with the membership that is in force.
func (c *Catalog) members(ctx context.Context, index string, t target) ([]Member, error) {
	found, err := List[*v1alpha1.Membership](ctx, c, index, t.keys...)
	if err != nil {
		return nil, err
	}
	var all []Member
	at := map[types.UID]int{}
	for _, m := range found {
		if !Belongs(m, t.of) {
			continue
		}
		u, err := c.User(ctx, m.Spec.UserRef)
		if errors.Is(err, ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		i, ok := at[u.UID]
		if !ok {
			at[u.UID] = len(all)
			all = append(all, Member{User: u, Membership: m})
			continue
		}
		all[i].Membership = claim.Holder([]*v1alpha1.Membership{all[i].Membership, m}, claim.Membership(t.of.GetUID(), u.UID))
	}
	return all, nil
}

// inForce returns the members whose membership has not ended, sorted by user id.
func inForce(now time.Time, all []Member) []Member {
	all = slices.DeleteFunc(all, func(m Member) bool { return Expired(m.Membership, now) })
	slices.SortStableFunc(all, byUser)
	return all
}

func byUser(a, b Member) int { return cmp.Compare(a.RESTID(), b.RESTID()) }

// highestOf returns, for each user, the first of the members with the highest role.
func highestOf(all []Member) []Member {
	at := map[types.UID]int{}
	var kept []Member
	for _, m := range all {
		i, ok := at[m.User.UID]
		switch {
		case !ok:
			at[m.User.UID] = len(kept)
			kept = append(kept, m)
		case m.Role() > kept[i].Role():
			kept[i] = m
		}
	}
	slices.SortStableFunc(kept, byUser)
	return kept
}
