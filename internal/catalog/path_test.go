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
	. "github.com/forgeplane/forgeplane/internal/catalog/catalogtest/objects"
)

func TestByPath(t *testing.T) {
	type objects = []client.Object
	tests := []struct {
		name    string
		objects objects // oldest first
		rules   []catalog.RootGroupRule
		path    string
		want    string // the holder of the path; empty if there is none
	}{
		{"a root group", objects{Group("a", "acme")}, nil, "acme", "group a/acme"},
		{"by its path, not by its name", objects{Group("a", "x", At("acme"))}, nil, "acme", "group a/x"},
		{"in another case", objects{Group("a", "acme", At("Acme")), Project("a", "web", ByPath("aCME"))}, nil, "ACME/Web", "project a/web"},
		{"below a parent by name", objects{Group("a", "acme"), Group("a", "sub", Below(ByName("acme")))}, nil, "acme/sub", "group a/sub"},
		{"below a parent by path", objects{Group("a", "acme"), Group("a", "sub", Below(ByPath("acme")))}, nil, "acme/sub", "group a/sub"},
		{"below a parent by id", objects{Group("a", "acme", Pinned(7)), Group("a", "sub", Below(ByID(7)))}, nil, "acme/sub", "group a/sub"},
		{"below a parent that came later", objects{Group("a", "sub", Below(ByPath("acme"))), Group("a", "acme")}, nil, "acme/sub", "group a/sub"},
		{"a project of a subgroup", objects{Group("a", "acme"), Group("a", "sub", Below(ByName("acme"))), Project("a", "web", ByPath("acme/sub"))}, nil, "acme/sub/web", "project a/web"},

		{"the older of two root groups", objects{Group("a", "acme"), Group("b", "acme")}, nil, "acme", "group a/acme"},
		{"the older of two root groups, in another case", objects{Group("b", "x", At("ACME")), Group("a", "acme")}, nil, "acme", "group b/x"},
		{"the older of two subgroups", objects{Group("a", "acme"), Group("a", "y", At("sub"), Below(ByName("acme"))), Group("a", "x", At("sub"), Below(ByPath("acme")))}, nil, "acme/sub", "group a/y"},
		{"a group that is older than a project", objects{Group("a", "acme"), Group("a", "web", Below(ByName("acme"))), Project("a", "web", ByName("acme"))}, nil, "acme/web", "group a/web"},
		{"a project that is older than a group", objects{Group("a", "acme"), Project("a", "web", ByName("acme")), Group("a", "web", Below(ByName("acme")))}, nil, "acme/web", "project a/web"},
		{"nothing below a group that lost its path to a project", objects{Group("a", "acme"), Project("a", "web", ByName("acme")), Group("a", "web", Below(ByName("acme"))), Project("a", "deep", ByName("web"))}, nil, "acme/web/deep", ""},
		{"nothing below a group that lost its path to a group", objects{Group("a", "acme"), Group("b", "acme"), Project("b", "web", ByName("acme"))}, nil, "acme/web", ""},

		{"nothing of another namespace", objects{Group("a", "acme"), Group("b", "sub", Below(ByPath("acme")))}, nil, "acme/sub", ""},
		{"nothing of another namespace, explicitly", objects{Group("a", "acme", AdmittingSame), Group("b", "sub", Below(ByPath("acme")))}, nil, "acme/sub", ""},
		{"another namespace, if all are admitted", objects{Group("a", "acme", AdmittingAll), Group("b", "sub", Below(ByPath("acme")))}, nil, "acme/sub", "group b/sub"},
		{"another namespace, with the label", objects{Namespace("b", "team", "x"), Group("a", "acme", Admitting("team", "x")), Group("b", "sub", Below(ByPath("acme")))}, nil, "acme/sub", "group b/sub"},
		{"nothing of a namespace with another label", objects{Namespace("b", "team", "y"), Group("a", "acme", Admitting("team", "x")), Group("b", "sub", Below(ByPath("acme")))}, nil, "acme/sub", ""},
		{"nothing of an unknown namespace", objects{Group("a", "acme", Admitting("team", "x")), Group("b", "sub", Below(ByPath("acme")))}, nil, "acme/sub", ""},
		{"no claim of an older group that is not admitted", objects{Group("b", "sub", Below(ByPath("acme"))), Group("a", "acme"), Group("a", "sub", Below(ByName("acme")))}, nil, "acme/sub", "group a/sub"},
		{"no project of another namespace, even if all are admitted", objects{Group("a", "acme", AdmittingAll), Project("b", "web", ByPath("acme"))}, nil, "acme/web", ""},

		{"an id means the oldest group that has it", objects{Group("a", "old", Pinned(7)), Group("b", "new", Pinned(7), AdmittingAll), Group("c", "sub", Below(ByID(7)))}, nil, "new/sub", ""},
		{"the oldest group with an id decides whom it admits", objects{Group("a", "old", Pinned(7), AdmittingAll), Group("b", "new", Pinned(7)), Group("c", "sub", Below(ByID(7)))}, nil, "old/sub", "group c/sub"},

		{"nothing below another group at the path of the parent", objects{Group("b", "acme", AdmittingAll), Group("a", "sub", Below(Meaning(ByPath("acme"), "former")))}, nil, "acme/sub", ""},
		{"nothing below another group with the name of the parent", objects{Group("a", "acme"), Group("a", "sub", Below(Meaning(ByName("acme"), "former")))}, nil, "acme/sub", ""},
		{"below the parent with the UID", objects{Group("b", "acme", AdmittingAll), Group("a", "sub", Below(Meaning(ByPath("acme"), "group b/acme")))}, nil, "acme/sub", "group a/sub"},
		{"no claim of an older group with another parent", objects{Group("a", "acme"), Group("a", "x", At("sub"), Below(Meaning(ByName("acme"), "former"))), Group("a", "y", At("sub"), Below(ByName("acme")))}, nil, "acme/sub", "group a/y"},
		{"no claim of an older project with another group", objects{Group("a", "acme"), Project("a", "x", Meaning(ByName("acme"), "former"), Placed("web")), Project("a", "y", ByName("acme"), Placed("web"))}, nil, "acme/web", "project a/y"},

		{"a namespace with a rule", objects{Group("a", "acme")}, []catalog.RootGroupRule{{Namespace: "a", Path: "ac*"}}, "acme", "group a/acme"},
		{"no older namespace without a rule", objects{Group("b", "acme"), Group("a", "acme")}, []catalog.RootGroupRule{{Namespace: "a", Path: "*"}}, "acme", "group a/acme"},
		{"no path without a rule", objects{Group("a", "other")}, []catalog.RootGroupRule{{Namespace: "a", Path: "acme"}}, "other", ""},
		{"subgroups need no rule", objects{Group("a", "acme"), Group("a", "sub", Below(ByName("acme")))}, []catalog.RootGroupRule{{Namespace: "a", Path: "acme"}}, "acme/sub", "group a/sub"},

		{"nothing for an empty path", objects{Group("a", "acme")}, nil, "", ""},
		{"nothing for a leading slash", objects{Group("a", "acme")}, nil, "/acme", ""},
		{"nothing for a trailing slash", objects{Group("a", "acme")}, nil, "acme/", ""},
		{"nothing for an empty segment", objects{Group("a", "acme"), Project("a", "web", ByName("acme"))}, nil, "acme//web", ""},
		{"nothing that looks like a key", objects{Group("a", "acme"), Group("a", "sub", Below(ByName("acme")))}, nil, "n:a/acme|sub", ""},
		{"nothing below a project", objects{Group("a", "acme"), Project("a", "web", ByName("acme"))}, nil, "acme/web/x", ""},
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
			g.Expect(Title(holder)).To(Equal(test.want))
			_, err = c.ProjectByPath(t.Context(), test.path)
			g.Expect(err == nil).To(Equal(strings.HasPrefix(test.want, "project")))
		})
	}
}

