package catalog_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/catalog/catalogtest"
)

func TestByPath(t *testing.T) {
	type objects = []client.Object
	tests := []struct {
		name    string
		objects objects // the oldest first
		rules   []catalog.RootGroupRule
		path    string
		want    string // what holds the path; empty for nothing
	}{
		{"a root group", objects{group("a", "acme")}, nil, "acme", "group a/acme"},
		{"by its path, not by its name", objects{group("a", "x", at("acme"))}, nil, "acme", "group a/x"},
		{"without regard to case", objects{group("a", "acme", at("Acme")), project("a", "web", byPath("aCME"))}, nil, "ACME/Web", "project a/web"},
		{"below a parent that is named", objects{group("a", "acme"), group("a", "sub", below(byName("acme")))}, nil, "acme/sub", "group a/sub"},
		{"below a path", objects{group("a", "acme"), group("a", "sub", below(byPath("acme")))}, nil, "acme/sub", "group a/sub"},
		{"below an id", objects{group("a", "acme", pinned(7)), group("a", "sub", below(byID(7)))}, nil, "acme/sub", "group a/sub"},
		{"below a parent that came later", objects{group("a", "sub", below(byPath("acme"))), group("a", "acme")}, nil, "acme/sub", "group a/sub"},
		{"a project of a subgroup", objects{group("a", "acme"), group("a", "sub", below(byName("acme"))), project("a", "web", byPath("acme/sub"))}, nil, "acme/sub/web", "project a/web"},

		{"the older of two root groups", objects{group("a", "acme"), group("b", "acme")}, nil, "acme", "group a/acme"},
		{"the older of two root groups, case aside", objects{group("b", "x", at("ACME")), group("a", "acme")}, nil, "acme", "group b/x"},
		{"the older of two subgroups", objects{group("a", "acme"), group("a", "y", at("sub"), below(byName("acme"))), group("a", "x", at("sub"), below(byPath("acme")))}, nil, "acme/sub", "group a/y"},
		{"a group that is older than a project", objects{group("a", "acme"), group("a", "web", below(byName("acme"))), project("a", "web", byName("acme"))}, nil, "acme/web", "group a/web"},
		{"a project that is older than a group", objects{group("a", "acme"), project("a", "web", byName("acme")), group("a", "web", below(byName("acme")))}, nil, "acme/web", "project a/web"},
		{"nothing below a group that lost its path to a project", objects{group("a", "acme"), project("a", "web", byName("acme")), group("a", "web", below(byName("acme"))), project("a", "deep", byName("web"))}, nil, "acme/web/deep", ""},
		{"nothing below a group that lost its path to a group", objects{group("a", "acme"), group("b", "acme"), project("b", "web", byName("acme"))}, nil, "acme/web", ""},

		{"nothing of another namespace", objects{group("a", "acme"), group("b", "sub", below(byPath("acme")))}, nil, "acme/sub", ""},
		{"nothing of another namespace, explicitly", objects{group("a", "acme", admittingSame), group("b", "sub", below(byPath("acme")))}, nil, "acme/sub", ""},
		{"another namespace when all are admitted", objects{group("a", "acme", admittingAll), group("b", "sub", below(byPath("acme")))}, nil, "acme/sub", "group b/sub"},
		{"another namespace with the label", objects{namespace("b", "team", "x"), group("a", "acme", admitting("team", "x")), group("b", "sub", below(byPath("acme")))}, nil, "acme/sub", "group b/sub"},
		{"nothing of a namespace with another label", objects{namespace("b", "team", "y"), group("a", "acme", admitting("team", "x")), group("b", "sub", below(byPath("acme")))}, nil, "acme/sub", ""},
		{"nothing of a namespace that is not known", objects{group("a", "acme", admitting("team", "x")), group("b", "sub", below(byPath("acme")))}, nil, "acme/sub", ""},
		{"no claim of one that is not admitted, though older", objects{group("b", "sub", below(byPath("acme"))), group("a", "acme"), group("a", "sub", below(byName("acme")))}, nil, "acme/sub", "group a/sub"},
		{"no project of another namespace, though all are admitted", objects{group("a", "acme", admittingAll), project("b", "web", byPath("acme"))}, nil, "acme/web", ""},

		{"an id that an older group has is not this one's", objects{group("a", "old", pinned(7)), group("b", "new", pinned(7), admittingAll), group("c", "sub", below(byID(7)))}, nil, "new/sub", ""},
		{"an older id in another namespace admits or not", objects{group("a", "old", pinned(7), admittingAll), group("b", "new", pinned(7)), group("c", "sub", below(byID(7)))}, nil, "old/sub", "group c/sub"},

		{"nothing below one that has the path of the one that is meant", objects{group("b", "acme", admittingAll), group("a", "sub", below(meaning(byPath("acme"), "former")))}, nil, "acme/sub", ""},
		{"nothing below one of the namespace that has the name of the one that is meant", objects{group("a", "acme"), group("a", "sub", below(meaning(byName("acme"), "former")))}, nil, "acme/sub", ""},
		{"below the one that is meant", objects{group("b", "acme", admittingAll), group("a", "sub", below(meaning(byPath("acme"), "group b/acme")))}, nil, "acme/sub", "group a/sub"},
		{"no claim of one that means another parent, though older", objects{group("a", "acme"), group("a", "x", at("sub"), below(meaning(byName("acme"), "former"))), group("a", "y", at("sub"), below(byName("acme")))}, nil, "acme/sub", "group a/y"},
		{"no claim of a project that means another group, though older", objects{group("a", "acme"), project("a", "x", meaning(byName("acme"), "former"), placed("web")), project("a", "y", byName("acme"), placed("web"))}, nil, "acme/web", "project a/y"},

		{"a namespace that may hold the root", objects{group("a", "acme")}, []catalog.RootGroupRule{{Namespace: "a", Path: "ac*"}}, "acme", "group a/acme"},
		{"no namespace without a rule, though older", objects{group("b", "acme"), group("a", "acme")}, []catalog.RootGroupRule{{Namespace: "a", Path: "*"}}, "acme", "group a/acme"},
		{"no path without a rule", objects{group("a", "other")}, []catalog.RootGroupRule{{Namespace: "a", Path: "acme"}}, "other", ""},
		{"subgroups need no rule", objects{group("a", "acme"), group("a", "sub", below(byName("acme")))}, []catalog.RootGroupRule{{Namespace: "a", Path: "acme"}}, "acme/sub", "group a/sub"},

		{"nothing for an empty path", objects{group("a", "acme")}, nil, "", ""},
		{"nothing for a slash in front", objects{group("a", "acme")}, nil, "/acme", ""},
		{"nothing for a slash behind", objects{group("a", "acme")}, nil, "acme/", ""},
		{"nothing for an empty segment", objects{group("a", "acme"), project("a", "web", byName("acme"))}, nil, "acme//web", ""},
		{"nothing that looks like a key", objects{group("a", "acme"), group("a", "sub", below(byName("acme")))}, nil, "n:a/acme|sub", ""},
		{"nothing below a project", objects{group("a", "acme"), project("a", "web", byName("acme"))}, nil, "acme/web/x", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			c := catalogtest.New(t, test.objects...).Catalog(test.rules...)
			holder, err := c.ByPath(t.Context(), test.path)
			if test.want == "" {
				g.Expect(err).To(MatchError(catalog.ErrNotFound))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(title(holder)).To(Equal(test.want))
			_, err = c.ProjectByPath(t.Context(), test.path)
			g.Expect(err == nil).To(Equal(strings.HasPrefix(test.want, "project")))
		})
	}
}

