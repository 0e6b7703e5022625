package catalog_test

import (
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/catalog/catalogtest"
)

// twoTenants is a world in which the namespaces a and b each have a group, a project and a deploy key. Those of b are the
// younger ones, and try to be taken for those of a.
func twoTenants(t *testing.T) *catalogtest.World {
	t.Helper()
	return catalogtest.New(t,
		user("max", 1), user("dana", 2, reached("dana@example.com")),
		group("a", "acme", pinned(10)), project("a", "web", byName("acme"), known(100)), deployKey("a", "ci", 1000, byName("web")),
		group("b", "bolt", pinned(20)), project("b", "app", byName("bolt"), known(200)), deployKey("b", "cd", 2000, byName("app")),
		// The same ids, names and paths again.
		group("b", "acme", pinned(10)), project("b", "web", byName("bolt"), known(100)), deployKey("b", "ci", 1000, byName("web")),
		project("b", "squat", byPath("acme"), func(s *v1alpha1.ProjectSpec) { s.Path = "web" }),
	)
}

func TestAReferenceReachesItsOwnNamespaceOnly(t *testing.T) {
	c := twoTenants(t).Catalog()
	find := map[string]func(namespace string, ref v1alpha1.Reference) (client.Object, error){
		"group": func(n string, r v1alpha1.Reference) (client.Object, error) { return c.Group(t.Context(), n, r) },
		"project": func(n string, r v1alpha1.Reference) (client.Object, error) {
			return c.Project(t.Context(), n, r)
		},
		"deploy key": func(n string, r v1alpha1.Reference) (client.Object, error) { return c.DeployKey(t.Context(), n, r) },
	}
	tests := []struct {
		kind, namespace string
		ref             v1alpha1.Reference
		want            string // empty for nothing
	}{
		{"group", "a", byName("acme"), "group a/acme"},
		{"group", "a", byPath("acme"), "group a/acme"},
		{"group", "a", byPath("ACME"), "group a/acme"},
		{"group", "a", byID(10), "group a/acme"},
		{"group", "b", byName("acme"), "group b/acme"}, // its own one, which holds no path
		{"group", "b", byPath("acme"), ""},
		{"group", "b", byID(10), ""},
		{"group", "b", byPath("bolt"), "group b/bolt"},
		{"group", "a", byName("bolt"), ""},
		{"group", "a", byPath("bolt"), ""},
		{"group", "a", byID(20), ""},
		{"group", "a", byPath("acme/web"), ""}, // a project
		{"group", "a", byName("a/acme"), ""},
		{"group", "b", byName("../a/acme"), ""},
		{"group", "a", byID(99), ""},

		{"project", "a", byName("web"), "project a/web"},
		{"project", "a", byPath("acme/web"), "project a/web"},
		{"project", "a", byPath("Acme/WEB"), "project a/web"},
		{"project", "a", byID(100), "project a/web"},
		{"project", "b", byName("web"), "project b/web"},
		{"project", "b", byPath("acme/web"), ""},
		{"project", "b", byID(100), ""},
		{"project", "b", byID(200), "project b/app"},
		{"project", "b", byPath("bolt/app"), "project b/app"},
		{"project", "a", byPath("bolt/app"), ""},
		{"project", "a", byID(200), ""},
		{"project", "a", byPath("acme"), ""}, // a group
		{"project", "a", byName("app"), ""},
		{"project", "a", byID(99), ""},

		{"deploy key", "a", byName("ci"), "deploykey a/ci"},
		{"deploy key", "a", byID(1000), "deploykey a/ci"},
		{"deploy key", "b", byName("ci"), "deploykey b/ci"},
		{"deploy key", "b", byID(1000), ""},
		{"deploy key", "a", byName("cd"), ""},
		{"deploy key", "a", byID(2000), ""},
		{"deploy key", "a", byID(99), ""},
	}
	for _, test := range tests {
		t.Run(test.kind+" "+catalog.Show(test.ref)+" in "+test.namespace, func(t *testing.T) {
			g := NewWithT(t)
			found, err := find[test.kind](test.namespace, test.ref)
			if test.want == "" {
				g.Expect(err).To(MatchError(catalog.ErrNotFound))
				g.Expect(err).To(MatchError(HavePrefix(test.kind + " " + catalog.Show(test.ref))))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(title(found)).To(Equal(test.want))
		})
	}
}

func TestTarget(t *testing.T) {
	g := NewWithT(t)
	c := twoTenants(t).Catalog()
	p, gr := byName("web"), byName("acme")
	found, err := c.Target(t.Context(), "a", &p, nil)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(title(found)).To(Equal("project a/web"))
	found, err = c.Target(t.Context(), "a", nil, &gr)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(title(found)).To(Equal("group a/acme"))
	_, err = c.Target(t.Context(), "c", nil, &gr)
	g.Expect(err).To(MatchError(catalog.ErrNotFound))
}

func TestUser(t *testing.T) {
	c := catalogtest.New(t, user("max", 1), user("second", 1, called("MAX")), user("dana", 2)).Catalog()
	tests := []struct {
		ref  v1alpha1.Reference
		want string
	}{
		{byName("max"), "user /max"},
		{byName("second"), "user /second"},
		{byPath("max"), "user /max"},
		{byPath("Max"), "user /max"},
		{byPath("second"), ""},
		{byID(1), "user /max"},
		{byID(2), "user /dana"},
		{byID(3), ""},
		{byName("nobody"), ""},
		{byPath("nobody"), ""},
	}
	for _, test := range tests {
		t.Run(catalog.Show(test.ref), func(t *testing.T) {
			g := NewWithT(t)
			u, err := c.User(t.Context(), test.ref)
			if test.want == "" {
				g.Expect(err).To(MatchError(catalog.ErrNotFound))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(title(u)).To(Equal(test.want))
		})
	}
}

func TestUserByEmail(t *testing.T) {
	g := NewWithT(t)
	c := catalogtest.New(t, user("max", 1, reached("Max@example.com")), user("dana", 2, reached("max@EXAMPLE.com")), user("eve", 3)).Catalog()
	u, err := c.UserByEmail(t.Context(), "max@example.com")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(title(u)).To(Equal("user /max"))
	_, err = c.UserByEmail(t.Context(), "")
	g.Expect(err).To(MatchError(catalog.ErrNotFound), "users without an address are not found by none")
}

func token(name, value string, secret v1alpha1.SecretKeyReference) *v1alpha1.AccessToken {
	t := &v1alpha1.AccessToken{ObjectMeta: meta("token", "", name), Spec: v1alpha1.AccessTokenSpec{UserRef: byName("max"), SecretRef: &secret}}
	if value != "" {
		t.Status.Digest = catalog.Digest(value)
	}
	return t
}

func TestTokens(t *testing.T) {
	g := NewWithT(t)
	secret := v1alpha1.SecretKeyReference{Name: "s", Key: "token"}
	c := catalogtest.New(t,
		token("one", "value-1", secret), token("two", "value-1", secret), token("none", "", v1alpha1.SecretKeyReference{Name: "s", Key: "other"}),
	).Catalog()
	found, err := c.TokenByValue(t.Context(), "value-1")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(title(found)).To(Equal("token /one"))
	for _, value := range []string{"", "value-2", "VALUE-1", catalog.Digest("value-1")} {
		_, err = c.TokenByValue(t.Context(), value)
		g.Expect(err).To(MatchError(catalog.ErrNotFound), value)
	}
	sharing, err := c.TokensOfSecret(t.Context(), secret)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(sharing).To(HaveLen(2))
	g.Expect(catalog.Digest("abc")).To(Equal("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"), "SHA-256 in hexadecimal")
}

func TestStorages(t *testing.T) {
	g := NewWithT(t)
	on := func(name, storage string) *v1alpha1.Project {
		p := project("a", name, byName("acme"))
		p.Status.Storage = storage
		return p
	}
	s := &v1alpha1.RepositoryStorage{ObjectMeta: meta("storage", "", "fast")}
	c := catalogtest.New(t, s, on("one", "fast"), on("two", "fast"), on("new", "")).Catalog()
	found, err := c.Storage(t.Context(), "fast")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(title(found)).To(Equal("storage /fast"))
	_, err = c.Storage(t.Context(), "slow")
	g.Expect(err).To(MatchError(catalog.ErrNotFound))
	all, err := c.Storages(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(all).To(HaveLen(1))
	projects, err := c.ProjectsOnStorage(t.Context(), "fast")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(projects).To(HaveLen(2))
	projects, err = c.ProjectsOnStorage(t.Context(), "")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(projects).To(HaveLen(1))
}

func TestReferrersAreFoundByEveryWayToNameAnObject(t *testing.T) {
	acme := group("a", "acme", pinned(10))
	web := project("a", "web", byName("acme"), known(100))
	ci := deployKey("a", "ci", 1000, byName("web"))
	person := user("max", 1)
	old := group("a", "old")
	old.Status.FullPath = "former"
	w := catalogtest.New(t, acme, web, ci, person, old,
		project("a", "by-path", byPath("Acme")), project("a", "by-id", byID(10)), project("b", "elsewhere", byName("acme")),
		group("a", "sub", below(byPath("acme"))),
		project("a", "left", byPath("FORMER")),
		inProject("a", "m1", byPath("acme/web"), byID(1), v1alpha1.RoleGuest), inProject("a", "m2", byID(100), byPath("MAX"), v1alpha1.RoleGuest),
		inGroup("a", "m3", byName("acme"), byName("max"), v1alpha1.RoleGuest),
		protecting("a", "b1", "main", byName("web"), toUser(byPath("max")), toGroup(byID(10)), toDeployKey(byName("ci"))),
		protecting("a", "b2", "x", byName("web"), toDeployKey(byID(1000))),
	)
	c := w.Catalog()
	tests := []struct {
		name  string
		of    client.ObjectList
		index string
		obj   client.Object
		want  []string
	}{
		{"projects of a group", &v1alpha1.ProjectList{}, catalog.IndexGroup, acme, []string{"web", "by-path", "by-id"}},
		{"groups of a group", &v1alpha1.GroupList{}, catalog.IndexGroup, acme, []string{"sub"}},
		{"by the path that it had", &v1alpha1.ProjectList{}, catalog.IndexGroup, old, []string{"left"}},
		{"memberships of a user", &v1alpha1.MembershipList{}, catalog.IndexUser, person, []string{"m1", "m2", "m3"}},
		{"memberships of a project", &v1alpha1.MembershipList{}, catalog.IndexProject, web, []string{"m1", "m2"}},
		{"memberships of a group", &v1alpha1.MembershipList{}, catalog.IndexGroup, acme, []string{"m3"}},
		{"what is granted to a user", &v1alpha1.ProtectedBranchList{}, catalog.IndexUser, person, []string{"b1"}},
		{"what is granted to a group", &v1alpha1.ProtectedBranchList{}, catalog.IndexGrantee, acme, []string{"b1"}},
		{"what is granted to a deploy key", &v1alpha1.ProtectedBranchList{}, catalog.IndexGrantee, ci, []string{"b1", "b2"}},
		{"nothing refers to a storage", &v1alpha1.ProjectList{}, catalog.IndexGroup, &v1alpha1.RepositoryStorage{}, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var names []string
			for _, r := range c.Referrers(test.of, test.index)(t.Context(), test.obj) {
				names = append(names, r.Name)
			}
			NewWithT(t).Expect(names).To(ConsistOf(test.want))
		})
	}
}

func TestRivalsOfAClaimAreFound(t *testing.T) {
	acme := group("a", "acme", pinned(10))
	web := project("a", "web", byName("acme"))
	sub := group("a", "web", below(byID(10)))
	root := group("b", "ACME")
	lost := project("c", "web", byPath("nowhere"))
	c := catalogtest.New(t, acme, web, sub, root, lost,
		project("a", "other", byPath("acme"), func(s *v1alpha1.ProjectSpec) { s.Path = "WEB" }), project("c", "lost", byPath("nowhere"), func(s *v1alpha1.ProjectSpec) { s.Path = "web" }),
	).Catalog()
	rivals := func(of client.ObjectList, obj client.Object) (names []string) {
		for _, r := range c.Peers(of, catalog.IndexClaim, c.ClaimKeys)(t.Context(), obj) {
			names = append(names, r.Namespace+"/"+r.Name)
		}
		return names
	}
	g := NewWithT(t)
	g.Expect(rivals(&v1alpha1.ProjectList{}, web)).To(ConsistOf("a/web", "a/other"))
	g.Expect(rivals(&v1alpha1.ProjectList{}, sub)).To(ConsistOf("a/web", "a/other"))
	g.Expect(rivals(&v1alpha1.GroupList{}, web)).To(ConsistOf("a/web"))
	g.Expect(rivals(&v1alpha1.GroupList{}, root)).To(ConsistOf("a/acme", "b/ACME"))
	g.Expect(rivals(&v1alpha1.ProjectList{}, lost)).To(ConsistOf("c/web", "c/lost"), "a parent that is missing has a key too")
}

func TestKeysBelow(t *testing.T) {
	g := NewWithT(t)
	acme := group("a", "acme", admittingAll)
	c := catalogtest.New(t, acme, group("a", "one", below(byName("acme"))), group("b", "two", below(byPath("acme/one"))),
		group("a", "deep", pinned(7), below(byName("one"))), group("a", "beside"),
		group("c", "x", pinned(8), below(byID(9))), group("c", "y", pinned(9), below(byID(8))),
	).Catalog()
	keys := c.KeysBelow(t.Context(), acme)
	g.Expect(keys).To(ContainElements("n:a/one", "p:acme/one", "n:b/two", "n:a/deep", "i:7", "p:acme/one/deep"))
	g.Expect(keys).NotTo(ContainElement(Or(Equal("n:a/acme"), Equal("n:a/beside"))))
	g.Expect(c.KeysBelow(t.Context(), group("c", "x", pinned(8), below(byID(9))))).To(ContainElement("n:c/y"), "a cycle ends")
	g.Expect(c.KeysBelow(t.Context(), user("max", 1))).To(BeEmpty())
}
