package label_test

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/catalog/catalogtest"
	. "github.com/forgeplane/forgeplane/internal/catalog/catalogtest/objects"
	"github.com/forgeplane/forgeplane/internal/label"
)

func TestLabels(t *testing.T) {
	tests := []struct {
		name    string
		objects []*v1alpha1.Label // oldest first; the id of a label without one is its position, counted from 1
		want    []string          // in force for a/web, the nearest first
	}{
		{"its own, by any reference", []*v1alpha1.Label{
			Labelled("a", "l1", "bug", ByName("web")), Labelled("a", "l2", "docs", ByPath("ACME/sub/web")), Labelled("a", "l3", "Bug", ByID(100)),
		}, []string{"l1", "l3", "l2"}},
		{"labels of its groups", []*v1alpha1.Label{
			LabelledBelow("a", "l1", "one", ByName("acme")), LabelledBelow("a", "l2", "two", ByPath("acme/sub")), Labelled("a", "l3", "three", ByName("web")),
		}, []string{"l3", "l2", "l1"}},
		{"no labels of others", []*v1alpha1.Label{
			Labelled("a", "l1", "bug", ByName("other")), LabelledBelow("a", "l2", "bug", ByName("beside")),
		}, nil},
		{"no labels of another namespace", []*v1alpha1.Label{
			Labelled("b", "l1", "a", ByName("web")), Labelled("b", "l2", "b", ByPath("acme/sub/web")), Labelled("b", "l3", "c", ByID(100)),
			LabelledBelow("b", "l4", "d", ByPath("acme")), LabelledBelow("b", "l5", "e", ByID(11)),
		}, nil},
		{"the older of two", []*v1alpha1.Label{
			Labelled("a", "l1", "bug", ByID(100)), Labelled("a", "l2", "bug", ByName("web")),
		}, []string{"l1"}},
		{"the older one, of a group above", []*v1alpha1.Label{
			LabelledBelow("a", "l1", "bug", ByName("acme")), LabelledBelow("a", "l2", "bug", ByName("sub")), Labelled("a", "l3", "bug", ByName("web")),
		}, []string{"l1"}},
		{"younger ones of groups above as well", []*v1alpha1.Label{
			Labelled("a", "l1", "bug", ByName("web")), LabelledBelow("a", "l2", "bug", ByName("sub")), LabelledBelow("a", "l3", "bug", ByName("acme")),
		}, []string{"l1", "l2", "l3"}},
		{"an older one of another namespace does not count", []*v1alpha1.Label{
			Labelled("b", "l1", "bug", ByPath("acme/sub/web")), Labelled("a", "l2", "bug", ByName("web")),
		}, []string{"l2"}},
		{"no label without an id, or whose id another label holds", []*v1alpha1.Label{
			LabelID(Labelled("b", "l1", "x", ByName("web")), 7), LabelID(Labelled("a", "l2", "bug", ByName("web")), 7), LabelID(Labelled("a", "l3", "docs", ByName("web")), -1),
		}, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			w, web := TenantWorld(t)
			for i, l := range test.objects {
				switch l.Spec.ID {
				case 0:
					l.Spec.ID = int64(i + 1)
				case -1:
					l.Spec.ID = 0
				}
				w.Put(l)
			}
			c := w.Catalog()
			scope, err := c.ProjectScope(t.Context(), web)
			g.Expect(err).NotTo(HaveOccurred())
			found, err := label.All(t.Context(), c, scope)
			g.Expect(err).NotTo(HaveOccurred())
			var names []string
			for _, l := range found {
				names = append(names, l.Name)
				// Looking up each label separately gives the same scope and the same holder of its title.
				of, err := c.ScopeOf(t.Context(), l.Label)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(of.Path()).To(Equal(l.Of.Path()))
				holder, err := label.Holder(t.Context(), c, of, l.Spec.Title)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(holder.Name).To(Equal(l.Name))
			}
			g.Expect(names).To(ConsistOf(test.want))
			if len(test.want) > 0 {
				g.Expect(found[0].Of.Path()).To(HaveLen(len(scopeOf(t, c, test.objects, test.want[0]).Path())), "the nearest comes first")
			}
		})
	}
}

