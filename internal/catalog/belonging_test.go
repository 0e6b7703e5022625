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
	"github.com/forgeplane/forgeplane/internal/variable"
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
		"without an owner":                       {badgeOf(), web, true},
		"in another namespace":                   {Badge("b", "b", 1, nil, nil), web, false},
		"of the project":                         {Owned(badgeOf(), "Project", "web", web.UID), web, true},
		"of a former project":                    {Owned(badgeOf(), "Project", "web", "1"), web, false},
		"of the group":                           {Owned(badgeOf(), "Group", "acme", acme.UID), acme, true},
		"of a former group":                      {Owned(badgeOf(), "Group", "acme", "1"), acme, false},
		"of a former project and the project":    {Owned(Owned(badgeOf(), "Project", "web", "1"), "Project", "web", web.UID), web, true},
		"of a project of another name":           {Owned(badgeOf(), "Project", "moved", "1"), web, true},
		"of a group of the same name":            {Owned(badgeOf(), "Group", "web", "1"), web, true},
		"of an object of another API group":      {foreign, web, true},
		"of a former project and another object": {Owned(Owned(badgeOf(), "Project", "web", "1"), "Bundle", "x", "2"), web, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := catalog.Belongs(test.badge, test.target); got != test.want {
				t.Errorf("it is %v, want %v", got, test.want)
			}
		})
	}
}

// successor returns a world with a group and a project that have taken the names of deleted ones. For each kind it has an object named new,
// which belongs to the successor, and an object named left, which belonged to its predecessor. The function of marks the objects named left
// as objects of the predecessor.
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
	value := func(name string, s v1alpha1.VariableSpec) *v1alpha1.Variable {
		s.Key = "A"
		return &v1alpha1.Variable{ObjectMeta: Meta("variable", "a", name), Spec: s}
	}
	ofWeb(value("left-p", v1alpha1.VariableSpec{ProjectRef: to(ByName("web"))}), value("new-p", v1alpha1.VariableSpec{ProjectRef: to(ByName("web"))}))
	ofAcme(value("left-g", v1alpha1.VariableSpec{GroupRef: to(ByName("acme"))}), value("new-g", v1alpha1.VariableSpec{GroupRef: to(ByName("acme"))}))
	ofWeb(JobTokenScope("a", "left", ByName("web"), ByName("web")), JobTokenScope("a", "new", ByName("web")))
	scope, err := w.Catalog().ProjectScope(t.Context(), web)
	if err != nil {
		t.Fatal(err)
	}
	return w, scope, mary
}

// leavings mark an object as belonging to a deleted group or project: by its owner, by the UID in its reference if no controller has
// processed it yet, or by the target that a controller saw before the reference was changed.
var leavings = map[string]func(left client.Object, kind, name string){
	"by its owner": func(left client.Object, kind, name string) { Owned(left, kind, name, "former") },
	"by its reference": func(left client.Object, _, _ string) {
		project, group := left.(v1alpha1.Targeted).TargetRefs()
		cmp.Or(project, group).UID = "former"
	},
	"by its record": func(left client.Object, _, _ string) {
		left.(v1alpha1.Targeted).GetTargetStatus().TargetRef = &v1alpha1.Reference{Name: "former", UID: "former"}
	},
}

// eachFormer runs a test with each of leavings.
func eachFormer(t *testing.T, test func(t *testing.T, w *catalogtest.World, scope catalog.Scope, mary *v1alpha1.User)) {
	t.Helper()
	for how, of := range leavings {
		t.Run(how, func(t *testing.T) {
			w, scope, mary := successor(t, of)
			test(t, w, scope, mary)
		})
	}
}

