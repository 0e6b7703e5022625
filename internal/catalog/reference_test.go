package catalog_test

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/catalog/catalogtest"
	. "github.com/forgeplane/forgeplane/internal/catalog/catalogtest/objects"
	"github.com/forgeplane/forgeplane/internal/deploykey"
	"github.com/forgeplane/forgeplane/internal/protection"
)

// twoTenants returns a world in which the namespaces a and b each have a group, a project and a deploy key. The objects of b are younger,
// and imitate those of a.
func twoTenants(t *testing.T) *catalogtest.World {
	t.Helper()
	return catalogtest.New(t,
		User("max", 1), User("dana", 2, Reached("dana@example.com")),
		Group("a", "acme", Pinned(10)), Project("a", "web", ByName("acme"), Known(100)), DeployKey("a", "ci", 1000, ByName("web")),
		Group("b", "bolt", Pinned(20)), Project("b", "app", ByName("bolt"), Known(200)), DeployKey("b", "cd", 2000, ByName("app")),
		// These have the same ids, names and paths.
		Group("b", "acme", Pinned(10)), Project("b", "web", ByName("bolt"), Known(100)), DeployKey("b", "ci", 1000, ByName("web")),
		Project("b", "squat", ByPath("acme"), func(s *v1alpha1.ProjectSpec) { s.Path = "web" }),
	)
}

func TestReference_staysInNamespace(t *testing.T) {
	c := twoTenants(t).Catalog()
	find := map[string]func(namespace string, ref v1alpha1.Reference) (client.Object, error){
		"group": func(n string, r v1alpha1.Reference) (client.Object, error) { return c.Group(t.Context(), n, r) },
		"project": func(n string, r v1alpha1.Reference) (client.Object, error) {
			return c.Project(t.Context(), n, r)
		},
		"deploy key": func(n string, r v1alpha1.Reference) (client.Object, error) {
			return deploykey.Named(t.Context(), c, n, r)
		},
	}
	tests := []struct {
		kind, namespace string
		ref             v1alpha1.Reference
		want            string // empty if nothing is found
	}{
		{"group", "a", ByName("acme"), "group a/acme"},
		{"group", "a", ByPath("acme"), "group a/acme"},
		{"group", "a", ByPath("ACME"), "group a/acme"},
		{"group", "a", ByID(10), "group a/acme"},
		{"group", "b", ByName("acme"), "group b/acme"}, // the namespace's own group, which holds no path
		{"group", "b", ByPath("acme"), ""},
		{"group", "b", ByID(10), ""},
		{"group", "b", ByPath("bolt"), "group b/bolt"},
		{"group", "a", ByName("bolt"), ""},
		{"group", "a", ByPath("bolt"), ""},
		{"group", "a", ByID(20), ""},
		{"group", "a", ByPath("acme/web"), ""}, // a project
		{"group", "a", ByName("a/acme"), ""},
		{"group", "b", ByName("../a/acme"), ""},
		{"group", "a", ByID(99), ""},

		{"project", "a", ByName("web"), "project a/web"},
		{"project", "a", ByPath("acme/web"), "project a/web"},
		{"project", "a", ByPath("Acme/WEB"), "project a/web"},
		{"project", "a", ByID(100), "project a/web"},
		{"project", "b", ByName("web"), "project b/web"},
		{"project", "b", ByPath("acme/web"), ""},
		{"project", "b", ByID(100), ""},
		{"project", "b", ByID(200), "project b/app"},
		{"project", "b", ByPath("bolt/app"), "project b/app"},
		{"project", "a", ByPath("bolt/app"), ""},
		{"project", "a", ByID(200), ""},
		{"project", "a", ByPath("acme"), ""}, // a group
		{"project", "a", ByName("app"), ""},
		{"project", "a", ByID(99), ""},

		{"deploy key", "a", ByName("ci"), "deploykey a/ci"},
		{"deploy key", "a", ByID(1000), "deploykey a/ci"},
		{"deploy key", "b", ByName("ci"), "deploykey b/ci"},
		{"deploy key", "b", ByID(1000), ""},
		{"deploy key", "a", ByName("cd"), ""},
		{"deploy key", "a", ByID(2000), ""},
		{"deploy key", "a", ByID(99), ""},
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
			g.Expect(Title(found)).To(Equal(test.want))
		})
	}
}

