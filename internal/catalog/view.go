package catalog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/claim"
	"github.com/forgeplane/forgeplane/internal/role"
)

// View has all groups and projects that hold a place, as one user or bot sees them at one time. It looks up shared ancestors only once. Use one
// View per request.
type View struct {
	catalog *Catalog
	user    *v1alpha1.User
	// bot is the viewer if it is a bot; user is nil then.
	bot    *Bot
	now    time.Time
	places map[types.UID]*placed
	// homes are the places of projects, by their reference to their group.
	homes map[home]*placed
	// memberships are the user's memberships by target key; nil until they were looked up.
	memberships map[string][]*v1alpha1.Membership
	until       time.Time
}

// home is a reference to a group from a namespace.
type home struct {
	namespace string
	group     v1alpha1.Reference
}

// placed is a group with everything that follows from its place.
type placed struct {
	scope Scope
	// roles are without Shared, which would need the roles of other groups: groups that are shared with each other would make a cycle.
	roles Roles
	// shared is Shared, once it was needed; nil before.
	shared *role.Role
	err    error
}

// View returns the groups and projects as a user sees them. user is nil for callers who have not signed in.
func (c *Catalog) View(user *v1alpha1.User, now time.Time) *View {
	return &View{catalog: c, user: user, now: now, places: map[types.UID]*placed{}, homes: map[home]*placed{}}
}

// Seen is a group or project with the user's roles in it.
type Seen struct {
	Scope
	Roles
}

// Projects returns every project that holds a place.
func (v *View) Projects(ctx context.Context) ([]Seen, error) {
	var l v1alpha1.ProjectList
	if err := v.catalog.reader.List(ctx, &l, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing projects: %w", err)
	}
	all := make([]Seen, 0, len(l.Items))
	for i := range l.Items {
		p := &l.Items[i]
		at := v.home(ctx, home{p.Namespace, p.Spec.GroupRef})
		scope := Scope{Project: p, Groups: at.scope.Groups}
		if at.err != nil || !v.holds(ctx, p, p.Status.FullPath, scope) {
			continue
		}
		own, err := v.own(ctx, target{p, scope.Keys()})
		if err != nil {
			return nil, err
		}
		shared, err := v.sharedIn(ctx, at)
		if err == nil {
			shared, err = v.sharedBy(ctx, p, shared)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, Seen{scope, Roles{Own: own, Inherited: at.roles.Member(), Shared: shared}})
	}
	return all, nil
}

// Groups returns every group that holds a place.
func (v *View) Groups(ctx context.Context) ([]Seen, error) {
	var l v1alpha1.GroupList
	if err := v.catalog.reader.List(ctx, &l, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing groups: %w", err)
	}
	all := make([]Seen, 0, len(l.Items))
	for i := range l.Items {
		g := &l.Items[i]
		at := v.place(ctx, g)
		if at.err != nil || !v.holds(ctx, g, g.Status.FullPath, at.scope) {
			continue
		}
		roles := at.roles
		var err error
		if roles.Shared, err = v.sharedIn(ctx, at); err != nil {
			return nil, err
		}
		all = append(all, Seen{at.scope, roles})
	}
	return all, nil
}

// Below returns the projects below a group, and the groups including the group itself, the deepest first: if they are removed in this order,
// every object that is left remains reachable.
func (v *View) Below(ctx context.Context, g *v1alpha1.Group) (projects, groups []Seen, err error) {
	if projects, err = v.Projects(ctx); err != nil {
		return nil, nil, err
	}
	if groups, err = v.Groups(ctx); err != nil {
		return nil, nil, err
	}
	elsewhere := func(s Seen) bool {
		return !slices.ContainsFunc(s.Groups, func(a *v1alpha1.Group) bool { return a.UID == g.UID })
	}
	projects, groups = slices.DeleteFunc(projects, elsewhere), slices.DeleteFunc(groups, elsewhere)
	slices.SortFunc(groups, func(a, b Seen) int { return cmp.Compare(len(b.Groups), len(a.Groups)) })
	return projects, groups, nil
}

// holds reports whether an object holds its full path. It trusts a status that says so, and looks up an object that was moved or whose
// status is not written yet.
func (v *View) holds(ctx context.Context, obj v1alpha1.Object, shown string, s Scope) bool {
	if !obj.GetDeletionTimestamp().IsZero() {
		return false
	}
	if shown != "" && s.PathClaim().ShownBy(obj) {
		return true
	}
	holder, err := v.catalog.ByPath(ctx, s.Path())
	return err == nil && holder.GetUID() == obj.GetUID()
}