func TestSuccessor_inheritsNoObjects(t *testing.T) {
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
		"deploy keys": func() ([]string, error) { return named(catalog.ListForProject[*v1alpha1.DeployKey](ctx, c, web)) },
		"labels":      func() ([]string, error) { return named(label.All(ctx, c, scope)) },
		"the label of a title": func() ([]string, error) {
			l, err := label.Holder(ctx, c, scope, "bug")
			return named([]*v1alpha1.Label{l}, err)
		},
		"the label of a title above": func() ([]string, error) {
			l, err := label.Holder(ctx, c, above, "idea")
			return named([]*v1alpha1.Label{l}, err)
		},
		"labels of projects":       func() ([]string, error) { return named(label.InProjects(ctx, c, scope.Groups[0], "bug")) },
		"badges":                   func() ([]string, error) { return named(badge.All(ctx, c, scope)) },
		"trigger tokens":           func() ([]string, error) { return named(catalog.ListForProject[*v1alpha1.TriggerToken](ctx, c, web)) },
		"mirrors":                  func() ([]string, error) { return named(remotemirror.Of(ctx, c, web)) },
		"variables":                func() ([]string, error) { return named(variable.New(c, "").Of(ctx, scope)) },
		"variables of a key above": func() ([]string, error) { return named(variable.New(c, "").WithKey(ctx, above, "A")) },
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

func TestChangedReference_keepsTarget(t *testing.T) {
	g, ctx := NewWithT(t), t.Context()
	acme, mary := Group("a", "acme", Pinned(10)), User("mary", 1)
	web, other := Project("a", "web", ByName("acme"), Known(100)), Project("a", "other", ByName("acme"), Known(101))
	w := catalogtest.New(t, acme, web, other, mary)
	to := ByName("other")
	badgeOfWeb, member := Badge("a", "badge", 1, &to, nil), InProject("a", "member", ByName("other"), ByPath("mary"), v1alpha1.RoleMaintainer)
	guard, bug := Protecting("a", "guard", "main", ByName("other"), ToRole(v1alpha1.AccessNoOne)), Labelled("a", "bug", "bug", ByName("other"))
	for _, o := range []v1alpha1.Targeted{badgeOfWeb, member, guard, LabelID(bug, 1)} {
		o.GetTargetStatus().TargetRef = &v1alpha1.Reference{Name: "web", UID: string(web.UID)}
		w.Put(o)
	}
	c, now := w.Catalog(), time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC)
	for p, is := range map[*v1alpha1.Project]bool{web: true, other: false} {
		count, highest := 0, role.None
		if is {
			count, highest = 1, role.Maintainer
		}
		s, err := c.ProjectScope(ctx, p)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(badge.All(ctx, c, s)).To(HaveLen(count), p.Name)
		g.Expect(protection.All(ctx, c, s)).To(HaveLen(count), p.Name)
		g.Expect(label.All(ctx, c, s)).To(HaveLen(count), p.Name)
		g.Expect(c.MembersOf(ctx, s, now)).To(HaveLen(count), p.Name)
		roles, err := c.RolesIn(ctx, mary, s, now)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(roles.Highest()).To(Equal(highest), p.Name)
		l, err := label.Holder(ctx, c, s, "bug")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(l != nil).To(Equal(is), p.Name)
	}
	g.Expect(c.Target(ctx, guard)).To(HaveField("Name", "web"))
	g.Expect(c.Named(ctx, guard)).To(HaveField("Name", "other"))
	guard.Spec.ProjectRef.Name = "missing"
	g.Expect(c.Target(ctx, guard)).To(HaveField("Name", "web"))
	*guard.Spec.ProjectRef = v1alpha1.Reference{Name: "web", UID: "another"}
	g.Expect(c.Target(ctx, guard)).To(HaveField("Name", "web"), "only the UID has changed")
	g.Expect(catalog.Belongs(guard, web)).To(BeTrue())
	*guard.Spec.ProjectRef = v1alpha1.Reference{Name: "other", UID: string(other.UID)}
	g.Expect(catalog.Belongs(guard, web)).To(BeTrue(), "the UID has changed as well")
	g.Expect(catalog.Belongs(guard, other)).To(BeFalse())
	*guard.Spec.ProjectRef = v1alpha1.Reference{Name: "web"}
	guard.Status.TargetRef.UID = "former"
	g.Expect(c.Target(ctx, guard)).To(HaveField("UID", web.UID), "a reference without a UID follows its name")
	guard.Spec.ProjectRef.Name = "missing"
	_, err := c.Target(ctx, guard)
	g.Expect(err).To(MatchError(catalog.ErrNotFound), "the project is gone")
}

func TestSuccessor_inheritsNoRoles(t *testing.T) {
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
	tree := c.View(mary, now)
	projects, err := tree.Projects(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(projects).To(HaveExactElements(HaveField("Roles", catalog.Roles{})))
	groups, err := tree.Groups(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(groups).To(HaveExactElements(HaveField("Roles", catalog.Roles{})))
	g.Expect(c.GivenBelow(ctx, mary, scope.Groups[0])).To(BeEmpty())
}

func TestSuccessor_inheritsNoKeysOrTokens(t *testing.T) {
	eachFormer(t, expectNoWayInLeft)
}

func expectNoWayInLeft(t *testing.T, w *catalogtest.World, scope catalog.Scope, _ *v1alpha1.User) {
	t.Helper()
	g := NewWithT(t)
	c, ctx := w.Catalog(), t.Context()
	_, err := triggertoken.ByValue(ctx, c, scope.Project, "value-of-left", time.Now())
	g.Expect(err).To(MatchError(catalog.ErrNotFound))
	g.Expect(triggertoken.ByValue(ctx, c, scope.Project, "value-of-new", time.Now())).To(HaveField("Name", "new"))
	_, err = protection.Resolve(ctx, c, scope, "a", ToDeployKey(ByName("left")), time.Now())
	g.Expect(err).To(MatchError(catalog.ErrNotFound))
	g.Expect(protection.Resolve(ctx, c, scope, "a", ToDeployKey(ByName("new")), time.Now())).To(HaveField("DeployKeyID", BeEquivalentTo(2)))
}

func TestBelongs_doesNotAllocate(t *testing.T) {
	web := Project("a", "web", ByName("acme"))
	key := Owned(Owned(DeployKey("a", "k", 1, ByName("web")), "Project", "web", "1"), "Bundle", "x", "2")
	if n := testing.AllocsPerRun(100, func() { catalog.Belongs(key, web) }); n != 0 {
		t.Errorf("it allocates %v times", n)
	}
}
