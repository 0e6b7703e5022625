package catalog_test

import (
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
	rules, err := c.Rules(t.Context(), scope)
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
