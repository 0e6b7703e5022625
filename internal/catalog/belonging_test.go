package catalog_test

import (
	"cmp"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/badge"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/catalog/catalogtest"
	. "github.com/forgeplane/forgeplane/internal/catalog/catalogtest/objects"
	"github.com/forgeplane/forgeplane/internal/jobtoken"
	"github.com/forgeplane/forgeplane/internal/label"
	"github.com/forgeplane/forgeplane/internal/protection"
	"github.com/forgeplane/forgeplane/internal/remotemirror"
	"github.com/forgeplane/forgeplane/internal/role"
	"github.com/forgeplane/forgeplane/internal/triggertoken"
)

func TestBelongs(t *testing.T) {
	acme, web := Group("a", "acme"), Project("a", "web", ByName("acme"))
	badgeOf := func() *v1alpha1.Badge { return Badge("a", "b", 1, nil, nil) }
	foreign := Owned(badgeOf(), "Project", "web", "1")
	foreign.OwnerReferences[0].APIVersion = "other.example/v1alpha1"
	for name, test := range map[string]struct {
		badge  *v1alpha1.Badge
		target client.Object
		want   bool
	}{
		"one that has no owner yet":                        {badgeOf(), web, true},
		"one of another namespace":                         {Badge("b", "b", 1, nil, nil), web, false},
		"one of the project":                               {Owned(badgeOf(), "Project", "web", web.UID), web, true},
		"one of a former project":                          {Owned(badgeOf(), "Project", "web", "1"), web, false},
		"one of the group":                                 {Owned(badgeOf(), "Group", "acme", acme.UID), acme, true},
		"one of a former group":                            {Owned(badgeOf(), "Group", "acme", "1"), acme, false},
		"one of both":                                      {Owned(Owned(badgeOf(), "Project", "web", "1"), "Project", "web", web.UID), web, true},
		"one that came over from a project elsewhere":      {Owned(badgeOf(), "Project", "moved", "1"), web, true},
		"one of a group of the same name":                  {Owned(badgeOf(), "Group", "web", "1"), web, true},
		"one that something of another API group owns":     {foreign, web, true},
		"one of a former project, also owned by something": {Owned(Owned(badgeOf(), "Project", "web", "1"), "Bundle", "x", "2"), web, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := catalog.Belongs(test.badge, test.target); got != test.want {
				t.Errorf("it is %v, want %v", got, test.want)
			}
		})
	}
}

// successor returns a world with a group and a project that have taken the names of deleted ones. For each kind it has an object named new,
// which belongs to the successor, and an object named left, which belonged to its predecessor. of changes the object left so that it says
// so.
func successor(t *testing.T, of func(left client.Object, kind, name string)) (*catalogtest.World, catalog.Scope, *v1alpha1.User) {
	t.Helper()
	acme, web, mary := Group("a", "acme", Pinned(10)), Project("a", "web", ByName("acme"), Known(100)), User("mary", 1)
	w := catalogtest.New(t, acme, web, mary, User("ann", 2))
	ofWeb := func(left, is client.Object) {
		of(left, "Project", "web")
		w.Put(left, Owned(is, "Project", "web", web.UID))
	}
	ofAcme := func(left, is client.Object) {
		of(left, "Group", "acme")
		w.Put(left, Owned(is, "Group", "acme", acme.UID))
	}
	to := func(r v1alpha1.Reference) *v1alpha1.Reference { return &r }
	ofWeb(InProject("a", "left-web", ByName("web"), ByPath("mary"), v1alpha1.RoleOwner),
		InProject("a", "new-web", ByName("web"), ByPath("ann"), v1alpha1.RoleOwner))
	ofAcme(InGroup("a", "left-acme", ByName("acme"), ByPath("mary"), v1alpha1.RoleMaintainer),
		InGroup("a", "new-acme", ByName("acme"), ByPath("ann"), v1alpha1.RoleMaintainer))
	ofWeb(Protecting("a", "left-p", "main", ByName("web"), ToRole(v1alpha1.AccessDeveloper)),
		Protecting("a", "new-p", "main", ByName("web"), ToRole(v1alpha1.AccessNoOne)))
	ofAcme(ProtectingBelow("a", "left-g", "rel", ByName("acme"), ToRole(v1alpha1.AccessDeveloper)),
		ProtectingBelow("a", "new-g", "rel", ByName("acme"), ToRole(v1alpha1.AccessNoOne)))
	ofWeb(DeployKey("a", "left", 1, ByName("web")), DeployKey("a", "new", 2, ByName("web")))
	ofWeb(LabelID(Labelled("a", "left-p", "bug", ByName("web")), 1), LabelID(Labelled("a", "new-p", "bug", ByName("web")), 2))
	ofAcme(LabelID(LabelledBelow("a", "left-g", "idea", ByName("acme")), 3), LabelID(LabelledBelow("a", "new-g", "idea", ByName("acme")), 4))
	ofWeb(Badge("a", "left-p", 1, to(ByName("web")), nil), Badge("a", "new-p", 2, to(ByName("web")), nil))
	ofAcme(Badge("a", "left-g", 3, nil, to(ByName("acme"))), Badge("a", "new-g", 4, nil, to(ByName("acme"))))
	ofWeb(TriggerToken("a", "left", ByName("web"), "value-of-left"), TriggerToken("a", "new", ByName("web"), "value-of-new"))
	mirror := func(name string) *v1alpha1.RemoteMirror {
		return &v1alpha1.RemoteMirror{ObjectMeta: Meta("mirror", "a", name), Spec: v1alpha1.RemoteMirrorSpec{ProjectRef: ByName("web")}}
	}
	ofWeb(mirror("left"), mirror("new"))
	ofWeb(JobTokenScope("a", "left", ByName("web"), ByName("web")), JobTokenScope("a", "new", ByName("web")))
	scope, err := w.Catalog().ProjectScope(t.Context(), web)
	if err != nil {
		t.Fatal(err)
	}
	return w, scope, mary
}

