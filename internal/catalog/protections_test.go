package catalog_test

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/catalog/catalogtest"
	"github.com/forgeplane/forgeplane/internal/protection"
	"github.com/forgeplane/forgeplane/internal/role"
)

// tenantWorld has the project acme/sub/web and another one in the namespace a, and a project of the same names in b.
func tenantWorld(t *testing.T) (*catalogtest.World, *v1alpha1.Project) {
	t.Helper()
	web := project("a", "web", byName("sub"), known(100))
	return catalogtest.New(t, user("max", 1),
		group("a", "acme", pinned(10)), group("a", "sub", pinned(11), below(byName("acme"))), web, project("a", "other", byName("sub"), known(101)),
		group("b", "bolt", pinned(20)), project("b", "web", byName("bolt"), known(200)),
	), web
}

func TestProtections(t *testing.T) {
	tests := []struct {
		name    string
		objects []client.Object // the oldest first
		want    []string        // in force for a/web, the nearest first
	}{
		{"its own, however it is named", []client.Object{
			protecting("a", "p1", "main", byName("web")), protecting("a", "p2", "next", byPath("ACME/sub/web")), protecting("a", "p3", "v*", byID(100)),
		}, []string{"p1", "p2", "p3"}}, // in the order of their branches
		{"those of its groups", []client.Object{
			protectingBelow("a", "p1", "main", byName("acme")), protectingBelow("a", "p2", "main", byPath("acme/sub")), protecting("a", "p3", "main", byName("web")),
		}, []string{"p3", "p2", "p1"}},
		{"not those of others", []client.Object{
			protecting("a", "p1", "main", byName("other")), protectingBelow("a", "p2", "main", byName("beside")),
		}, nil},
		{"not those of another namespace", []client.Object{
			protecting("b", "p1", "main", byName("web")), protecting("b", "p2", "x", byPath("acme/sub/web")), protecting("b", "p3", "y", byID(100)),
			protectingBelow("b", "p4", "z", byPath("acme")), protectingBelow("b", "p5", "u", byID(11)),
		}, nil},
		{"the older of two", []client.Object{
			protecting("a", "p1", "main", byID(100)), protecting("a", "p2", "main", byName("web")),
		}, []string{"p1"}},
		{"the declared one rather than the default one", []client.Object{
			asDefault(protecting("a", "p1", "main", byName("web"))), protecting("a", "p2", "main", byName("web")), protecting("a", "p3", "main", byName("web")),
		}, []string{"p2"}},
		{"the older of two default ones", []client.Object{
			asDefault(protecting("a", "p1", "main", byName("web"))), asDefault(protecting("a", "p2", "main", byName("web"))),
		}, []string{"p1"}},
		{"the older of another namespace hides none", []client.Object{
			protecting("b", "p1", "main", byPath("acme/sub/web")), protecting("a", "p2", "main", byName("web")),
		}, []string{"p2"}},
		{"branches are told apart by case", []client.Object{
			protecting("a", "p1", "Main", byName("web")), protecting("a", "p2", "main", byName("web")),
		}, []string{"p1", "p2"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			w, web := tenantWorld(t)
			w.Put(test.objects...)
			c := w.Catalog()
			scope, err := c.ProjectScope(t.Context(), web)
			g.Expect(err).NotTo(HaveOccurred())
			found, err := c.Protections(t.Context(), scope)
			g.Expect(err).NotTo(HaveOccurred())
			var names []string
			for _, b := range found {
				names = append(names, b.Name)
			}
			g.Expect(names).To(Equal(test.want))

			// What is asked for one by one is the same, as far as the project's own go.
			own := map[string]bool{}
			in, err := c.ProtectionsIn(t.Context(), scope)
			g.Expect(err).NotTo(HaveOccurred())
			for _, b := range in {
				own[b.Name] = true
				holder, err := c.ProtectionOf(t.Context(), scope, b.Spec.Branch)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(title(holder)).To(Equal(title(b)))
			}
			for _, o := range test.objects {
				b := o.(*v1alpha1.ProtectedBranch)
				holder, err := c.ProtectionOf(t.Context(), scope, b.Spec.Branch)
				g.Expect(err).NotTo(HaveOccurred())
				if holder != nil {
					g.Expect(own).To(HaveKey(holder.Name))
				}
			}
		})
	}
}

func TestScopeOf(t *testing.T) {
	g := NewWithT(t)
	w, _ := tenantWorld(t)
	c := w.Catalog()
	scope, err := c.ScopeOf(t.Context(), protecting("a", "p", "main", byPath("acme/sub/web")))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(scope.Path()).To(Equal("acme/sub/web"))
	g.Expect(scope.Namespace()).To(Equal("a"))
	scope, err = c.ScopeOf(t.Context(), protectingBelow("a", "p", "main", byName("sub")))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(scope.Path()).To(Equal("acme/sub"))
	g.Expect(scope.Project).To(BeNil())
	for _, b := range []*v1alpha1.ProtectedBranch{
		protecting("b", "p", "main", byPath("acme/sub/web")), protecting("b", "p", "main", byID(100)),
		protectingBelow("b", "p", "main", byPath("acme")), protectingBelow("b", "p", "main", byID(11)),
	} {
		_, err = c.ScopeOf(t.Context(), b)
		g.Expect(err).To(MatchError(catalog.ErrNotFound))
	}
}

