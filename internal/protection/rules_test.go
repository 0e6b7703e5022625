package protection_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog/catalogtest"
	. "github.com/forgeplane/forgeplane/internal/catalog/catalogtest/objects"
	"github.com/forgeplane/forgeplane/internal/protection"
	"github.com/forgeplane/forgeplane/internal/role"
)

func TestRules_resolveNamesByNamespaceAndKind(t *testing.T) {
	g := NewWithT(t)
	web := Project("b", "web", ByName("sub"), Known(200))
	w := catalogtest.New(t,
		Group("a", "acme", Pinned(10), AdmittingAll), Group("a", "team", Pinned(12)),
		Group("b", "sub", Pinned(20), Below(ByPath("acme"))), web, Group("b", "team", Pinned(22)),
		User("team", 30), DeployKey("b", "team", 40, ByName("web")),
		Protecting("b", "p1", "main", ByName("web"), ToGroup(ByName("team")), ToUser(ByName("team")), ToDeployKey(ByName("team"))),
		Protecting("b", "p2", "next", ByName("web"), ToDeployKey(ByName("team")), ToGroup(ByName("team"))),
		ProtectingBelow("a", "p", "main", ByName("acme"), ToGroup(ByName("team")), ToUser(ByName("team"))),
	)
	c := w.Catalog()
	scope, err := c.ProjectScope(t.Context(), web)
	g.Expect(err).NotTo(HaveOccurred())
	rules, err := protection.Rules(t.Context(), c, scope, []string{"main", "next"}, time.Now())
	g.Expect(err).NotTo(HaveOccurred())
	push := map[string][]protection.Grant{}
	for _, r := range rules {
		push[r.Source] = r.Push
	}
	ofGroup := func(id int64) protection.Grant { return protection.Grant{GroupID: id, Title: "team"} }
	ofUser, ofKey := protection.Grant{UserID: 30, Title: "team"}, protection.Grant{DeployKeyID: 40, Title: "team"}
	g.Expect(push).To(Equal(map[string][]protection.Grant{
		"b/p1": {ofGroup(22), ofUser, ofKey},
		"b/p2": {ofKey, ofGroup(22)},
		"a/p":  {ofGroup(12), ofUser},
	}))
}

func TestRules_resolveGroupsThatTheProjectIsSharedWith(t *testing.T) {
	g := NewWithT(t)
	web, acme := Project("a", "web", ByName("acme"), Known(100)), Group("a", "acme", Pinned(10))
	web.Spec.SharedWith = []v1alpha1.Share{Sharing(ByID(20), v1alpha1.RoleDeveloper)}
	acme.Spec.SharedWith = []v1alpha1.Share{Sharing(ByPath("dark"), v1alpha1.RoleDeveloper)}
	ends := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	web.Spec.SharedWith[0].ExpiresAt = &metav1.Time{Time: ends}
	w := catalogtest.New(t, acme, web,
		Group("b", "open", Pinned(20), Visible(v1alpha1.VisibilityPublic)), Group("b", "dark", Pinned(21)), Group("b", "stranger", Pinned(22)),
		Protecting("a", "p", "main", ByName("web"), ToGroup(ByPath("open")), ToGroup(ByID(21)), ToGroup(ByID(22))))
	c := w.Catalog()
	scope, err := c.ProjectScope(t.Context(), web)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(protection.Rules(t.Context(), c, scope, []string{"main"}, ends.Add(-1))).To(HaveExactElements(HaveField("Push", []protection.Grant{
		{GroupID: 20, Title: "open"}, {GroupID: 21, Title: "Group 21"}, {},
	})), "the name of a group that is not public stays unknown, and a group that nothing is shared with gets nothing")
	g.Expect(protection.Rules(t.Context(), c, scope, []string{"main"}, ends)).To(HaveExactElements(HaveField("Push", []protection.Grant{
		{}, {GroupID: 21, Title: "Group 21"}, {},
	})), "a share has ended")
}

func TestRules_returnsOnlyMatchingRules(t *testing.T) {
	g := NewWithT(t)
	web := Project("b", "web", ByName("acme"), Known(200))
	w := catalogtest.New(t, Group("b", "acme", Pinned(10)), web,
		Protecting("b", "p1", "main", ByName("web")),
		Protecting("b", "p2", "release/*", ByName("web")),
		Protecting("b", "p3", "*", ByName("web")),
		ProtectingBelow("b", "p4", "release/1", ByName("acme")),
	)
	c := w.Catalog()
	scope, err := c.ProjectScope(t.Context(), web)
	g.Expect(err).NotTo(HaveOccurred())
	for want, branches := range map[string][]string{
		"":                    nil,
		"b/p3":                {"feature"},
		"b/p3 b/p1":           {"main"},
		"b/p3 b/p2 b/p4":      {"release/1"},
		"b/p3 b/p1 b/p2":      {"feature", "release/2", "main"},
		"b/p3 b/p1 b/p2 b/p4": {"main", "release/1"},
	} {
		rules, err := protection.Rules(t.Context(), c, scope, branches, time.Now())
		g.Expect(err).NotTo(HaveOccurred())
		var sources []string
		for _, r := range rules {
			sources = append(sources, r.Source)
		}
		g.Expect(strings.Join(sources, " ")).To(Equal(want), "%v", branches)
	}
}

