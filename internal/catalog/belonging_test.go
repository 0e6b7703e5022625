package catalog_test

import (
	"cmp"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/catalog/catalogtest"
	"github.com/forgeplane/forgeplane/internal/role"
	"github.com/forgeplane/forgeplane/internal/target"
)

// owned adds an owner to an object.
func owned[T client.Object](o T, kind, name string, uid types.UID) T {
	o.SetOwnerReferences(append(o.GetOwnerReferences(), metav1.OwnerReference{
		APIVersion: v1alpha1.GroupVersion.String(), Kind: kind, Name: name, UID: uid,
	}))
	return o
}

func TestBelongs(t *testing.T) {
	acme, web := group("a", "acme"), project("a", "web", byName("acme"))
	badgeOf := func() *v1alpha1.Badge { return badge("a", "b", 1, nil, nil) }
	foreign := owned(badgeOf(), "Project", "web", "1")
	foreign.OwnerReferences[0].APIVersion = "other.example/v1alpha1"
	for name, test := range map[string]struct {
		badge  *v1alpha1.Badge
		target client.Object
		want   bool
	}{
		"one that has no owner yet":                        {badgeOf(), web, true},
		"one of another namespace":                         {badge("b", "b", 1, nil, nil), web, false},
		"one of the project":                               {owned(badgeOf(), "Project", "web", web.UID), web, true},
		"one of a former project":                          {owned(badgeOf(), "Project", "web", "1"), web, false},
		"one of the group":                                 {owned(badgeOf(), "Group", "acme", acme.UID), acme, true},
		"one of a former group":                            {owned(badgeOf(), "Group", "acme", "1"), acme, false},
		"one of both":                                      {owned(owned(badgeOf(), "Project", "web", "1"), "Project", "web", web.UID), web, true},
		"one that came over from a project elsewhere":      {owned(badgeOf(), "Project", "moved", "1"), web, true},
		"one of a group of the same name":                  {owned(badgeOf(), "Group", "web", "1"), web, true},
		"one that something of another API group owns":     {foreign, web, true},
		"one of a former project, also owned by something": {owned(owned(badgeOf(), "Project", "web", "1"), "Bundle", "x", "2"), web, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := catalog.Belongs(test.badge, test.target); got != test.want {
				t.Errorf("it is %v, want %v", got, test.want)
			}
		})
	}
}