func TestWhoeverTakesThePathOfAGroupGetsNothingThatMeansTheFormer(t *testing.T) {
	g := NewWithT(t)
	sub, deep := group("a", "sub", below(meaning(byPath("acme"), "former"))), group("a", "deep", below(byPath("acme/sub")))
	web, mary := project("a", "web", byName("deep")), user("mary", 1)
	w := catalogtest.New(t, sub, deep, web, mary, group("b", "acme", admittingAll),
		inGroup("b", "m", byName("acme"), byPath("mary"), v1alpha1.RoleOwner))
	c, ctx := w.Catalog(), t.Context()
	for _, below := range []*v1alpha1.Group{sub, deep} {
		_, err := c.Ancestors(ctx, below)
		g.Expect(err).To(MatchError(catalog.ErrNotFound), below.Name)
	}
	_, err := c.ProjectRole(ctx, mary, web, time.Now())
	g.Expect(err).To(MatchError(catalog.ErrNotFound))
	for _, path := range []string{"acme/sub", "acme/sub/deep", "acme/sub/deep/web"} {
		_, err := c.ByPath(ctx, path)
		g.Expect(err).To(MatchError(catalog.ErrNotFound), path)
	}
	g.Expect(c.Tree(mary, time.Now()).Projects(ctx)).To(BeEmpty())
	g.Expect(c.Tree(mary, time.Now()).Groups(ctx)).To(HaveExactElements(HaveField("Groups", HaveExactElements(HaveField("Namespace", "b")))))
}