func TestReference_doesNotFollowPathToAnotherGroup(t *testing.T) {
	g := NewWithT(t)
	sub, deep := Group("a", "sub", Below(Meaning(ByPath("acme"), "former"))), Group("a", "deep", Below(ByPath("acme/sub")))
	web, mary := Project("a", "web", ByName("deep")), User("mary", 1)
	w := catalogtest.New(t, sub, deep, web, mary, Group("b", "acme", AdmittingAll),
		InGroup("b", "m", ByName("acme"), ByPath("mary"), v1alpha1.RoleOwner))
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
	g.Expect(c.View(mary, time.Now()).Projects(ctx)).To(BeEmpty())
	g.Expect(c.View(mary, time.Now()).Groups(ctx)).To(HaveExactElements(HaveField("Groups", HaveExactElements(HaveField("Namespace", "b")))))
}

func TestParent(t *testing.T) {
	acme, open := Group("a", "acme", Pinned(1)), Group("a", "open", Pinned(2))
	open.Status.Visibility = v1alpha1.VisibilityPublic
	tests := []struct {
		name string
		of   *v1alpha1.Group
		also []client.Object
		want string
		err  error
	}{
		{"a root group has no parent", Group("b", "root"), nil, "", nil},
		{"a root group without a rule", Group("c", "root"), nil, "", catalog.ErrRootNotAllowed},
		{"in the same namespace", Group("a", "sub", Below(ByName("acme"))), nil, "group a/acme", nil},
		{"a name in another namespace", Group("b", "sub", Below(ByName("acme"))), nil, "", catalog.ErrNotFound},
		{"public, of another namespace by path, not admitted", Group("b", "sub", Below(ByPath("open"))), nil, "", catalog.ErrParentNotAllowed},
		{"public, of another namespace by id, not admitted", Group("b", "sub", Below(ByID(2))), nil, "", catalog.ErrParentNotAllowed},
		{"private, of another namespace by path, not admitted", Group("b", "sub", Below(ByPath("acme"))), nil, "", catalog.ErrParentNotFound},
		{"private, of another namespace by id, not admitted", Group("b", "sub", Below(ByID(1))), nil, "", catalog.ErrParentNotFound},
		{"a project cannot be a parent", Group("a", "sub", Below(ByPath("acme/web"))), []client.Object{Project("a", "web", ByName("acme"))}, "", catalog.ErrNotFound},
		{"nothing", Group("a", "sub", Below(ByPath("nowhere"))), nil, "", catalog.ErrParentNotFound},
		{"no id", Group("a", "sub", Below(ByID(99))), nil, "", catalog.ErrParentNotFound},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			w := catalogtest.New(t, acme, open, test.of)
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
				g.Expect(Title(parent)).To(Equal(test.want))
			}
		})
	}
}

