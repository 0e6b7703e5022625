package protection_test

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/catalog/catalogtest"
	. "github.com/forgeplane/forgeplane/internal/catalog/catalogtest/objects"
	"github.com/forgeplane/forgeplane/internal/protection"
	"github.com/forgeplane/forgeplane/internal/role"
)

func TestProtections(t *testing.T) {
	tests := []struct {
		name    string
		objects []client.Object // oldest first
		want    []string        // in force for a/web, the nearest first
	}{
		{"its own, by any reference", []client.Object{
			Protecting("a", "p1", "main", ByName("web")), Protecting("a", "p2", "next", ByPath("ACME/sub/web")), Protecting("a", "p3", "v*", ByID(100)),
		}, []string{"p1", "p2", "p3"}}, // sorted by branch
		{"protections of its groups", []client.Object{
			ProtectingBelow("a", "p1", "main", ByName("acme")), ProtectingBelow("a", "p2", "main", ByPath("acme/sub")), Protecting("a", "p3", "main", ByName("web")),
		}, []string{"p3", "p2", "p1"}},
		{"no protections of others", []client.Object{
			Protecting("a", "p1", "main", ByName("other")), ProtectingBelow("a", "p2", "main", ByName("beside")),
		}, nil},
		{"no protections of another namespace", []client.Object{
			Protecting("b", "p1", "main", ByName("web")), Protecting("b", "p2", "x", ByPath("acme/sub/web")), Protecting("b", "p3", "y", ByID(100)),
			ProtectingBelow("b", "p4", "z", ByPath("acme")), ProtectingBelow("b", "p5", "u", ByID(11)),
		}, nil},
		{"the older of two", []client.Object{
			Protecting("a", "p1", "main", ByID(100)), Protecting("a", "p2", "main", ByName("web")),
		}, []string{"p1"}},
		{"the declared one instead of the default one", []client.Object{
			AsDefault(Protecting("a", "p1", "main", ByName("web"))), Protecting("a", "p2", "main", ByName("web")), Protecting("a", "p3", "main", ByName("web")),
		}, []string{"p2"}},
		{"the older of two default ones", []client.Object{
			AsDefault(Protecting("a", "p1", "main", ByName("web"))), AsDefault(Protecting("a", "p2", "main", ByName("web"))),
		}, []string{"p1"}},
		{"an older one of another namespace does not count", []client.Object{
			Protecting("b", "p1", "main", ByPath("acme/sub/web")), Protecting("a", "p2", "main", ByName("web")),
		}, []string{"p2"}},
		{"branches in different case", []client.Object{
			Protecting("a", "p1", "Main", ByName("web")), Protecting("a", "p2", "main", ByName("web")),
		}, []string{"p1", "p2"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			w, web := TenantWorld(t)
			w.Put(test.objects...)
			c := w.Catalog()
			scope, err := c.ProjectScope(t.Context(), web)
			g.Expect(err).NotTo(HaveOccurred())
			found, err := protection.All(t.Context(), c, scope)
			g.Expect(err).NotTo(HaveOccurred())
			var names []string
			for _, b := range found {
				names = append(names, b.Name)
			}
			g.Expect(names).To(Equal(test.want))

			// Looking up each protection separately gives the same result for the project's own.
			own := map[string]bool{}
			in, err := protection.Own(t.Context(), c, scope)
			g.Expect(err).NotTo(HaveOccurred())
			for _, b := range in {
				own[b.Name] = true
				holder, err := protection.Holder(t.Context(), c, scope, b.Spec.Branch)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(Title(holder)).To(Equal(Title(b)))
			}
			for _, o := range test.objects {
				b := o.(*v1alpha1.ProtectedBranch)
				holder, err := protection.Holder(t.Context(), c, scope, b.Spec.Branch)
				g.Expect(err).NotTo(HaveOccurred())
				if holder != nil {
					g.Expect(own).To(HaveKey(holder.Name))
				}
			}
		})
	}
}