func scopeOf(t *testing.T, c *catalog.Catalog, all []*v1alpha1.Label, name string) catalog.Scope {
	t.Helper()
	for _, l := range all {
		if l.Name == name {
			scope, err := c.ScopeOf(t.Context(), l)
			if err != nil {
				t.Fatal(err)
			}
			return scope
		}
	}
	t.Fatalf("there is no %s", name)
	return catalog.Scope{}
}

func TestInProjects_findsLabelsByTitle(t *testing.T) {
	g := NewWithT(t)
	w, _ := TenantWorld(t)
	sub := Group("a", "sub", Pinned(11), Below(ByName("acme")))
	w.Put(Project("a", "up", ByName("acme"), Known(102)),
		Labelled("a", "l1", "bug", ByName("web")), Labelled("a", "l2", "bug", ByPath("acme/sub/other")), Labelled("a", "l3", "bug", ByID(100)),
		Labelled("a", "l4", "Bug", ByName("web")), Labelled("a", "l5", "bug", ByName("up")), LabelledBelow("a", "l6", "bug", ByName("sub")),
		Labelled("b", "l7", "bug", ByName("web")), Labelled("a", "l8", "bug", ByName("nowhere")),
	)
	c := w.Catalog()
	g.Expect(w.Reader().Get(t.Context(), client.ObjectKeyFromObject(sub), sub)).To(Succeed())
	found, err := label.InProjects(t.Context(), c, sub, "bug")
	g.Expect(err).NotTo(HaveOccurred())
	of := map[string]string{}
	for _, l := range found {
		of[l.Name] = l.Project.Name
	}
	g.Expect(of).To(Equal(map[string]string{"l1": "web", "l2": "other", "l3": "web"}))
}

func TestRivals_findsLabelsWithSameTitleBelow(t *testing.T) {
	g := NewWithT(t)
	w, _ := TenantWorld(t)
	shown := func(l *v1alpha1.Label, path string) *v1alpha1.Label {
		l.Status.TargetPath = path
		return l
	}
	above := LabelledBelow("a", "above", "bug", ByName("acme"))
	w.Put(above, shown(Labelled("a", "web", "bug", ByName("web")), "acme/sub/web"), shown(LabelledBelow("a", "sub", "bug", ByName("sub")), "ACME/Sub"),
		shown(Labelled("b", "elsewhere", "bug", ByName("web")), "bolt/web"), shown(Labelled("b", "begins-alike", "bug", ByName("web")), "acmes/web"),
		shown(Labelled("a", "docs", "docs", ByName("web")), "acme/sub/web"), Labelled("a", "new", "bug", ByName("web")))
	c := w.Catalog()
	woken := func(l *v1alpha1.Label) (names []string) {
		for _, r := range label.Rivals(c)(t.Context(), l) {
			names = append(names, r.Name)
		}
		return names
	}
	g.Expect(woken(above)).To(ConsistOf("web", "sub"))
	g.Expect(woken(shown(LabelledBelow("a", "gone", "bug", ByName("gone")), "acme/sub"))).To(ConsistOf("web", "sub"), "as its status shows")
	g.Expect(woken(Labelled("a", "x", "bug", ByName("web")))).To(ConsistOf("web"))
	g.Expect(woken(Labelled("a", "x", "bug", ByName("nowhere")))).To(BeEmpty())
}

func BenchmarkLabels(b *testing.B) {
	web := Project("a", "web", ByName("sub"), Known(100))
	w := catalogtest.New(b, Group("a", "acme", Pinned(10)), Group("a", "sub", Pinned(11), Below(ByName("acme"))), web)
	for i := range 200 {
		l := LabelID(Labelled("a", fmt.Sprintf("l%d", i), fmt.Sprintf("title %d", i), ByName("web")), int64(i+1))
		l.Status.ID = l.Spec.ID
		w.Put(l)
	}
	c := w.Catalog()
	scope, err := c.ProjectScope(b.Context(), web)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if all, err := label.All(b.Context(), c, scope); err != nil || len(all) != 200 {
			b.Fatal(len(all), err)
		}
	}
}
