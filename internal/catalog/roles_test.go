package catalog_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/catalog/catalogtest"
	. "github.com/forgeplane/forgeplane/internal/catalog/catalogtest/objects"
	"github.com/forgeplane/forgeplane/internal/role"
)

func TestProjectRole(t *testing.T) {
	const guest, developer, maintainer, owner = v1alpha1.RoleGuest, v1alpha1.RoleDeveloper, v1alpha1.RoleMaintainer, v1alpha1.RoleOwner
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	who, web, sub, acme := ByName("max"), ByName("web"), ByName("sub"), ByName("acme")
	// The project is acme/sub/web in the namespace a. The group bolt in the namespace b admits no other groups.
	tests := []struct {
		name    string
		objects []client.Object
		want    role.Role
	}{
		{"none without a membership", nil, role.None},
		{"of the project", []client.Object{InProject("a", "m", web, who, developer)}, role.Developer},
		{"of the project by path and id", []client.Object{InProject("a", "m", ByPath("Acme/Sub/Web"), ByPath("MAX"), developer)}, role.Developer},
		{"of the project by ids", []client.Object{InProject("a", "m", ByID(100), ByID(1), developer)}, role.Developer},
		{"of the group", []client.Object{InGroup("a", "m", sub, who, maintainer)}, role.Maintainer},
		{"of the group above", []client.Object{InGroup("a", "m", acme, who, owner)}, role.Owner},
		{"of the group above by path", []client.Object{InGroup("a", "m", ByPath("acme"), who, owner)}, role.Owner},
		{"the highest of all, from above", []client.Object{InProject("a", "m1", web, who, guest), InGroup("a", "m2", acme, who, maintainer)}, role.Maintainer},
		{"the highest of all, from below", []client.Object{InProject("a", "m1", web, who, maintainer), InGroup("a", "m2", acme, who, guest)}, role.Maintainer},
		{"not of another user", []client.Object{InProject("a", "m", web, ByName("dana"), owner)}, role.None},
		{"not of another project", []client.Object{InProject("a", "m", ByName("other"), who, owner)}, role.None},
		{"not of a sibling group", []client.Object{InGroup("a", "m", ByName("beside"), who, owner)}, role.None},

		{"not from another namespace by name", []client.Object{InProject("b", "m", web, who, owner)}, role.None},
		{"not from another namespace by path", []client.Object{InProject("b", "m", ByPath("acme/sub/web"), who, owner)}, role.None},
		{"not from another namespace by id", []client.Object{InProject("b", "m", ByID(100), who, owner)}, role.None},
		{"not from another namespace, of the group", []client.Object{InGroup("b", "m", ByPath("acme"), who, owner), InGroup("b", "m2", ByID(10), who, owner), InGroup("b", "m3", acme, who, owner)}, role.None},

		{"none after the membership has expired", []client.Object{Until(InProject("a", "m", web, who, developer), now)}, role.None},
		{"until the membership expires", []client.Object{Until(InProject("a", "m", web, who, developer), now.Add(time.Second))}, role.Developer},
		{"a role from above after the end of a higher one", []client.Object{Until(InProject("a", "m", web, who, owner), now), InGroup("a", "m2", acme, who, guest)}, role.Guest},

		{"the older of two", []client.Object{InProject("a", "m1", web, who, guest), InProject("a", "m2", web, who, owner)}, role.Guest},
		{"the older of two, by other references", []client.Object{InProject("a", "m1", ByID(100), ByPath("max"), guest), InProject("a", "m2", web, who, owner)}, role.Guest},
		{"the older of two, even after its end", []client.Object{Until(InProject("a", "m1", web, who, guest), now), InProject("a", "m2", web, who, owner)}, role.None},
		{"not the older one in another namespace", []client.Object{InProject("b", "m1", ByPath("acme/sub/web"), who, guest), InProject("a", "m2", web, who, owner)}, role.Owner},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			u, p := User("max", 1), Project("a", "web", sub, Known(100))
			w := catalogtest.New(t, u, User("dana", 2),
				Group("a", "acme", Pinned(10)), Group("a", "sub", Pinned(11), Below(acme)), Group("a", "beside", Below(acme)), p,
				Project("a", "other", sub), Group("b", "bolt"), Project("b", "web", ByName("bolt")), Group("b", "acme"))
			w.Put(test.objects...)
			c := w.Catalog()
			r, err := c.ProjectRole(t.Context(), u, p, now)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(r).To(Equal(test.want))
		})
	}
}

func TestMembership_doesNotReachUpwards(t *testing.T) {
	g := NewWithT(t)
	u, p := User("max", 1), Project("b", "web", ByName("sub"))
	acme, sub := Group("a", "acme", AdmittingAll), Group("b", "sub", Below(ByPath("acme")))
	w := catalogtest.New(t, u, acme, sub, p)
	c := w.Catalog()
	roles := func() (project, below, above role.Role) {
		project, err := c.ProjectRole(t.Context(), u, p, time.Now())
		g.Expect(err).NotTo(HaveOccurred())
		below, err = c.MemberRole(t.Context(), u, sub, time.Now())
		g.Expect(err).NotTo(HaveOccurred())
		above, err = c.MemberRole(t.Context(), u, acme, time.Now())
		g.Expect(err).NotTo(HaveOccurred())
		return project, below, above
	}
	expect := func(project, below, above role.Role) {
		t.Helper()
		p, b, a := roles()
		g.Expect([]role.Role{p, b, a}).To(Equal([]role.Role{project, below, above}))
	}
	expect(role.None, role.None, role.None)
	w.Put(InProject("b", "m1", ByName("web"), ByName("max"), v1alpha1.RoleOwner))
	expect(role.Owner, role.None, role.None)
	w.Put(InGroup("b", "m2", ByName("sub"), ByName("max"), v1alpha1.RoleMaintainer))
	expect(role.Owner, role.Maintainer, role.None)
	above := InGroup("a", "m3", ByName("acme"), ByName("max"), v1alpha1.RoleOwner)
	w.Put(above)
	expect(role.Owner, role.Owner, role.Owner)
	w.Remove(above)
	expect(role.Owner, role.Maintainer, role.None)
}