func TestRules_grantOnlyWhatResolves(t *testing.T) {
	nobody := protection.Grant{}
	tests := []struct {
		name  string
		level v1alpha1.AccessLevel
		want  protection.Grant
	}{
		{"a role", ToRole(v1alpha1.AccessDeveloper), protection.Grant{Role: role.Developer}},
		{"maintainers", ToRole(v1alpha1.AccessMaintainer), protection.Grant{Role: role.Maintainer}},
		{"administrators", ToRole(v1alpha1.AccessAdmin), protection.Grant{Role: role.Admin}},
		{"no one", ToRole(v1alpha1.AccessNoOne), protection.Grant{Title: "No one"}},
		{"a user", ToUser(ByPath("max")), protection.Grant{UserID: 1, Title: "max"}},
		{"a missing user", ToUser(ByName("nobody")), nobody},
		{"a user who has no id yet", ToUser(ByName("fresh")), protection.Grant{Title: "fresh"}},
		{"a group of the namespace", ToGroup(ByName("beside")), protection.Grant{GroupID: 12, Title: "beside"}},
		{"a group that the project is in", ToGroup(ByID(10)), protection.Grant{GroupID: 10, Title: "acme"}},
		{"a group of another namespace by path", ToGroup(ByPath("bolt")), nobody},
		{"a group of another namespace by id", ToGroup(ByID(20)), nobody},
		{"a missing group", ToGroup(ByName("nowhere")), nobody},
		{"a deploy key of the project", ToDeployKey(ByName("ci")), protection.Grant{DeployKeyID: 1000, Title: "ci"}},
		{"a deploy key of the project by id", ToDeployKey(ByID(1000)), protection.Grant{DeployKeyID: 1000, Title: "ci"}},
		{"a deploy key of another project", ToDeployKey(ByName("others")), nobody},
		{"a deploy key of another namespace", ToDeployKey(ByID(2000)), nobody},
		{"a missing deploy key", ToDeployKey(ByName("none")), nobody},
		{"nothing at all", v1alpha1.AccessLevel{}, protection.Grant{Title: "No one"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			w, web := TenantWorld(t)
			b := Protecting("a", "p", "main", ByName("web"), ToRole(v1alpha1.AccessNoOne), test.level)
			b.Spec.Merge, b.Spec.Unprotect = []v1alpha1.AccessLevel{test.level}, []v1alpha1.AccessLevel{test.level}
			b.Spec.AllowForcePush, b.Spec.CodeOwnerApprovalRequired = true, true
			w.Put(User("fresh", 0), Group("a", "beside", Pinned(12)), b,
				DeployKey("a", "ci", 1000, ByName("web")), DeployKey("a", "others", 1001, ByName("other")), DeployKey("b", "cd", 2000, ByName("web")))
			c := w.Catalog()
			scope, err := c.ProjectScope(t.Context(), web)
			g.Expect(err).NotTo(HaveOccurred())
			rules, err := protection.Rules(t.Context(), c, scope, []string{"main", "next"}, time.Now())
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(rules).To(Equal([]protection.Rule{{
				Name: "main", Source: "a/p",
				Push:  []protection.Grant{{Title: "No one"}, test.want},
				Merge: []protection.Grant{test.want}, Unprotect: []protection.Grant{test.want},
				AllowForcePush: true, CodeOwnerApprovalRequired: true,
			}}))
		})
	}
}

func TestRules_resolveInNamespaceOfProtection(t *testing.T) {
	g := NewWithT(t)
	web := Project("b", "web", ByName("sub"), Known(200))
	w := catalogtest.New(t,
		Group("a", "acme", Pinned(10), AdmittingAll), Group("a", "team", Pinned(12)),
		Group("b", "sub", Pinned(20), Below(ByPath("acme"))), web, Group("b", "team", Pinned(22)),
		DeployKey("a", "ci", 1000, ByName("web")), DeployKey("b", "ci", 2000, ByName("web")),
		ProtectingBelow("a", "p", "main", ByName("acme"), ToGroup(ByName("team")), ToGroup(ByPath("acme/sub")), ToDeployKey(ByName("ci")), ToDeployKey(ByID(2000))),
	)
	c := w.Catalog()
	scope, err := c.ProjectScope(t.Context(), web)
	g.Expect(err).NotTo(HaveOccurred())
	rules, err := protection.Rules(t.Context(), c, scope, []string{"main", "next"}, time.Now())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(rules).To(HaveLen(1))
	g.Expect(rules[0].Push).To(Equal([]protection.Grant{
		{GroupID: 12, Title: "team"}, // the group of a, not of b
		{GroupID: 20, Title: "sub"},  // above the project
		{}, {},                       // a has no deploy key of the project
	}))
}

func TestDeployKeysOf(t *testing.T) {
	g := NewWithT(t)
	w, web := TenantWorld(t)
	w.Put(DeployKey("a", "k1", 1, ByName("web")), DeployKey("a", "k2", 2, ByPath("acme/sub/web")), DeployKey("a", "k3", 3, ByID(100)),
		DeployKey("a", "k4", 4, ByName("other")), DeployKey("b", "k5", 5, ByPath("acme/sub/web")), DeployKey("b", "k6", 6, ByID(100)))
	keys, err := catalog.ListForProject[*v1alpha1.DeployKey](t.Context(), w.Catalog(), web)
	g.Expect(err).NotTo(HaveOccurred())
	var names []string
	for _, k := range keys {
		names = append(names, k.Name)
	}
	g.Expect(names).To(ConsistOf("k1", "k2", "k3"))
}

func TestResolve_usesWordsOfRESTAPI(t *testing.T) {
	g := NewWithT(t)
	w, web := TenantWorld(t)
	c := w.Catalog()
	scope, err := c.ProjectScope(t.Context(), web)
	g.Expect(err).NotTo(HaveOccurred())
	for r, want := range map[v1alpha1.AccessRole]string{
		v1alpha1.AccessNoOne: "No one", v1alpha1.AccessDeveloper: "Developers + Maintainers",
		v1alpha1.AccessMaintainer: "Maintainers", v1alpha1.AccessAdmin: "Instance admins",
	} {
		l, err := protection.Resolve(t.Context(), c, scope, "a", ToRole(r), time.Now())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(l).To(Equal(v1alpha1.ResolvedAccessLevel{Role: r, Description: want}))
	}
	named := User("max", 1, func(s *v1alpha1.UserSpec) { s.Name = "Max M." })
	g.Expect(catalog.DisplayName(named)).To(Equal("Max M."))
	g.Expect(fmt.Sprint(catalog.Title("", "web"), catalog.Show(ByID(7)))).To(Equal("web" + "with id 7"))
}