func TestParent(t *testing.T) {
	acme := group("a", "acme", pinned(1))
	tests := []struct {
		name string
		of   *v1alpha1.Group
		also []client.Object
		want string
		err  error
	}{
		{"none of a root group", group("b", "root"), nil, "", nil},
		{"none of a root group where there is no rule for it", group("c", "root"), nil, "", catalog.ErrRootNotAllowed},
		{"in the same namespace", group("a", "sub", below(byName("acme"))), nil, "group a/acme", nil},
		{"a name is of the same namespace only", group("b", "sub", below(byName("acme"))), nil, "", catalog.ErrNotFound},
		{"of another namespace by path, not admitted", group("b", "sub", below(byPath("acme"))), nil, "", catalog.ErrParentNotAllowed},
		{"of another namespace by id, not admitted", group("b", "sub", below(byID(1))), nil, "", catalog.ErrParentNotAllowed},
		{"a project is no parent", group("a", "sub", below(byPath("acme/web"))), []client.Object{project("a", "web", byName("acme"))}, "", catalog.ErrNotFound},
		{"nothing", group("a", "sub", below(byPath("nowhere"))), nil, "", catalog.ErrNotFound},
		{"no id", group("a", "sub", below(byID(99))), nil, "", catalog.ErrNotFound},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			w := catalogtest.New(t, acme, test.of)
			w.Put(test.also...)
			c := w.Catalog(catalog.RootGroupRule{Namespace: "a", Path: "*"}, catalog.RootGroupRule{Namespace: "b", Path: "*"})
			parent, err := c.Parent(t.Context(), test.of)
			if test.err != nil {
				g.Expect(err).To(MatchError(test.err))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			if test.want == "" {
				g.Expect(parent).To(BeNil())
			} else {
				g.Expect(title(parent)).To(Equal(test.want))
			}
		})
	}
}

func TestACycleIsFound(t *testing.T) {
	tests := map[string][]client.Object{
		"of one by name":   {group("a", "one", below(byName("one")))},
		"of one by id":     {group("a", "one", pinned(1), below(byID(1)))},
		"of three by name": {group("a", "one", below(byName("two"))), group("a", "two", below(byName("three"))), group("a", "three", below(byName("one")))},
		"above a group":    {group("a", "one", below(byName("two"))), group("a", "two", below(byName("two")))},
		"across namespaces": {
			group("a", "one", pinned(1), below(byID(2)), admittingAll), group("b", "two", pinned(2), below(byID(1)), admittingAll),
		},
	}
	for name, objects := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			c := catalogtest.New(t, objects...).Catalog()
			_, err := c.Ancestors(t.Context(), objects[0].(*v1alpha1.Group))
			g.Expect(err).To(MatchError(catalog.ErrCycle))
			_, err = c.ByPath(t.Context(), "one")
			g.Expect(err).To(MatchError(catalog.ErrNotFound))
		})
	}
}

// nest returns groups, each below the one before, whose references are made by ref from the index and path of the parent.
func nest(depth int, ref func(i int, path string) v1alpha1.Reference) []*v1alpha1.Group {
	all := []*v1alpha1.Group{group("a", "g0", pinned(1))}
	path := "g0"
	for i := 1; i < depth; i++ {
		name := fmt.Sprintf("g%d", i)
		all = append(all, group("a", name, pinned(int64(i+1)), below(ref(i-1, path))))
		path += "/" + name
	}
	return all
}

// references are the ways to name a parent.
var references = map[string]func(i int, path string) v1alpha1.Reference{
	"names": func(i int, _ string) v1alpha1.Reference { return byName(fmt.Sprintf("g%d", i)) },
	"paths": func(_ int, path string) v1alpha1.Reference { return byPath(path) },
	"ids":   func(i int, _ string) v1alpha1.Reference { return byID(int64(i + 1)) },
}

func TestTwentyLevelsAreTheLimit(t *testing.T) {
	for how, ref := range references {
		t.Run("by "+how, func(t *testing.T) {
			g := NewWithT(t)
			w := catalogtest.New(t)
			groups := nest(21, ref)
			for _, one := range groups {
				w.Put(one)
			}
			c := w.Catalog()
			deepest := groups[19]
			w.Put(project("a", "web", byName(deepest.Name)))
			chain, err := c.Ancestors(t.Context(), deepest)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(chain).To(HaveLen(20))
			g.Expect(title(chain[0])).To(Equal(title(deepest)))
			g.Expect(title(chain[19])).To(Equal("group a/g0"))
			holder, err := c.ByPath(t.Context(), catalog.FullPath(chain, "web"))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(title(holder)).To(Equal("project a/web"))

			_, err = c.Ancestors(t.Context(), groups[20])
			g.Expect(err).To(MatchError(catalog.ErrCycle))
			_, err = c.ByPath(t.Context(), catalog.FullPath(chain, "g20", "web"))
			g.Expect(err).To(MatchError(catalog.ErrNotFound))
		})
	}
}

