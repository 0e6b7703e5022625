package catalog_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/catalog/catalogtest"
	. "github.com/forgeplane/forgeplane/internal/catalog/catalogtest/objects"
	"github.com/forgeplane/forgeplane/internal/role"
)

func TestRolesIn_countsShares(t *testing.T) {
	const guest, developer, maintainer, owner = v1alpha1.RoleGuest, v1alpha1.RoleDeveloper, v1alpha1.RoleMaintainer, v1alpha1.RoleOwner
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	who := ByName("max")
	in := func(group string, r v1alpha1.Role) *v1alpha1.Membership {
		return InGroup("b", "in-"+group, ByName(group), who, r)
	}
	until := func(s v1alpha1.Share, when time.Time) v1alpha1.Share {
		s.ExpiresAt = &metav1.Time{Time: when}
		return s
	}
	// The project is acme/sub/web in the namespace a. The groups bolt and bolt/team are in the namespace b.
	tests := []struct {
		name                string
		project, sub, acme  []v1alpha1.Share
		bolt                []v1alpha1.Share
		objects             []client.Object
		inProject, inParent role.Role
	}{
		{name: "none without a membership", project: []v1alpha1.Share{Sharing(ByPath("bolt"), owner)}},
		{
			name: "the role in the group", project: []v1alpha1.Share{Sharing(ByPath("bolt"), owner)},
			objects: []client.Object{in("bolt", developer)}, inProject: role.Developer,
		},
		{
			name: "at most the role of the share", project: []v1alpha1.Share{Sharing(ByID(20), guest)},
			objects: []client.Object{in("bolt", owner)}, inProject: role.Guest,
		},
		{
			name: "a member of a group above the invited one", project: []v1alpha1.Share{Sharing(ByPath("bolt/team"), maintainer)},
			objects: []client.Object{in("bolt", developer)}, inProject: role.Developer,
		},
		{
			name: "no member of a group below the invited one", project: []v1alpha1.Share{Sharing(ByPath("bolt"), maintainer)},
			objects: []client.Object{in("team", developer)},
		},
		{
			name: "in everything below a shared group", sub: []v1alpha1.Share{Sharing(ByPath("bolt"), maintainer)},
			objects: []client.Object{in("bolt", owner)}, inProject: role.Maintainer, inParent: role.Maintainer,
		},
		{
			name: "the highest over all ways", acme: []v1alpha1.Share{Sharing(ByPath("bolt"), guest)},
			sub: []v1alpha1.Share{Sharing(ByPath("bolt/team"), maintainer)}, project: []v1alpha1.Share{Sharing(ByPath("bolt"), developer)},
			objects:   []client.Object{in("bolt", owner), InProject("a", "direct", ByName("web"), who, guest)},
			inProject: role.Maintainer, inParent: role.Maintainer,
		},
		{
			name: "a higher membership stays", project: []v1alpha1.Share{Sharing(ByPath("bolt"), guest)},
			objects:   []client.Object{in("bolt", owner), InProject("a", "direct", ByName("web"), who, maintainer)},
			inProject: role.Maintainer,
		},
		{
			name: "until the share ends", project: []v1alpha1.Share{until(Sharing(ByPath("bolt"), owner), now.Add(time.Second))},
			objects: []client.Object{in("bolt", developer)}, inProject: role.Developer,
		},
		{
			name: "not after the share has ended", project: []v1alpha1.Share{until(Sharing(ByPath("bolt"), owner), now)},
			objects: []client.Object{in("bolt", developer)},
		},
		{
			name: "not after the membership has ended", project: []v1alpha1.Share{Sharing(ByPath("bolt"), owner)},
			objects: []client.Object{Until(in("bolt", developer), now)},
		},
		{
			name: "a share does not pass on", project: []v1alpha1.Share{Sharing(ByPath("bolt"), owner)},
			bolt:    []v1alpha1.Share{Sharing(ByPath("crew"), owner)},
			objects: []client.Object{InGroup("c", "m", ByName("crew"), who, owner)},
		},
		{
			name: "groups that are shared with each other", sub: []v1alpha1.Share{Sharing(ByPath("bolt"), developer)},
			bolt:    []v1alpha1.Share{Sharing(ByPath("acme/sub"), owner)},
			objects: []client.Object{in("bolt", owner)}, inProject: role.Developer, inParent: role.Developer,
		},
		{
			name: "a group that is shared with itself", sub: []v1alpha1.Share{Sharing(ByName("sub"), owner)},
			objects:   []client.Object{InGroup("a", "m", ByName("sub"), who, guest)},
			inProject: role.Guest, inParent: role.Guest,
		},
		{
			name: "not by the name of a group of another namespace", project: []v1alpha1.Share{Sharing(ByName("bolt"), owner)},
			objects: []client.Object{in("bolt", owner)},
		},
		{
			name: "not for the members that another namespace declares", project: []v1alpha1.Share{Sharing(ByPath("bolt"), owner)},
			objects: []client.Object{InGroup("c", "m", ByPath("bolt"), who, owner)},
		},
		{
			name: "not for a successor of the group", project: []v1alpha1.Share{Sharing(Meaning(ByPath("bolt"), "an earlier one"), owner)},
			objects: []client.Object{in("bolt", owner)},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			u, web := User("max", 1), Project("a", "web", ByName("sub"), Known(100))
			acme, sub := Group("a", "acme", Pinned(10)), Group("a", "sub", Pinned(11), Below(ByName("acme")))
			bolt := Group("b", "bolt", Pinned(20))
			web.Spec.SharedWith, sub.Spec.SharedWith, acme.Spec.SharedWith, bolt.Spec.SharedWith = test.project, test.sub, test.acme, test.bolt
			w := catalogtest.New(t, u, acme, sub, web, bolt, Group("b", "team", Below(ByName("bolt"))), Group("c", "crew"))
			w.Put(test.objects...)
			c := w.Catalog()
			s, err := c.ProjectScope(t.Context(), web)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(c.RolesIn(t.Context(), u, s, now)).To(HaveField("Highest()", test.inProject))
			g.Expect(c.RolesIn(t.Context(), u, catalog.Scope{Groups: s.Groups}, now)).To(HaveField("Highest()", test.inParent))
			g.Expect(c.ProjectRole(t.Context(), u, web, now)).To(Equal(test.inProject))
		})
	}
}

