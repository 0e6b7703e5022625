package catalog_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/internal/catalog/catalogtest"
	"github.com/forgeplane/forgeplane/internal/protection"
)

func TestOneReferenceMeansSomebodyElseInEachNamespaceAndKind(t *testing.T) {
	g := NewWithT(t)
	web := project("b", "web", byName("sub"), known(200))
	w := catalogtest.New(t,
		group("a", "acme", pinned(10), admittingAll), group("a", "team", pinned(12)),
		group("b", "sub", pinned(20), below(byPath("acme"))), web, group("b", "team", pinned(22)),
		user("team", 30), deployKey("b", "team", 40, byName("web")),
		protecting("b", "p1", "main", byName("web"), toGroup(byName("team")), toUser(byName("team")), toDeployKey(byName("team"))),
		protecting("b", "p2", "next", byName("web"), toDeployKey(byName("team")), toGroup(byName("team"))),
		protectingBelow("a", "p", "main", byName("acme"), toGroup(byName("team")), toUser(byName("team"))),
	)
	c := w.Catalog()
	scope, err := c.ProjectScope(t.Context(), web)
	g.Expect(err).NotTo(HaveOccurred())
	rules, err := c.Rules(t.Context(), scope, []string{"main", "next"})
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
	web := project("b", "web", byName("acme"), known(200))
	w := catalogtest.New(t, group("b", "acme", pinned(10)), web,
		protecting("b", "p1", "main", byName("web")),
		protecting("b", "p2", "release/*", byName("web")),
		protecting("b", "p3", "*", byName("web")),
		protectingBelow("b", "p4", "release/1", byName("acme")),
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
		rules, err := c.Rules(t.Context(), scope, branches)
		g.Expect(err).NotTo(HaveOccurred())
		var sources []string
		for _, r := range rules {
			sources = append(sources, r.Source)
		}
		g.Expect(strings.Join(sources, " ")).To(Equal(want), "%v", branches)
	}
}