func TestRules_protectTheDefaultBranchBeforeItsProtectionExists(t *testing.T) {
	byItself := protection.Rule{
		Name: "main", Source: "the default branch",
		Push: []protection.Grant{{Role: role.Maintainer}}, Merge: []protection.Grant{{Role: role.Maintainer}},
	}
	declared := Protecting("b", "p", "main", ByName("web"), ToRole(v1alpha1.AccessNoOne))
	of := func(b *v1alpha1.ProtectedBranch) protection.Rule {
		return protection.Rule{Name: b.Spec.Branch, Source: b.Namespace + "/" + b.Name, Push: []protection.Grant{{Title: "No one"}}}
	}
	above := ProtectingBelow("b", "above", "main", ByName("acme"), ToRole(v1alpha1.AccessNoOne))
	created := v1alpha1.ProjectStatus{ProtectedDefaultBranch: "main", ProtectedDefaultBranchVersion: "12", DefaultBranch: "next"}
	tests := []struct {
		name     string
		status   v1alpha1.ProjectStatus
		branches []string
		there    []*v1alpha1.ProtectedBranch
		want     []protection.Rule
	}{
		{"a new project", v1alpha1.ProjectStatus{}, []string{"next", "main"}, nil, []protection.Rule{byItself}},
		{"another branch, or a tag", v1alpha1.ProjectStatus{}, []string{"next", ""}, nil, nil},
		{"a protection that was created, and deleted", v1alpha1.ProjectStatus{ProtectedDefaultBranch: "main"}, []string{"main", ""}, nil, nil},
		{"a declared protection", v1alpha1.ProjectStatus{}, []string{"main"}, []*v1alpha1.ProtectedBranch{declared}, []protection.Rule{of(declared)}},
		{"a protection of the group", v1alpha1.ProjectStatus{}, []string{"main"}, []*v1alpha1.ProtectedBranch{above}, []protection.Rule{byItself, of(above)}},
		{"an import whose default branch is unknown", v1alpha1.ProjectStatus{}, []string{"main"}, nil, []protection.Rule{byItself}},
		{"a protection that the cache does not have yet", created, []string{"next", "main", ""}, nil, []protection.Rule{byItself}},
		{"a protection that the cache has, but not yet its latest state", created, []string{"main"}, []*v1alpha1.ProtectedBranch{declared}, []protection.Rule{of(declared)}},
		{"another default branch", v1alpha1.ProjectStatus{DefaultBranch: "next"}, []string{"main"}, nil, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			web := Project("b", "web", ByName("acme"), Known(200))
			web.Status = test.status
			if strings.HasPrefix(test.name, "an import") {
				web.Spec.ImportURL = "https://example.com/web.git"
			}
			w := catalogtest.New(t, Group("b", "acme", Pinned(10)), web)
			w.Delay(&v1alpha1.ProtectedBranch{}, 11)
			for _, b := range test.there {
				w.Put(b.DeepCopy())
			}
			c := w.Catalog()
			scope, err := c.ProjectScope(t.Context(), web)
			g.Expect(err).NotTo(HaveOccurred())
			rules, err := protection.Rules(t.Context(), c, scope, test.branches, time.Now())
			g.Expect(err).NotTo(HaveOccurred())
			if len(test.want) == 0 {
				g.Expect(rules).To(BeEmpty())
			} else {
				g.Expect(rules).To(Equal(test.want))
			}
			if test.status.ProtectedDefaultBranchVersion != "" {
				w.Delay(&v1alpha1.ProtectedBranch{}, 12)
				g.Expect(protection.Rules(t.Context(), c, scope, test.branches, time.Now())).To(HaveLen(len(test.there)), "the cache has caught up")
			}
		})
	}
}

func BenchmarkRules(b *testing.B) {
	for _, n := range []int{1, 500} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			w, _, p := Large(b)
			for i := range n {
				w.Put(Protecting(p.Namespace, fmt.Sprintf("b-%d", i), fmt.Sprintf("branch-%d/*", i), ByName(p.Name),
					ToRole(v1alpha1.AccessMaintainer), ToUser(ByPath("max"))))
			}
			c := w.Catalog()
			for b.Loop() {
				scope, err := c.ProjectScope(b.Context(), p)
				if err != nil {
					b.Fatal(err)
				}
				if rules, err := protection.Rules(b.Context(), c, scope, []string{"feature", "branch-0/x"}, time.Now()); err != nil || len(rules) != 1 {
					b.Fatal(len(rules), err)
				}
			}
		})
	}
}