// counting counts look-ups, each of which takes some microseconds.
type counting struct {
	client.Reader
	n int
}

func (c *counting) List(ctx context.Context, l client.ObjectList, opts ...client.ListOption) error {
	c.n++
	return c.Reader.List(ctx, l, opts...)
}

func (c *counting) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	c.n++
	return c.Reader.Get(ctx, key, o, opts...)
}

func TestDeepNestingIsNoWayToMakeLookupsSlow(t *testing.T) {
	for how, limit := range map[string]int{"names": 25, "ids": 25, "paths": 150} {
		t.Run("by "+how, func(t *testing.T) {
			g := NewWithT(t)
			w, p := nested(t, references[how])
			reader := &counting{Reader: w.Reader()}
			_, err := catalog.New(reader).GroupsOf(t.Context(), p)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(reader.n).To(BeNumerically("<=", limit))
		})
	}
}

// nested returns a world with a project below 20 levels of groups.
func nested(t testing.TB, ref func(i int, path string) v1alpha1.Reference) (*catalogtest.World, *v1alpha1.Project) {
	t.Helper()
	w := catalogtest.New(t)
	groups := nest(20, ref)
	for _, one := range groups {
		w.Put(one)
	}
	p := project("a", "web", byName(groups[19].Name))
	w.Put(p)
	return w, p
}

func TestManyRivalsAreNoWayToMakeLookupsSlow(t *testing.T) {
	g := NewWithT(t)
	w := catalogtest.New(t, group("a", "acme"), project("a", "web", byName("acme")))
	for i := range 500 {
		w.Put(group("b", fmt.Sprintf("squat-%d", i), at("acme")), group("b", fmt.Sprintf("sub-%d", i), at("web"), below(byPath("acme"))))
	}
	reader := &counting{Reader: w.Reader()}
	holder, err := catalog.New(reader).ProjectByPath(t.Context(), "acme/web")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(title(holder)).To(Equal("project a/web"))
	g.Expect(reader.n).To(BeNumerically("<=", 10), "each rival is looked at, and nothing is looked up for it")
}

func TestVisibilityIsTheNarrowest(t *testing.T) {
	const private, internal, public = v1alpha1.VisibilityPrivate, v1alpha1.VisibilityInternal, v1alpha1.VisibilityPublic
	tests := []struct {
		own   v1alpha1.Visibility
		above []v1alpha1.Visibility
		want  v1alpha1.Visibility
	}{
		{public, nil, public},
		{public, []v1alpha1.Visibility{public, public}, public},
		{public, []v1alpha1.Visibility{public, private}, private},
		{public, []v1alpha1.Visibility{internal, public}, internal},
		{private, []v1alpha1.Visibility{public}, private},
		{internal, []v1alpha1.Visibility{internal}, internal},
		{public, []v1alpha1.Visibility{"", public}, ""}, // an unknown one is as narrow as Private
	}
	for _, test := range tests {
		t.Run(fmt.Sprint(test.own, " below ", test.above), func(t *testing.T) {
			var chain []*v1alpha1.Group
			for _, v := range test.above {
				chain = append(chain, group("a", "g", visible(v)))
			}
			NewWithT(t).Expect(catalog.Visibility(test.own, chain)).To(Equal(test.want))
		})
	}
}

func TestMayHoldRootGroup(t *testing.T) {
	rules := []catalog.RootGroupRule{{Namespace: "a", Path: "a"}, {Namespace: "b", Path: "b-*"}, {Namespace: "b", Path: "["}}
	tests := []struct {
		namespace, path string
		rules           []catalog.RootGroupRule
		want            bool
	}{
		{"x", "anything", nil, true},
		{"a", "a", rules, true},
		{"a", "b-1", rules, false},
		{"b", "b-1", rules, true},
		{"b", "[", rules, false},
		{"x", "a", rules, false},
	}
	for _, test := range tests {
		t.Run(test.namespace+"="+test.path, func(t *testing.T) {
			c := catalogtest.New(t).Catalog(test.rules...)
			NewWithT(t).Expect(c.MayHoldRootGroup(test.namespace, test.path)).To(Equal(test.want))
		})
	}
}
