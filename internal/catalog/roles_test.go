package catalog_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/catalog/catalogtest"
	"github.com/forgeplane/forgeplane/internal/role"
)

func TestProjectRole(t *testing.T) {
	const guest, developer, maintainer, owner = v1alpha1.RoleGuest, v1alpha1.RoleDeveloper, v1alpha1.RoleMaintainer, v1alpha1.RoleOwner
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	who, web, sub, acme := byName("max"), byName("web"), byName("sub"), byName("acme")
	// The project is acme/sub/web in the namespace a; the group bolt in the namespace b has admitted nobody.
	tests := []struct {
		name    string
		objects []client.Object
		want    role.Role
	}{
		{"none without a membership", nil, role.None},
		{"of the project", []client.Object{inProject("a", "m", web, who, developer)}, role.Developer},
		{"of the project by path and id", []client.Object{inProject("a", "m", byPath("Acme/Sub/Web"), byPath("MAX"), developer)}, role.Developer},
		{"of the project by ids", []client.Object{inProject("a", "m", byID(100), byID(1), developer)}, role.Developer},
		{"of the group", []client.Object{inGroup("a", "m", sub, who, maintainer)}, role.Maintainer},
		{"of the group above", []client.Object{inGroup("a", "m", acme, who, owner)}, role.Owner},
		{"of the group above by path", []client.Object{inGroup("a", "m", byPath("acme"), who, owner)}, role.Owner},
		{"the highest of all, from above", []client.Object{inProject("a", "m1", web, who, guest), inGroup("a", "m2", acme, who, maintainer)}, role.Maintainer},
		{"the highest of all, from below", []client.Object{inProject("a", "m1", web, who, maintainer), inGroup("a", "m2", acme, who, guest)}, role.Maintainer},
		{"not somebody else's", []client.Object{inProject("a", "m", web, byName("dana"), owner)}, role.None},
		{"not that of another project", []client.Object{inProject("a", "m", byName("other"), who, owner)}, role.None},
		{"not that of a group beside", []client.Object{inGroup("a", "m", byName("beside"), who, owner)}, role.None},

		{"not from another namespace by name", []client.Object{inProject("b", "m", web, who, owner)}, role.None},
		{"not from another namespace by path", []client.Object{inProject("b", "m", byPath("acme/sub/web"), who, owner)}, role.None},
		{"not from another namespace by id", []client.Object{inProject("b", "m", byID(100), who, owner)}, role.None},
		{"not from another namespace, of the group", []client.Object{inGroup("b", "m", byPath("acme"), who, owner), inGroup("b", "m2", byID(10), who, owner), inGroup("b", "m3", acme, who, owner)}, role.None},

		{"not one that has ended", []client.Object{until(inProject("a", "m", web, who, developer), now)}, role.None},
		{"one that has still a second", []client.Object{until(inProject("a", "m", web, who, developer), now.Add(time.Second))}, role.Developer},
		{"one that has ended hides none above", []client.Object{until(inProject("a", "m", web, who, owner), now), inGroup("a", "m2", acme, who, guest)}, role.Guest},

		{"the older of two", []client.Object{inProject("a", "m1", web, who, guest), inProject("a", "m2", web, who, owner)}, role.Guest},
		{"the older of two, by other names", []client.Object{inProject("a", "m1", byID(100), byPath("max"), guest), inProject("a", "m2", web, who, owner)}, role.Guest},
		{"the older of two, though it has ended", []client.Object{until(inProject("a", "m1", web, who, guest), now), inProject("a", "m2", web, who, owner)}, role.None},
		{"the older of another namespace hides none", []client.Object{inProject("b", "m1", byPath("acme/sub/web"), who, guest), inProject("a", "m2", web, who, owner)}, role.Owner},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			u, p := user("max", 1), project("a", "web", sub, known(100))
			w := catalogtest.New(t, u, user("dana", 2),
				group("a", "acme", pinned(10)), group("a", "sub", pinned(11), below(acme)), group("a", "beside", below(acme)), p,
				project("a", "other", sub), group("b", "bolt"), project("b", "web", byName("bolt")), group("b", "acme"))
			w.Put(test.objects...)
			c := w.Catalog()
			r, err := c.ProjectRole(t.Context(), u, p, now)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(r).To(Equal(test.want))
		})
	}
}

func TestAMembershipReachesDownwardsOnly(t *testing.T) {
	g := NewWithT(t)
	u, p := user("max", 1), project("b", "web", byName("sub"))
	acme, sub := group("a", "acme", admittingAll), group("b", "sub", below(byPath("acme")))
	w := catalogtest.New(t, u, acme, sub, p)
	c := w.Catalog()
	roles := func() (project, below, above role.Role) {
		project, err := c.ProjectRole(t.Context(), u, p, time.Now())
		g.Expect(err).NotTo(HaveOccurred())
		below, err = c.GroupRole(t.Context(), u, sub, time.Now())
		g.Expect(err).NotTo(HaveOccurred())
		above, err = c.GroupRole(t.Context(), u, acme, time.Now())
		g.Expect(err).NotTo(HaveOccurred())
		return project, below, above
	}
	expect := func(project, below, above role.Role) {
		t.Helper()
		p, b, a := roles()
		g.Expect([]role.Role{p, b, a}).To(Equal([]role.Role{project, below, above}))
	}
	expect(role.None, role.None, role.None)
	w.Put(inProject("b", "m1", byName("web"), byName("max"), v1alpha1.RoleOwner))
	expect(role.Owner, role.None, role.None)
	w.Put(inGroup("b", "m2", byName("sub"), byName("max"), v1alpha1.RoleMaintainer))
	expect(role.Owner, role.Maintainer, role.None)
	above := inGroup("a", "m3", byName("acme"), byName("max"), v1alpha1.RoleOwner)
	w.Put(above)
	expect(role.Owner, role.Owner, role.Owner)
	w.Remove(above)
	expect(role.Owner, role.Maintainer, role.None)
}