func TestProjectRole_ignoresRolesOfOlderNamesake(t *testing.T) {
	g := NewWithT(t)
	second, p := User("second", 2, Called("Max")), Project("a", "web", ByName("acme"))
	third := User("third", 1)
	c := catalogtest.New(t, User("max", 1), second, third, Group("a", "acme"), p,
		InGroup("a", "m1", ByName("acme"), ByPath("max"), v1alpha1.RoleOwner),
		InProject("a", "m2", ByName("web"), ByID(1), v1alpha1.RoleOwner),
		InProject("a", "m3", ByName("web"), ByName("second"), v1alpha1.RoleGuest),
	).Catalog()
	r, err := c.ProjectRole(t.Context(), second, p, time.Now())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(r).To(Equal(role.Guest), "by their own name only")
	r, err = c.ProjectRole(t.Context(), third, p, time.Now())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(r).To(Equal(role.None))
}

func TestRole_isNoneOutsideTree(t *testing.T) {
	u := User("max", 1)
	owner := InGroup("a", "m", ByName("acme"), ByName("max"), v1alpha1.RoleOwner)
	tests := map[string]struct {
		group *v1alpha1.Group
		err   error
	}{
		"a cycle":                  {Group("a", "acme", Below(ByName("acme"))), catalog.ErrCycle},
		"no parent":                {Group("a", "acme", Below(ByName("nowhere"))), catalog.ErrNotFound},
		"no root":                  {Group("a", "acme", At("refused")), catalog.ErrRootNotAllowed},
		"parent does not admit it": {Group("a", "acme", Below(ByPath("bolt"))), catalog.ErrParentNotFound},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			p := Project("a", "web", ByName("acme"))
			c := catalogtest.New(t, u, Group("b", "bolt"), test.group, p, owner).
				Catalog(catalog.RootGroupRule{Namespace: "a", Path: "acme"}, catalog.RootGroupRule{Namespace: "b", Path: "bolt"})
			r, err := c.ProjectRole(t.Context(), u, p, time.Now())
			g.Expect(err).To(MatchError(test.err))
			g.Expect(r).To(Equal(role.None))
			r, err = c.MemberRole(t.Context(), u, test.group, time.Now())
			g.Expect(err).To(MatchError(test.err))
			g.Expect(r).To(Equal(role.None))
		})
	}
}

func TestMembershipIn_returnsMembershipInForce(t *testing.T) {
	g := NewWithT(t)
	u, acme := User("max", 1), Group("a", "acme", Pinned(10))
	p := Project("a", "web", ByName("acme"))
	c := catalogtest.New(t, u, acme, p,
		InGroup("a", "first", ByID(10), ByID(1), v1alpha1.RoleGuest), InGroup("a", "second", ByName("acme"), ByName("max"), v1alpha1.RoleOwner),
		InProject("a", "of-project", ByPath("acme/web"), ByPath("max"), v1alpha1.RoleGuest),
	).Catalog()
	m, err := c.MembershipIn(t.Context(), u, catalog.Scope{Groups: []*v1alpha1.Group{acme}})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(m.Name).To(Equal("first"))
	m, err = c.MembershipIn(t.Context(), u, catalog.Scope{Project: p, Groups: []*v1alpha1.Group{acme}})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(m.Name).To(Equal("of-project"))
	m, err = c.MembershipIn(t.Context(), User("dana", 2), catalog.Scope{Project: p, Groups: []*v1alpha1.Group{acme}})
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

// TestRolesIn_doesNotRememberRolesOfFormerPlace asks for roles in a scope that has changed since it was read, as a long request does.
func TestRolesIn_doesNotRememberRolesOfFormerPlace(t *testing.T) {
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	for change, after := range map[string]client.Object{
		"the project is moved":              Project("a", "web", ByName("other"), Known(100)),
		"a group above it is moved":         Group("a", "sub", Pinned(11), Below(ByName("other"))),
		"a group above it has another path": Group("a", "acme", Pinned(10), At("renamed")),
	} {
		t.Run(change, func(t *testing.T) {
			g := NewWithT(t)
			u, p := User("max", 1), Project("a", "web", ByName("sub"), Known(100))
			w := catalogtest.New(t, u, Group("a", "acme", Pinned(10)), Group("a", "sub", Pinned(11), Below(ByName("acme"))),
				Group("a", "other", Pinned(12)), p, InGroup("a", "m", ByPath("acme"), ByName("max"), v1alpha1.RoleOwner))
			c := w.Catalog()
			before, err := c.ProjectScope(t.Context(), p)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(c.RolesIn(t.Context(), u, before, now)).To(HaveField("Highest()", role.Owner))

			w.Put(after)
			_, err = c.RolesIn(t.Context(), u, before, now)
			g.Expect(err).NotTo(HaveOccurred())
			p, err = catalog.ByID[*v1alpha1.Project](t.Context(), c, 100)
			g.Expect(err).NotTo(HaveOccurred())
			fresh, err := c.ProjectScope(t.Context(), p)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(c.RolesIn(t.Context(), u, fresh, now)).To(HaveField("Highest()", role.None))
		})
	}
}