func TestShare_doesNotFollowAPathToAnotherTenant(t *testing.T) {
	g := NewWithT(t)
	now := time.Now()
	u, web := User("max", 1), Project("a", "web", ByName("acme"), Known(100))
	web.Spec.SharedWith = []v1alpha1.Share{Sharing(ByPath("bolt"), v1alpha1.RoleOwner)}
	bolt := Group("b", "bolt")
	w := catalogtest.New(t, u, Group("a", "acme"), web, bolt, InGroup("b", "m", ByName("bolt"), ByName("max"), v1alpha1.RoleOwner))
	c := w.Catalog()
	has := func() role.Role {
		p, err := catalog.Get[*v1alpha1.Project](t.Context(), c, "a", "web")
		g.Expect(err).NotTo(HaveOccurred())
		s, err := c.ProjectScope(t.Context(), p)
		g.Expect(err).NotTo(HaveOccurred())
		roles, err := c.RolesIn(t.Context(), u, s, now)
		g.Expect(err).NotTo(HaveOccurred())
		return roles.Highest()
	}
	record := func() (string, error) {
		p, err := catalog.Get[*v1alpha1.Project](t.Context(), c, "a", "web")
		g.Expect(err).NotTo(HaveOccurred())
		p = p.DeepCopy()
		field, unresolved := c.RecordShares(t.Context(), p)
		w.Put(p)
		return field, unresolved
	}
	_, err := record()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(has()).To(Equal(role.Owner))

	w.Remove(bolt)
	g.Expect(has()).To(Equal(role.None))
	field, err := record()
	g.Expect(field).To(Equal("sharedWith[0]"))
	g.Expect(err).To(MatchError(catalog.ErrNotFound))

	w.Put(Group("c", "bolt"), InGroup("c", "m", ByName("bolt"), ByName("max"), v1alpha1.RoleOwner))
	g.Expect(has()).To(Equal(role.None), "another tenant has the path now")
	_, err = record()
	g.Expect(err).To(MatchError(catalog.ErrReplaced))

	p, err := catalog.Get[*v1alpha1.Project](t.Context(), c, "a", "web")
	g.Expect(err).NotTo(HaveOccurred())
	p = p.DeepCopy()
	p.Spec.SharedWith, p.Generation = nil, 2
	w.Put(p)
	_, err = record()
	g.Expect(err).NotTo(HaveOccurred())
	p = p.DeepCopy()
	p.Spec.SharedWith, p.Status.RecordedShares, p.Generation = web.Spec.SharedWith, nil, 3
	w.Put(p)
	g.Expect(has()).To(Equal(role.Owner), "it was declared anew for the group that has the path")
}