func TestRulesGrantWhatResolvesAndNothingElse(t *testing.T) {
	nobody := protection.Grant{}
	tests := []struct {
		name  string
		level v1alpha1.AccessLevel
		want  protection.Grant
	}{
		{"a role", toRole(v1alpha1.AccessDeveloper), protection.Grant{Role: role.Developer}},
		{"maintainers", toRole(v1alpha1.AccessMaintainer), protection.Grant{Role: role.Maintainer}},
		{"administrators", toRole(v1alpha1.AccessAdmin), protection.Grant{Role: role.Admin}},
		{"no one", toRole(v1alpha1.AccessNoOne), protection.Grant{Title: "No one"}},
		{"a user", toUser(byPath("max")), protection.Grant{UserID: 1, Title: "max"}},
		{"a user who is not there", toUser(byName("nobody")), nobody},
		{"a user who has no id yet", toUser(byName("fresh")), protection.Grant{Title: "fresh"}},
		{"a group of the namespace", toGroup(byName("beside")), protection.Grant{GroupID: 12, Title: "beside"}},
		{"a group that the project is in", toGroup(byID(10)), protection.Grant{GroupID: 10, Title: "acme"}},
		{"a group of another namespace by path", toGroup(byPath("bolt")), nobody},
		{"a group of another namespace by id", toGroup(byID(20)), nobody},
		{"a group that is not there", toGroup(byName("nowhere")), nobody},
		{"a deploy key of the project", toDeployKey(byName("ci")), protection.Grant{DeployKeyID: 1000, Title: "ci"}},
		{"a deploy key of the project by id", toDeployKey(byID(1000)), protection.Grant{DeployKeyID: 1000, Title: "ci"}},
		{"a deploy key of another project", toDeployKey(byName("others")), nobody},
		{"a deploy key of another namespace", toDeployKey(byID(2000)), nobody},
		{"a deploy key that is not there", toDeployKey(byName("none")), nobody},
		{"nothing at all", v1alpha1.AccessLevel{}, protection.Grant{Title: "No one"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			w, web := tenantWorld(t)
			b := protecting("a", "p", "main", byName("web"), toRole(v1alpha1.AccessNoOne), test.level)
			b.Spec.Merge, b.Spec.Unprotect = []v1alpha1.AccessLevel{test.level}, []v1alpha1.AccessLevel{test.level}
			b.Spec.AllowForcePush, b.Spec.CodeOwnerApprovalRequired = true, true
			w.Put(user("fresh", 0), group("a", "beside", pinned(12)), b,
				deployKey("a", "ci", 1000, byName("web")), deployKey("a", "others", 1001, byName("other")), deployKey("b", "cd", 2000, byName("web")))
			c := w.Catalog()
			scope, err := c.ProjectScope(t.Context(), web)
			g.Expect(err).NotTo(HaveOccurred())
			rules, err := c.Rules(t.Context(), scope, []string{"main", "next"})
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

func TestAnInheritedProtectionGrantsInItsOwnNamespace(t *testing.T) {
	g := NewWithT(t)
	web := project("b", "web", byName("sub"), known(200))
	w := catalogtest.New(t,
		group("a", "acme", pinned(10), admittingAll), group("a", "team", pinned(12)),
		group("b", "sub", pinned(20), below(byPath("acme"))), web, group("b", "team", pinned(22)),
		deployKey("a", "ci", 1000, byName("web")), deployKey("b", "ci", 2000, byName("web")),
		protectingBelow("a", "p", "main", byName("acme"), toGroup(byName("team")), toGroup(byPath("acme/sub")), toDeployKey(byName("ci")), toDeployKey(byID(2000))),
	)
	c := w.Catalog()
	scope, err := c.ProjectScope(t.Context(), web)
	g.Expect(err).NotTo(HaveOccurred())
	rules, err := c.Rules(t.Context(), scope, []string{"main", "next"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(rules).To(HaveLen(1))
	g.Expect(rules[0].Push).To(Equal([]protection.Grant{
		{GroupID: 12, Title: "team"}, // that of a, not that of b
		{GroupID: 20, Title: "sub"},  // above the project
		{}, {},                       // no deploy key of the project is in a
	}))
}

func TestDeployKeysOf(t *testing.T) {
	g := NewWithT(t)
	w, web := tenantWorld(t)
	w.Put(deployKey("a", "k1", 1, byName("web")), deployKey("a", "k2", 2, byPath("acme/sub/web")), deployKey("a", "k3", 3, byID(100)),
		deployKey("a", "k4", 4, byName("other")), deployKey("b", "k5", 5, byPath("acme/sub/web")), deployKey("b", "k6", 6, byID(100)))
	keys, err := w.Catalog().DeployKeysOf(t.Context(), web)
	g.Expect(err).NotTo(HaveOccurred())
	var names []string
	for _, k := range keys {
		names = append(names, k.Name)
	}
	g.Expect(names).To(ConsistOf("k1", "k2", "k3"))
}

func TestWordsOfTheRESTAPI(t *testing.T) {
	g := NewWithT(t)
	w, web := tenantWorld(t)
	c := w.Catalog()
	scope, err := c.ProjectScope(t.Context(), web)
	g.Expect(err).NotTo(HaveOccurred())
	for r, want := range map[v1alpha1.AccessRole]string{
		v1alpha1.AccessNoOne: "No one", v1alpha1.AccessDeveloper: "Developers + Maintainers",
		v1alpha1.AccessMaintainer: "Maintainers", v1alpha1.AccessAdmin: "Instance admins",
	} {
		l, err := c.ResolveLevel(t.Context(), scope, "a", toRole(r))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(l).To(Equal(v1alpha1.ResolvedAccessLevel{Role: r, Description: want}))
	}
	named := user("max", 1, func(s *v1alpha1.UserSpec) { s.Name = "Max M." })
	g.Expect(catalog.DisplayName(named)).To(Equal("Max M."))
	g.Expect(fmt.Sprint(catalog.Title("", "web"), catalog.Show(byID(7)))).To(Equal("web" + "with id 7"))
}