func TestTarget(t *testing.T) {
	g := NewWithT(t)
	c := twoTenants(t).Catalog()
	badge := func(namespace string, project, group *v1alpha1.Reference) *v1alpha1.Badge {
		return &v1alpha1.Badge{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace}, Spec: v1alpha1.BadgeSpec{ProjectRef: project, GroupRef: group},
		}
	}
	p, gr := ByName("web"), ByName("acme")
	found, err := c.Target(t.Context(), badge("a", &p, nil))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(Title(found)).To(Equal("project a/web"))
	found, err = c.Target(t.Context(), badge("a", nil, &gr))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(Title(found)).To(Equal("group a/acme"))
	_, err = c.Target(t.Context(), badge("c", nil, &gr))
	g.Expect(err).To(MatchError(catalog.ErrNotFound))
}

func TestUser(t *testing.T) {
	c := catalogtest.New(t, User("max", 1), User("second", 1, Called("MAX")), User("dana", 2)).Catalog()
	tests := []struct {
		ref  v1alpha1.Reference
		want string
	}{
		{ByName("max"), "user /max"},
		{ByName("second"), "user /second"},
		{ByPath("max"), "user /max"},
		{ByPath("Max"), "user /max"},
		{ByPath("second"), ""},
		{ByID(1), "user /max"},
		{ByID(2), "user /dana"},
		{ByID(3), ""},
		{ByName("nobody"), ""},
		{ByPath("nobody"), ""},
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
			g.Expect(Title(u)).To(Equal(test.want))
		})
	}
}

func TestUserByEmail(t *testing.T) {
	g := NewWithT(t)
	c := catalogtest.New(t, User("max", 1, Reached("Max@example.com")), User("dana", 2, Reached("max@EXAMPLE.com")), User("eve", 3)).Catalog()
	u, err := c.UserByEmail(t.Context(), "max@example.com")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(Title(u)).To(Equal("user /max"))
	_, err = c.UserByEmail(t.Context(), "")
	g.Expect(err).To(MatchError(catalog.ErrNotFound), "users without an address are not found by none")
}

func TestStorages(t *testing.T) {
	g := NewWithT(t)
	on := func(name, storage string) *v1alpha1.Project {
		p := Project("a", name, ByName("acme"))
		p.Status.Storage = storage
		return p
	}
	s := &v1alpha1.RepositoryStorage{ObjectMeta: Meta("storage", "", "fast")}
	c := catalogtest.New(t, s, on("one", "fast"), on("two", "fast"), on("new", "")).Catalog()
	found, err := catalog.Get[*v1alpha1.RepositoryStorage](t.Context(), c, "", "fast")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(Title(found)).To(Equal("storage /fast"))
	_, err = catalog.Get[*v1alpha1.RepositoryStorage](t.Context(), c, "", "slow")
	g.Expect(err).To(MatchError(catalog.ErrNotFound))
	all, err := catalog.All[*v1alpha1.RepositoryStorage](t.Context(), c)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(all).To(HaveLen(1))
	projects, err := catalog.List[*v1alpha1.Project](t.Context(), c, catalog.IndexStorage, "fast")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(projects).To(HaveLen(2))
	projects, err = catalog.List[*v1alpha1.Project](t.Context(), c, catalog.IndexStorage, "")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(projects).To(HaveLen(1))
}