func TestSharedMembersOf_returnsHighestRoles(t *testing.T) {
	g := NewWithT(t)
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	web := Project("a", "web", ByName("acme"), Known(100))
	acme := Group("a", "acme", Pinned(10))
	web.Spec.SharedWith = []v1alpha1.Share{Sharing(ByPath("bolt"), v1alpha1.RoleDeveloper), Sharing(ByPath("nowhere"), v1alpha1.RoleOwner)}
	acme.Spec.SharedWith = []v1alpha1.Share{Sharing(ByPath("bolt/team"), v1alpha1.RoleReporter)}
	c := catalogtest.New(t, User("max", 1), User("dana", 2), acme, web, Group("b", "bolt"), Group("b", "team", Below(ByName("bolt"))),
		InGroup("b", "m1", ByName("bolt"), ByName("max"), v1alpha1.RoleOwner),
		Until(InGroup("b", "m2", ByName("team"), ByName("dana"), v1alpha1.RoleGuest), now.Add(time.Hour))).Catalog()
	s, err := c.ProjectScope(t.Context(), web)
	g.Expect(err).NotTo(HaveOccurred())
	who := func(wanted func(catalog.Shared) (bool, error)) (shown []string) {
		all, err := c.SharedMembersOf(t.Context(), s, now, wanted)
		g.Expect(err).NotTo(HaveOccurred())
		for _, m := range all {
			shown = append(shown, fmt.Sprintf("%s %s until %s", m.User.Name, m.Role(), m.Ends().Format("15:04")))
		}
		return shown
	}
	g.Expect(who(func(catalog.Shared) (bool, error) { return true, nil })).To(Equal([]string{
		"max Developer until 00:00", "dana Guest until 13:00",
	}))
	g.Expect(who(func(s catalog.Shared) (bool, error) { return s.With.Path() == "bolt/team", nil })).To(Equal([]string{
		"max Reporter until 00:00", "dana Guest until 13:00",
	}))
	g.Expect(who(func(catalog.Shared) (bool, error) { return false, nil })).To(BeEmpty())
}

// TestRoles_agreeWithNaiveModel declares groups, projects, memberships and shares at random, and compares every way to ask for a role with
// a model that follows the definition.
func TestRoles_agreeWithNaiveModel(t *testing.T) {
	const seed, worlds, times = 11, 25, 4
	random := rand.New(rand.NewPCG(seed, seed)) //nolint:gosec // the test must be repeatable
	given := 0
	for n := range worlds {
		m := newModel(random)
		w := catalogtest.New(t, m.objects()...)
		remembers, looksUp := w.Catalog(), catalog.New(w.Reader())
		now := m.start
		for range times {
			given += m.compare(t, fmt.Sprintf("seed %d, world %d, %s", seed, n, now.Format("15:04")), remembers, looksUp, now)
			now = now.Add(time.Duration(random.IntN(120)) * time.Minute)
		}
	}
	NewWithT(t).Expect(given).To(BeNumerically(">", worlds), "shares that gave a role")
}

// model has groups in trees, of which each has a path of its own, projects in them, and memberships.
type model struct {
	start    time.Time
	users    []*v1alpha1.User
	groups   []*v1alpha1.Group
	projects []*v1alpha1.Project
	members  []*v1alpha1.Membership
	// above is the parent of each group, and of each project.
	above map[client.Object]*v1alpha1.Group
	// invited are the groups of the shares of an object, in their order.
	invited map[client.Object][]*v1alpha1.Group
	// roles are the memberships by user and target.
	roles map[[2]client.Object]*v1alpha1.Membership
}

func newModel(random *rand.Rand) *model {
	m := &model{
		start: time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC), above: map[client.Object]*v1alpha1.Group{},
		invited: map[client.Object][]*v1alpha1.Group{}, roles: map[[2]client.Object]*v1alpha1.Membership{},
	}
	names := []v1alpha1.Role{v1alpha1.RoleGuest, v1alpha1.RoleReporter, v1alpha1.RoleDeveloper, v1alpha1.RoleMaintainer, v1alpha1.RoleOwner}
	ends := func() *metav1.Time {
		if random.IntN(2) == 0 {
			return nil
		}
		return &metav1.Time{Time: m.start.Add(time.Duration(random.IntN(300)) * time.Minute)}
	}
	for i := range 3 {
		m.users = append(m.users, User(fmt.Sprintf("u%d", i), int64(i+1)))
	}
	paths := map[*v1alpha1.Group]string{}
	for i := range 7 {
		name := fmt.Sprintf("g%d", i)
		g := Group(fmt.Sprintf("n%d", random.IntN(2)), name, Pinned(int64(i+1)))
		if paths[g] = name; i > 0 && random.IntN(2) == 0 {
			parent := m.groups[random.IntN(i)]
			g.Namespace = parent.Namespace
			Below(ByName(parent.Name))(&g.Spec)
			m.above[g], paths[g] = parent, paths[parent]+"/"+name
		}
		m.groups = append(m.groups, g)
	}
	for i := range 4 {
		in := m.groups[random.IntN(len(m.groups))]
		p := Project(in.Namespace, fmt.Sprintf("p%d", i), ByName(in.Name), Known(int64(i+1)))
		m.above[p] = in
		m.projects = append(m.projects, p)
	}
	share := func(of client.Object, declared *[]v1alpha1.Share) {
		for range random.IntN(3) {
			with := m.groups[random.IntN(len(m.groups))]
			ref := []v1alpha1.Reference{ByPath(paths[with]), ByID(with.Spec.ID), Meaning(ByID(with.Spec.ID), with.UID)}[random.IntN(3)]
			s := Sharing(ref, names[random.IntN(len(names))])
			s.ExpiresAt = ends()
			*declared = append(*declared, s)
			m.invited[of] = append(m.invited[of], with)
		}
	}
	member := func(of client.Object, in func(namespace, name string, of, who v1alpha1.Reference, r v1alpha1.Role) *v1alpha1.Membership) {
		for _, u := range m.users {
			if random.IntN(3) > 0 {
				continue
			}
			one := in(of.GetNamespace(), u.Name+"-in-"+of.GetName(), ByName(of.GetName()), ByName(u.Name), names[random.IntN(len(names))])
			one.Spec.ExpiresAt = ends()
			m.members = append(m.members, one)
			m.roles[[2]client.Object{u, of}] = one
		}
	}
	for _, g := range m.groups {
		share(g, &g.Spec.SharedWith)
		member(g, InGroup)
	}
	for _, p := range m.projects {
		share(p, &p.Spec.SharedWith)
		member(p, InProject)
	}
	return m
}