func TestAncestors_reportsCycles(t *testing.T) {
	tests := map[string][]client.Object{
		"of one group, by name":    {Group("a", "one", Below(ByName("one")))},
		"of one group, by id":      {Group("a", "one", Pinned(1), Below(ByID(1)))},
		"of three groups, by name": {Group("a", "one", Below(ByName("two"))), Group("a", "two", Below(ByName("three"))), Group("a", "three", Below(ByName("one")))},
		"above a group":            {Group("a", "one", Below(ByName("two"))), Group("a", "two", Below(ByName("two")))},
		"across namespaces": {
			Group("a", "one", Pinned(1), Below(ByID(2)), AdmittingAll), Group("b", "two", Pinned(2), Below(ByID(1)), AdmittingAll),
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

// nest returns groups, each below the previous one. ref creates the reference to a parent from its index and path.
func nest(depth int, ref func(i int, path string) v1alpha1.Reference) []*v1alpha1.Group {
	all := []*v1alpha1.Group{Group("a", "g0", Pinned(1))}
	path := "g0"
	for i := 1; i < depth; i++ {
		name := fmt.Sprintf("g%d", i)
		all = append(all, Group("a", name, Pinned(int64(i+1)), Below(ref(i-1, path))))
		path += "/" + name
	}
	return all
}

// references are the forms of a reference to a parent.
var references = map[string]func(i int, path string) v1alpha1.Reference{
	"names": func(i int, _ string) v1alpha1.Reference { return ByName(fmt.Sprintf("g%d", i)) },
	"paths": func(_ int, path string) v1alpha1.Reference { return ByPath(path) },
	"ids":   func(i int, _ string) v1alpha1.Reference { return ByID(int64(i + 1)) },
}

func TestAncestors_limitsNestingTo20Levels(t *testing.T) {
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
			w.Put(Project("a", "web", ByName(deepest.Name)))
			chain, err := c.Ancestors(t.Context(), deepest)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(chain).To(HaveLen(20))
			g.Expect(Title(chain[0])).To(Equal(Title(deepest)))
			g.Expect(Title(chain[19])).To(Equal("group a/g0"))
			holder, err := c.ByPath(t.Context(), catalog.FullPath(chain, "web"))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(Title(holder)).To(Equal("project a/web"))

			_, err = c.Ancestors(t.Context(), groups[20])
			g.Expect(err).To(MatchError(catalog.ErrCycle))
			_, err = c.ByPath(t.Context(), catalog.FullPath(chain, "g20", "web"))
			g.Expect(err).To(MatchError(catalog.ErrNotFound))
		})
	}
}

// counting counts lookups, each of which takes a few microseconds.
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

func TestGroupsOf_needsFewLookupsDespiteDeepNesting(t *testing.T) {
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
	p := Project("a", "web", ByName(groups[19].Name))
	w.Put(p)
	return w, p
}

func TestProjectByPath_needsFewLookupsDespiteManyRivals(t *testing.T) {
	g := NewWithT(t)
	w := catalogtest.New(t, Group("a", "acme"), Project("a", "web", ByName("acme")))
	for i := range 500 {
		w.Put(Group("b", fmt.Sprintf("squat-%d", i), At("acme")), Group("b", fmt.Sprintf("sub-%d", i), At("web"), Below(ByPath("acme"))))
	}
	reader := &counting{Reader: w.Reader()}
	holder, err := catalog.New(reader).ProjectByPath(t.Context(), "acme/web")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(Title(holder)).To(Equal("project a/web"))
	g.Expect(reader.n).To(BeNumerically("<=", 10), "each rival is looked at, and nothing is looked up for it")
}

func TestVisibility_isNarrowestOfAllLevels(t *testing.T) {
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
		{public, []v1alpha1.Visibility{"", public}, ""}, // an unknown visibility is as narrow as Private
	}
	for _, test := range tests {
		t.Run(fmt.Sprint(test.own, " below ", test.above), func(t *testing.T) {
			var chain []*v1alpha1.Group
			for _, v := range test.above {
				chain = append(chain, Group("a", "g", Visible(v)))
			}
			NewWithT(t).Expect(catalog.Visibility(test.own, chain)).To(Equal(test.want))
		})
	}
}

func TestMayHoldRootGroup_followsRules(t *testing.T) {
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