func TestAUserWhoLostHisNameToAnOlderOneHasNotTheOthersRoles(t *testing.T) {
	g := NewWithT(t)
	second, p := user("second", 2, called("Max")), project("a", "web", byName("acme"))
	third := user("third", 1)
	c := catalogtest.New(t, user("max", 1), second, third, group("a", "acme"), p,
		inGroup("a", "m1", byName("acme"), byPath("max"), v1alpha1.RoleOwner),
		inProject("a", "m2", byName("web"), byID(1), v1alpha1.RoleOwner),
		inProject("a", "m3", byName("web"), byName("second"), v1alpha1.RoleGuest),
	).Catalog()
	r, err := c.ProjectRole(t.Context(), second, p, time.Now())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(r).To(Equal(role.Guest), "by his own name only")
	r, err = c.ProjectRole(t.Context(), third, p, time.Now())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(r).To(Equal(role.None))
}

func TestNoRoleComesFromAPlaceThatIsNotInTheTree(t *testing.T) {
	u := user("max", 1)
	owner := inGroup("a", "m", byName("acme"), byName("max"), v1alpha1.RoleOwner)
	tests := map[string]struct {
		group *v1alpha1.Group
		err   error
	}{
		"a cycle":             {group("a", "acme", below(byName("acme"))), catalog.ErrCycle},
		"no parent":           {group("a", "acme", below(byName("nowhere"))), catalog.ErrNotFound},
		"no root":             {group("a", "acme", at("refused")), catalog.ErrRootNotAllowed},
		"no right to a place": {group("a", "acme", below(byPath("bolt"))), catalog.ErrParentNotAllowed},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			p := project("a", "web", byName("acme"))
			c := catalogtest.New(t, u, group("b", "bolt"), test.group, p, owner).
				Catalog(catalog.RootGroupRule{Namespace: "a", Path: "acme"}, catalog.RootGroupRule{Namespace: "b", Path: "bolt"})
			r, err := c.ProjectRole(t.Context(), u, p, time.Now())
			g.Expect(err).To(MatchError(test.err))
			g.Expect(r).To(Equal(role.None))
			r, err = c.GroupRole(t.Context(), u, test.group, time.Now())
			g.Expect(err).To(MatchError(test.err))
			g.Expect(r).To(Equal(role.None))
		})
	}
}

func TestMembershipInForce(t *testing.T) {
	g := NewWithT(t)
	u, acme := user("max", 1), group("a", "acme", pinned(10))
	p := project("a", "web", byName("acme"))
	c := catalogtest.New(t, u, acme, p,
		inGroup("a", "first", byID(10), byID(1), v1alpha1.RoleGuest), inGroup("a", "second", byName("acme"), byName("max"), v1alpha1.RoleOwner),
		inProject("a", "of-project", byPath("acme/web"), byPath("max"), v1alpha1.RoleGuest),
	).Catalog()
	m, err := c.GroupMembership(t.Context(), u, acme)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(m.Name).To(Equal("first"))
	m, err = c.ProjectMembership(t.Context(), u, p)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(m.Name).To(Equal("of-project"))
	m, err = c.ProjectMembership(t.Context(), user("dana", 2), p)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(m).To(BeNil())
}

func TestRoleOf(t *testing.T) {
	for declared, want := range map[v1alpha1.Role]role.Role{
		v1alpha1.RoleGuest: role.Guest, v1alpha1.RoleReporter: role.Reporter, v1alpha1.RoleDeveloper: role.Developer,
		v1alpha1.RoleMaintainer: role.Maintainer, v1alpha1.RoleOwner: role.Owner, "Admin": role.None, "": role.None,
	} {
		NewWithT(t).Expect(catalog.RoleOf(declared)).To(Equal(want), string(declared))
	}
}

// TestNoRoleIsRememberedOfAPlaceThatWasLeft asks for roles in a scope that was read before it changed, as a long request does.
func TestNoRoleIsRememberedOfAPlaceThatWasLeft(t *testing.T) {
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	for change, after := range map[string]client.Object{
		"the project is moved":              project("a", "web", byName("other"), known(100)),
		"a group above it is moved":         group("a", "sub", pinned(11), below(byName("other"))),
		"a group above it has another path": group("a", "acme", pinned(10), at("renamed")),
	} {
		t.Run(change, func(t *testing.T) {
			g := NewWithT(t)
			u, p := user("max", 1), project("a", "web", byName("sub"), known(100))
			w := catalogtest.New(t, u, group("a", "acme", pinned(10)), group("a", "sub", pinned(11), below(byName("acme"))),
				group("a", "other", pinned(12)), p, inGroup("a", "m", byPath("acme"), byName("max"), v1alpha1.RoleOwner))
			c := w.Catalog()
			before, err := c.ProjectScope(t.Context(), p)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(c.RolesIn(t.Context(), u, before, now)).To(HaveField("Highest()", role.Owner))

			w.Put(after)
			_, err = c.RolesIn(t.Context(), u, before, now)
			g.Expect(err).NotTo(HaveOccurred())
			p, err = c.ProjectByID(t.Context(), 100)
			g.Expect(err).NotTo(HaveOccurred())
			fresh, err := c.ProjectScope(t.Context(), p)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(c.RolesIn(t.Context(), u, fresh, now)).To(HaveField("Highest()", role.None))
		})
	}
}