// successor is a world with a group and a project that have taken the names of others, which are deleted. Of each kind there is
// one object of the project or group, called new, and one that its predecessor has left, called left.
// What says that it is of the predecessor is put to it by of.
func successor(t *testing.T, of func(left client.Object, kind, name string)) (*catalogtest.World, catalog.Scope, *v1alpha1.User) {
	t.Helper()
	acme, web, mary := group("a", "acme", pinned(10)), project("a", "web", byName("acme"), known(100)), user("mary", 1)
	w := catalogtest.New(t, acme, web, mary, user("ann", 2))
	ofWeb := func(left, is client.Object) {
		of(left, "Project", "web")
		w.Put(left, owned(is, "Project", "web", web.UID))
	}
	ofAcme := func(left, is client.Object) {
		of(left, "Group", "acme")
		w.Put(left, owned(is, "Group", "acme", acme.UID))
	}
	to := func(r v1alpha1.Reference) *v1alpha1.Reference { return &r }
	ofWeb(inProject("a", "left-web", byName("web"), byPath("mary"), v1alpha1.RoleOwner),
		inProject("a", "new-web", byName("web"), byPath("ann"), v1alpha1.RoleOwner))
	ofAcme(inGroup("a", "left-acme", byName("acme"), byPath("mary"), v1alpha1.RoleMaintainer),
		inGroup("a", "new-acme", byName("acme"), byPath("ann"), v1alpha1.RoleMaintainer))
	ofWeb(protecting("a", "left-p", "main", byName("web"), toRole(v1alpha1.AccessDeveloper)),
		protecting("a", "new-p", "main", byName("web"), toRole(v1alpha1.AccessNoOne)))
	ofAcme(protectingBelow("a", "left-g", "rel", byName("acme"), toRole(v1alpha1.AccessDeveloper)),
		protectingBelow("a", "new-g", "rel", byName("acme"), toRole(v1alpha1.AccessNoOne)))
	ofWeb(deployKey("a", "left", 1, byName("web")), deployKey("a", "new", 2, byName("web")))
	ofWeb(labelID(labelled("a", "left-p", "bug", byName("web")), 1), labelID(labelled("a", "new-p", "bug", byName("web")), 2))
	ofAcme(labelID(labelledBelow("a", "left-g", "idea", byName("acme")), 3), labelID(labelledBelow("a", "new-g", "idea", byName("acme")), 4))
	ofWeb(badge("a", "left-p", 1, to(byName("web")), nil), badge("a", "new-p", 2, to(byName("web")), nil))
	ofAcme(badge("a", "left-g", 3, nil, to(byName("acme"))), badge("a", "new-g", 4, nil, to(byName("acme"))))
	ofWeb(triggerToken("a", "left", byName("web"), "value-of-left"), triggerToken("a", "new", byName("web"), "value-of-new"))
	mirror := func(name string) *v1alpha1.RemoteMirror {
		return &v1alpha1.RemoteMirror{ObjectMeta: meta("mirror", "a", name), Spec: v1alpha1.RemoteMirrorSpec{ProjectRef: byName("web")}}
	}
	ofWeb(mirror("left"), mirror("new"))
	ofWeb(jobTokenScope("a", "left", byName("web"), byName("web")), jobTokenScope("a", "new", byName("web")))
	scope, err := w.Catalog().ProjectScope(t.Context(), web)
	if err != nil {
		t.Fatal(err)
	}
	return w, scope, mary
}

// leavings are the ways in which an object says that it is of a project or group that is gone: by its owner, and by the uid in its
// reference, where no controller has got to it.
var leavings = map[string]func(left client.Object, kind, name string){
	"by its owner": func(left client.Object, kind, name string) { owned(left, kind, name, "former") },
	"by its reference": func(left client.Object, _, _ string) {
		project, group := target.Refs(left)
		cmp.Or(project, group).UID = "former"
	},
}

// eachFormer runs a test for each of them.
func eachFormer(t *testing.T, test func(t *testing.T, w *catalogtest.World, scope catalog.Scope, mary *v1alpha1.User)) {
	t.Helper()
	for how, of := range leavings {
		t.Run(how, func(t *testing.T) {
			w, scope, mary := successor(t, of)
			test(t, w, scope, mary)
		})
	}
}

func TestWhatADeletedProjectOrGroupLeavesIsNotItsSuccessors(t *testing.T) {
	eachFormer(t, expectNothingLeft)
}