// place returns the place of a group, and the user's roles there.
func (v *View) place(ctx context.Context, g *v1alpha1.Group) *placed {
	if at, ok := v.places[g.UID]; ok {
		return at
	}
	at := &placed{}
	v.places[g.UID] = at
	at.scope.Groups, at.err = v.catalog.Ancestors(ctx, g)
	if at.err != nil {
		return at
	}
	if len(at.scope.Groups) > 1 {
		at.roles.Inherited = v.place(ctx, at.scope.Groups[1]).roles.Member()
	}
	at.roles.Own, at.err = v.own(ctx, target{g, at.scope.Keys()})
	return at
}

// home returns the place of the projects with this reference to their group. Its error says that they have no place.
func (v *View) home(ctx context.Context, h home) *placed {
	at, ok := v.homes[h]
	if !ok {
		if g, err := v.catalog.Group(ctx, h.namespace, h.group); err != nil {
			at = &placed{err: err}
		} else {
			at = v.place(ctx, g)
		}
		v.homes[h] = at
	}
	return at
}

// sharedIn returns the user's role from groups that a group, or a group above it, is shared with.
func (v *View) sharedIn(ctx context.Context, at *placed) (role.Role, error) {
	if at.shared != nil {
		return *at.shared, nil
	}
	above := role.None
	if len(at.scope.Groups) > 1 {
		var err error
		if above, err = v.sharedIn(ctx, v.place(ctx, at.scope.Groups[1])); err != nil {
			return role.None, err
		}
	}
	shared, err := v.sharedBy(ctx, at.scope.Groups[0], above)
	at.shared = &shared
	return shared, err
}

// sharedBy returns the higher one of a role and the user's role from groups that a project or group itself is shared with.
func (v *View) sharedBy(ctx context.Context, of v1alpha1.Shareable, highest role.Role) (role.Role, error) {
	declared, _ := of.Shares()
	if v.user == nil || len(declared) == 0 {
		return highest, nil
	}
	for i := range declared {
		limit := RoleOf(declared[i].Role)
		if limit <= highest || ended(declared[i].ExpiresAt, v.now) {
			continue
		}
		with, err := v.catalog.Invited(ctx, of, declared[i].GroupRef)
		if errors.Is(err, ErrNotFound) {
			continue
		}
		if err != nil {
			return role.None, err
		}
		at := v.place(ctx, with.Groups[0])
		if at.err != nil {
			return role.None, at.err
		}
		highest = max(highest, min(limit, at.roles.Member()))
		v.until = sooner(v.until, end(declared[i].ExpiresAt))
	}
	return highest, nil
}

// Until returns the earliest time at which the returned roles change by themselves; zero means never.
func (v *View) Until() time.Time { return v.until }

// own returns the user's role from a direct membership of the target, or the role that the bot has there.
func (v *View) own(ctx context.Context, of target) (role.Role, error) {
	switch {
	case v.bot != nil && of.of.GetUID() == v.bot.Target:
		return v.bot.Role, nil
	case v.user == nil:
		return role.None, nil
	}
	if v.memberships == nil {
		if err := v.lookUpMemberships(ctx); err != nil {
			return role.None, err
		}
	}
	var own []*v1alpha1.Membership
	for _, k := range of.keys {
		for _, m := range v.memberships[k] {
			if Belongs(m, of.of) {
				own = append(own, m)
			}
		}
	}
	m := claim.Holder(own, claim.Membership(of.of.GetUID(), v.user.UID))
	if m == nil || Expired(m, v.now) {
		return role.None, nil
	}
	v.until = sooner(v.until, end(m.Spec.ExpiresAt))
	return RoleOf(m.Spec.Role), nil
}

func (v *View) lookUpMemberships(ctx context.Context) error {
	keys, err := v.catalog.HeldKeys(ctx, v.user)
	if err != nil {
		return err
	}
	all, err := v.catalog.membershipsOf(ctx, v.user, IndexUser, keys...)
	if err != nil {
		return err
	}
	v.memberships = make(map[string][]*v1alpha1.Membership, len(all))
	for _, m := range all {
		for _, key := range TargetKeys(m) {
			v.memberships[key] = append(v.memberships[key], m)
		}
	}
	return nil
}