// leavings are the ways in which an object can say that it belongs to a deleted group or project: by its owner, or by the UID in its
// reference if no controller has processed it yet.
var leavings = map[string]func(left client.Object, kind, name string){
	"by its owner": func(left client.Object, kind, name string) { Owned(left, kind, name, "former") },
	"by its reference": func(left client.Object, _, _ string) {
		project, group := left.(v1alpha1.Targeted).TargetRefs()
		cmp.Or(project, group).UID = "former"
	},
}

// eachFormer runs a test for each of leavings.
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
		"protected branches": func() ([]string, error) { return named(protection.All(ctx, c, scope)) },
		"the protection of a branch": func() ([]string, error) {
			b, err := protection.Holder(ctx, c, scope, "main")
			return named([]*v1alpha1.ProtectedBranch{b}, err)
		},
		"deploy keys": func() ([]string, error) { return named(catalog.Of[*v1alpha1.DeployKey](ctx, c, web)) },
		"labels":      func() ([]string, error) { return named(label.All(ctx, c, scope)) },
		"the label of a title": func() ([]string, error) {
			l, err := label.Holder(ctx, c, scope, "bug")
			return named([]*v1alpha1.Label{l}, err)
		},
		"the label of a title above": func() ([]string, error) {
			l, err := label.Holder(ctx, c, above, "idea")
			return named([]*v1alpha1.Label{l}, err)
		},
		"labels of projects": func() ([]string, error) { return named(label.InProjects(ctx, c, scope.Groups[0], "bug")) },
		"badges":             func() ([]string, error) { return named(badge.All(ctx, c, scope)) },
		"trigger tokens":     func() ([]string, error) { return named(catalog.Of[*v1alpha1.TriggerToken](ctx, c, web)) },
		"mirrors":            func() ([]string, error) { return named(remotemirror.Of(ctx, c, web)) },
		"job token scopes": func() ([]string, error) {
			s, err := jobtoken.ScopeOf(ctx, c, scope)
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
	_, err := triggertoken.ByValue(ctx, c, scope.Project, "value-of-left", time.Now())
	g.Expect(err).To(MatchError(catalog.ErrNotFound))
	g.Expect(triggertoken.ByValue(ctx, c, scope.Project, "value-of-new", time.Now())).To(HaveField("Name", "new"))
	_, err = protection.Resolve(ctx, c, scope, "a", ToDeployKey(ByName("left")))
	g.Expect(err).To(MatchError(catalog.ErrNotFound))
	g.Expect(protection.Resolve(ctx, c, scope, "a", ToDeployKey(ByName("new")))).To(HaveField("DeployKeyID", BeEquivalentTo(2)))
}

func TestWhetherSomethingBelongsIsToldWithoutAllocating(t *testing.T) {
	web := Project("a", "web", ByName("acme"))
	key := Owned(Owned(DeployKey("a", "k", 1, ByName("web")), "Project", "web", "1"), "Bundle", "x", "2")
	if n := testing.AllocsPerRun(100, func() { catalog.Belongs(key, web) }); n != 0 {
		t.Errorf("it allocates %v times", n)
	}
}