func expectNothingLeft(t *testing.T, w *catalogtest.World, scope catalog.Scope, _ *v1alpha1.User) {
	t.Helper()
	c, ctx, web := w.Catalog(), t.Context(), scope.Project
	above := catalog.Scope{Groups: scope.Groups}
	for kind, find := range map[string]func() (names []string, err error){
		"protected branches": func() ([]string, error) { return named(c.Protections(ctx, scope)) },
		"the protection of a branch": func() ([]string, error) {
			b, err := c.ProtectionOf(ctx, scope, "main")
			return named([]*v1alpha1.ProtectedBranch{b}, err)
		},
		"deploy keys": func() ([]string, error) { return named(c.DeployKeysOf(ctx, web)) },
		"labels":      func() ([]string, error) { return named(c.Labels(ctx, scope)) },
		"the label of a title": func() ([]string, error) {
			l, err := c.LabelHolder(ctx, scope, "bug")
			return named([]*v1alpha1.Label{l}, err)
		},
		"the label of a title above": func() ([]string, error) {
			l, err := c.LabelHolder(ctx, above, "idea")
			return named([]*v1alpha1.Label{l}, err)
		},
		"labels of projects": func() ([]string, error) { return named(c.ProjectLabels(ctx, scope.Groups[0], "bug")) },
		"badges":             func() ([]string, error) { return named(c.Badges(ctx, scope)) },
		"trigger tokens":     func() ([]string, error) { return named(c.TriggerTokensOf(ctx, web)) },
		"mirrors":            func() ([]string, error) { return named(c.RemoteMirrorsOf(ctx, web)) },
		"job token scopes": func() ([]string, error) {
			s, err := c.JobTokenScopeOf(ctx, scope)
			return named([]*v1alpha1.JobTokenScope{s}, err)
		},
	} {
		t.Run(kind, func(t *testing.T) {
			g := NewWithT(t)
			names, err := find()
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(names).NotTo(BeEmpty())
			g.Expect(names).To(HaveEach(HavePrefix("new")))
		})
	}
}

func named[T client.Object](objects []T, err error) (names []string, _ error) {
	for _, o := range objects {
		names = append(names, o.GetName())
	}
	return names, err
}

func TestNobodyHasARoleFromWhatADeletedProjectOrGroupLeaves(t *testing.T) {
	eachFormer(t, expectNoRoleLeft)
}

func expectNoRoleLeft(t *testing.T, w *catalogtest.World, scope catalog.Scope, mary *v1alpha1.User) {
	t.Helper()
	g := NewWithT(t)
	c, ctx, now := w.Catalog(), t.Context(), time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC)
	for _, s := range []catalog.Scope{scope, {Groups: scope.Groups}} {
		roles, err := c.RolesIn(ctx, mary, s, now)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(roles.Highest()).To(Equal(role.None), s.Path())
		members, err := c.AllMembersOf(ctx, s, now)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(members).To(HaveExactElements(HaveField("User.Name", "ann")))
	}
	tree := c.Tree(mary, now)
	projects, err := tree.Projects(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(projects).To(HaveExactElements(HaveField("Roles", catalog.Roles{})))
	groups, err := tree.Groups(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(groups).To(HaveExactElements(HaveField("Roles", catalog.Roles{})))
	g.Expect(c.GivenBelow(ctx, mary, scope.Groups[0])).To(BeEmpty())
}

func TestNobodyGetsInByAKeyOrTokenThatADeletedProjectLeaves(t *testing.T) {
	eachFormer(t, expectNoWayInLeft)
}

func expectNoWayInLeft(t *testing.T, w *catalogtest.World, scope catalog.Scope, _ *v1alpha1.User) {
	t.Helper()
	g := NewWithT(t)
	c, ctx := w.Catalog(), t.Context()
	_, err := c.TriggerTokenByValue(ctx, scope.Project, "value-of-left", time.Now())
	g.Expect(err).To(MatchError(catalog.ErrNotFound))
	g.Expect(c.TriggerTokenByValue(ctx, scope.Project, "value-of-new", time.Now())).To(HaveField("Name", "new"))
	_, err = c.ResolveLevel(ctx, scope, "a", toDeployKey(byName("left")))
	g.Expect(err).To(MatchError(catalog.ErrNotFound))
	g.Expect(c.ResolveLevel(ctx, scope, "a", toDeployKey(byName("new")))).To(HaveField("DeployKeyID", BeEquivalentTo(2)))
}

func TestWhetherSomethingBelongsIsToldWithoutAllocating(t *testing.T) {
	web := project("a", "web", byName("acme"))
	key := owned(owned(deployKey("a", "k", 1, byName("web")), "Project", "web", "1"), "Bundle", "x", "2")
	if n := testing.AllocsPerRun(100, func() { catalog.Belongs(key, web) }); n != 0 {
		t.Errorf("it allocates %v times", n)
	}
}