func TestReferrers_findsEveryFormOfReference(t *testing.T) {
	acme := Group("a", "acme", Pinned(10))
	web := Project("a", "web", ByName("acme"), Known(100))
	ci := DeployKey("a", "ci", 1000, ByName("web"))
	person := User("max", 1)
	old := Group("a", "old")
	old.Status.FullPath = "former"
	w := catalogtest.New(t, acme, web, ci, person, old,
		Project("a", "by-path", ByPath("Acme")), Project("a", "by-id", ByID(10)), Project("b", "elsewhere", ByName("acme")),
		Group("a", "sub", Below(ByPath("acme"))),
		Project("a", "left", ByPath("FORMER")),
		InProject("a", "m1", ByPath("acme/web"), ByID(1), v1alpha1.RoleGuest), InProject("a", "m2", ByID(100), ByPath("MAX"), v1alpha1.RoleGuest),
		InGroup("a", "m3", ByName("acme"), ByName("max"), v1alpha1.RoleGuest),
		Protecting("a", "b1", "main", ByName("web"), ToUser(ByPath("max")), ToGroup(ByID(10)), ToDeployKey(ByName("ci"))),
		Protecting("a", "b2", "x", ByName("web"), ToDeployKey(ByID(1000))),
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
		{"by a former path", &v1alpha1.ProjectList{}, catalog.IndexGroup, old, []string{"left"}},
		{"memberships of a user", &v1alpha1.MembershipList{}, catalog.IndexUser, person, []string{"m1", "m2", "m3"}},
		{"memberships of a project", &v1alpha1.MembershipList{}, catalog.IndexProject, web, []string{"m1", "m2"}},
		{"memberships of a group", &v1alpha1.MembershipList{}, catalog.IndexGroup, acme, []string{"m3"}},
		{"grants to a user", &v1alpha1.ProtectedBranchList{}, catalog.IndexUser, person, []string{"b1"}},
		{"grants to a group", &v1alpha1.ProtectedBranchList{}, protection.IndexGrantee, acme, []string{"b1"}},
		{"grants to a deploy key", &v1alpha1.ProtectedBranchList{}, protection.IndexGrantee, ci, []string{"b1", "b2"}},
		{"no references to a storage", &v1alpha1.ProjectList{}, catalog.IndexGroup, &v1alpha1.RepositoryStorage{}, nil},
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

func TestPeers_findsRivalsOfClaim(t *testing.T) {
	acme := Group("a", "acme", Pinned(10))
	web := Project("a", "web", ByName("acme"))
	sub := Group("a", "web", Below(ByID(10)))
	root := Group("b", "ACME")
	lost := Project("c", "web", ByPath("nowhere"))
	c := catalogtest.New(t, acme, web, sub, root, lost,
		Project("a", "other", ByPath("acme"), func(s *v1alpha1.ProjectSpec) { s.Path = "WEB" }), Project("c", "lost", ByPath("nowhere"), func(s *v1alpha1.ProjectSpec) { s.Path = "web" }),
	).Catalog()
	rivals := func(of client.ObjectList, obj client.Object) (names []string) {
		for _, r := range c.Peers(of, catalog.IndexPathClaim, c.ClaimKeys)(t.Context(), obj) {
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
	acme := Group("a", "acme", AdmittingAll)
	c := catalogtest.New(t, acme, Group("a", "one", Below(ByName("acme"))), Group("b", "two", Below(ByPath("acme/one"))),
		Group("a", "deep", Pinned(7), Below(ByName("one"))), Group("a", "beside"),
		Group("c", "x", Pinned(8), Below(ByID(9))), Group("c", "y", Pinned(9), Below(ByID(8))),
	).Catalog()
	keys := c.KeysBelow(t.Context(), acme)
	g.Expect(keys).To(ContainElements("n:a/one", "p:acme/one", "n:b/two", "n:a/deep", "i:7", "p:acme/one/deep"))
	g.Expect(keys).NotTo(ContainElement(Or(Equal("n:a/acme"), Equal("n:a/beside"))))
	g.Expect(c.KeysBelow(t.Context(), Group("c", "x", Pinned(8), Below(ByID(9))))).To(ContainElement("n:c/y"), "a cycle ends")
	g.Expect(c.KeysBelow(t.Context(), User("max", 1))).To(BeEmpty())
}

// indexed has the objects of some kinds.
type indexed map[string]map[client.ObjectKey]any

func (indexed) ByIndex(string, string, string) ([]any, bool) { return nil, false }

func (i indexed) ByName(kind string, name client.ObjectKey) (any, bool) {
	all, ok := i[kind]
	return all[name], ok
}

func TestGet_looksUpInIndex(t *testing.T) {
	g := NewWithT(t)
	mary := User("mary", 1)
	acme, web := Group("a", "acme", Pinned(10)), Project("a", "web", ByName("acme"), Known(100))
	c := catalogtest.New(t, mary, Group("a", "other", Pinned(11)), Project("a", "web", ByName("acme"), Known(100))).Catalog()
	c.LookUpIn(indexed{
		"*v1alpha1.Group": {{Namespace: "a", Name: "acme"}: acme}, "*v1alpha1.Project": {{Namespace: "a", Name: "web"}: web},
	})
	group, err := c.Group(t.Context(), "a", ByName("acme"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(group).To(BeIdenticalTo(acme))
	_, err = c.Group(t.Context(), "a", ByName("other"))
	g.Expect(err).To(MatchError(catalog.ErrNotFound), "only the reader has it")
	_, err = c.Group(t.Context(), "b", ByName("acme"))
	g.Expect(err).To(MatchError(catalog.ErrNotFound))
	user, err := c.User(t.Context(), ByName("mary"))
	g.Expect(err).NotTo(HaveOccurred(), "the reader has a kind without an index")
	g.Expect(user.Name).To(Equal("mary"))
	project, err := catalog.Get[*v1alpha1.Project](t.Context(), c, "a", "web")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(project).To(And(Equal(web), Not(BeIdenticalTo(web))))
}
