package protection_test

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog/catalogtest"
	. "github.com/forgeplane/forgeplane/internal/catalog/catalogtest/objects"
	"github.com/forgeplane/forgeplane/internal/protection"
)

func TestOneReferenceMeansSomebodyElseInEachNamespaceAndKind(t *testing.T) {
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
	rules, err := protection.Rules(t.Context(), c, scope, []string{"main", "next"})
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

func TestOnlyRulesThatMatchAreResolved(t *testing.T) {
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
		rules, err := protection.Rules(t.Context(), c, scope, branches)
		g.Expect(err).NotTo(HaveOccurred())
		var sources []string
		for _, r := range rules {
			sources = append(sources, r.Source)
		}
		g.Expect(strings.Join(sources, " ")).To(Equal(want), "%v", branches)
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
				if rules, err := protection.Rules(b.Context(), c, scope, []string{"feature", "branch-0/x"}); err != nil || len(rules) != 1 {
					b.Fatal(len(rules), err)
				}
			}
		})
	}
}
