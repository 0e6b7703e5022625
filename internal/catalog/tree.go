package catalog

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/claim"
	"github.com/forgeplane/forgeplane/internal/role"
)

// Tree has all groups and projects that hold a place, as one user sees them at one time. It looks up shared ancestors only once. Use one
// Tree per request.
type Tree struct {
	catalog *Catalog
	user    *v1alpha1.User
	now     time.Time
	places  map[types.UID]*placed
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
	roles Roles
	err   error
}

// Tree returns the tree as a user sees it. user is nil for callers who have not signed in.
func (c *Catalog) Tree(user *v1alpha1.User, now time.Time) *Tree {
	return &Tree{catalog: c, user: user, now: now, places: map[types.UID]*placed{}, homes: map[home]*placed{}}
}

// Seen is a group or project with the user's roles in it.
type Seen struct {
	Scope
	Roles
}

// Projects returns every project that holds a place.
func (t *Tree) Projects(ctx context.Context) ([]Seen, error) {
	var l v1alpha1.ProjectList
	if err := t.catalog.reader.List(ctx, &l, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing projects: %w", err)
	}
	all := make([]Seen, 0, len(l.Items))
	for i := range l.Items {
		p := &l.Items[i]
		at := t.home(ctx, home{p.Namespace, p.Spec.GroupRef})
		scope := Scope{Project: p, Groups: at.scope.Groups}
		if at.err != nil || !t.holds(ctx, p, p.Status.FullPath, scope) {
			continue
		}
		own, err := t.own(ctx, target{p, scope.Keys()})
		if err != nil {
			return nil, err
		}
		all = append(all, Seen{scope, Roles{own, at.roles.Highest()}})
	}
	return all, nil
}

// Groups returns every group that holds a place.
func (t *Tree) Groups(ctx context.Context) ([]Seen, error) {
	var l v1alpha1.GroupList
	if err := t.catalog.reader.List(ctx, &l, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing groups: %w", err)
	}
	all := make([]Seen, 0, len(l.Items))
	for i := range l.Items {
		g := &l.Items[i]
		if at := t.place(ctx, g); at.err == nil && t.holds(ctx, g, g.Status.FullPath, at.scope) {
			all = append(all, Seen{at.scope, at.roles})
		}
	}
	return all, nil
}

// holds reports whether an object holds its full path. It trusts a status that says so, and looks up an object that was moved or whose
// status is not written yet.
func (t *Tree) holds(ctx context.Context, obj v1alpha1.Object, shown string, s Scope) bool {
	if !obj.GetDeletionTimestamp().IsZero() {
		return false
	}
	if shown != "" && s.PathClaim().ShownBy(obj) {
		return true
	}
	holder, err := t.catalog.ByPath(ctx, s.Path())
	return err == nil && holder.GetUID() == obj.GetUID()
}

// place returns the place of a group, and the user's roles there.
func (t *Tree) place(ctx context.Context, g *v1alpha1.Group) *placed {
	if at, ok := t.places[g.UID]; ok {
		return at
	}
	at := &placed{}
	t.places[g.UID] = at
	at.scope.Groups, at.err = t.catalog.Ancestors(ctx, g)
	if at.err != nil {
		return at
	}
	if len(at.scope.Groups) > 1 {
		at.roles.Inherited = t.place(ctx, at.scope.Groups[1]).roles.Highest()
	}
	at.roles.Own, at.err = t.own(ctx, target{g, at.scope.Keys()})
	return at
}

// home returns the place of the projects with this reference to their group. Its error says that they have no place.
func (t *Tree) home(ctx context.Context, h home) *placed {
	at, ok := t.homes[h]
	if !ok {
		if g, err := t.catalog.Group(ctx, h.namespace, h.group); err != nil {
			at = &placed{err: err}
		} else {
			at = t.place(ctx, g)
		}
		t.homes[h] = at
	}
	return at
}

// Until returns the earliest time at which the returned roles change by themselves; zero means never.
func (t *Tree) Until() time.Time { return t.until }

// own returns the user's role from a direct membership of the target.
func (t *Tree) own(ctx context.Context, of target) (role.Role, error) {
	if t.user == nil {
		return role.None, nil
	}
	if t.memberships == nil {
		if err := t.lookUpMemberships(ctx); err != nil {
			return role.None, err
		}
	}
	var own []*v1alpha1.Membership
	for _, k := range of.keys {
		for _, m := range t.memberships[k] {
			if Belongs(m, of.of) {
				own = append(own, m)
			}
		}
	}
	m := claim.Holder(own, claim.Membership(of.of.GetUID(), t.user.UID))
	if m == nil || Expired(m, t.now) {
		return role.None, nil
	}
	t.until = sooner(t.until, m)
	return RoleOf(m.Spec.Role), nil
}

func (t *Tree) lookUpMemberships(ctx context.Context) error {
	keys, err := t.catalog.HeldKeys(ctx, t.user)
	if err != nil {
		return err
	}
	all, err := t.catalog.membershipsOf(ctx, t.user, IndexUser, keys...)
	if err != nil {
		return err
	}
	t.memberships = make(map[string][]*v1alpha1.Membership, len(all))
	for _, m := range all {
		if of := cmp.Or(m.Spec.ProjectRef, m.Spec.GroupRef); of != nil {
			key := Key(m.Namespace, *of)
			t.memberships[key] = append(t.memberships[key], m)
		}
	}
	return nil
}