func (m *model) objects() (all []client.Object) {
	for _, u := range m.users {
		all = append(all, u)
	}
	for _, g := range m.groups {
		all = append(all, g)
	}
	for _, p := range m.projects {
		all = append(all, p)
	}
	for _, one := range m.members {
		all = append(all, one)
	}
	return all
}

// chain returns an object and the groups above it.
func (m *model) chain(o client.Object) []client.Object {
	all := []client.Object{o}
	for g := m.above[o]; g != nil; g = m.above[g] {
		all = append(all, g)
	}
	return all
}

// member returns the highest role from memberships.
func (m *model) member(u *v1alpha1.User, o client.Object, now time.Time) (highest role.Role) {
	for _, at := range m.chain(o) {
		if one := m.roles[[2]client.Object{u, at}]; one != nil && (one.Spec.ExpiresAt == nil || now.Before(one.Spec.ExpiresAt.Time)) {
			highest = max(highest, catalog.RoleOf(one.Spec.Role))
		}
	}
	return highest
}

// shared returns the highest role from shares.
func (m *model) shared(u *v1alpha1.User, o client.Object, now time.Time) (highest role.Role) {
	for _, at := range m.chain(o) {
		declared, _ := at.(v1alpha1.Shareable).Shares()
		for i, s := range declared {
			if s.ExpiresAt == nil || now.Before(s.ExpiresAt.Time) {
				highest = max(highest, min(catalog.RoleOf(s.Role), m.member(u, m.invited[at][i], now)))
			}
		}
	}
	return highest
}

// compare returns the number of roles that only a share gives.
func (m *model) compare(t *testing.T, when string, remembers, looksUp *catalog.Catalog, now time.Time) (given int) {
	t.Helper()
	g := NewWithT(t)
	for _, u := range m.users {
		check := func(o client.Object, s catalog.Scope, seen catalog.Roles) {
			t.Helper()
			want := max(m.member(u, o, now), m.shared(u, o, now))
			if m.shared(u, o, now) > m.member(u, o, now) {
				given++
			}
			about := fmt.Sprintf("%s: %s in %s", when, u.Name, s.Path())
			g.Expect(seen.Highest()).To(Equal(want), "%s, in a list", about)
			g.Expect(seen.Member()).To(Equal(m.member(u, o, now)), "%s, as a member", about)
			for range 2 {
				g.Expect(remembers.RolesIn(t.Context(), u, s, now)).To(HaveField("Highest()", want), "%s, remembered", about)
			}
			g.Expect(looksUp.RolesIn(t.Context(), u, s, now)).To(HaveField("Highest()", want), about)
		}
		tree := looksUp.View(u, now)
		projects, err := tree.Projects(t.Context())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(projects).To(HaveLen(len(m.projects)))
		for _, s := range projects {
			for _, p := range m.projects {
				if p.UID == s.Project.UID {
					check(p, s.Scope, s.Roles)
				}
			}
		}
		groups, err := tree.Groups(t.Context())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(groups).To(HaveLen(len(m.groups)))
		for _, s := range groups {
			for _, o := range m.groups {
				if o.UID == s.Groups[0].UID {
					check(o, s.Scope, s.Roles)
				}
			}
		}
	}
	return given
}
