package catalog_test

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/catalog/catalogtest"
)

func TestLabels(t *testing.T) {
	tests := []struct {
		name    string
		objects []*v1alpha1.Label // the oldest first; their ids are their places from 1 on, unless they have one
		want    []string          // in force for a/web, the nearest first
	}{
		{"its own, however it is named", []*v1alpha1.Label{
			labelled("a", "l1", "bug", byName("web")), labelled("a", "l2", "docs", byPath("ACME/sub/web")), labelled("a", "l3", "Bug", byID(100)),
		}, []string{"l1", "l3", "l2"}},
		{"those of its groups", []*v1alpha1.Label{
			labelledBelow("a", "l1", "one", byName("acme")), labelledBelow("a", "l2", "two", byPath("acme/sub")), labelled("a", "l3", "three", byName("web")),
		}, []string{"l3", "l2", "l1"}},
		{"not those of others", []*v1alpha1.Label{
			labelled("a", "l1", "bug", byName("other")), labelledBelow("a", "l2", "bug", byName("beside")),
		}, nil},
		{"not those of another namespace", []*v1alpha1.Label{
			labelled("b", "l1", "a", byName("web")), labelled("b", "l2", "b", byPath("acme/sub/web")), labelled("b", "l3", "c", byID(100)),
			labelledBelow("b", "l4", "d", byPath("acme")), labelledBelow("b", "l5", "e", byID(11)),
		}, nil},
		{"the older of two", []*v1alpha1.Label{
			labelled("a", "l1", "bug", byID(100)), labelled("a", "l2", "bug", byName("web")),
		}, []string{"l1"}},
		{"the older one of a group above", []*v1alpha1.Label{
			labelledBelow("a", "l1", "bug", byName("acme")), labelledBelow("a", "l2", "bug", byName("sub")), labelled("a", "l3", "bug", byName("web")),
		}, []string{"l1"}},
		{"the younger ones of groups above as well", []*v1alpha1.Label{
			labelled("a", "l1", "bug", byName("web")), labelledBelow("a", "l2", "bug", byName("sub")), labelledBelow("a", "l3", "bug", byName("acme")),
		}, []string{"l1", "l2", "l3"}},
		{"the older one of another namespace hides none", []*v1alpha1.Label{
			labelled("b", "l1", "bug", byPath("acme/sub/web")), labelled("a", "l2", "bug", byName("web")),
		}, []string{"l2"}},
		{"not one whose id another one holds, nor one without", []*v1alpha1.Label{
			labelID(labelled("b", "l1", "x", byName("web")), 7), labelID(labelled("a", "l2", "bug", byName("web")), 7), labelID(labelled("a", "l3", "docs", byName("web")), -1),
		}, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			w, web := tenantWorld(t)
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
			found, err := c.Labels(t.Context(), scope)
			g.Expect(err).NotTo(HaveOccurred())
			var names []string
			for _, l := range found {
				names = append(names, l.Name)
				// What a label is of, and who holds its title there, is the same when it is asked for alone.
				of, err := c.LabelScope(t.Context(), l.Label)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(of.Path()).To(Equal(l.Of.Path()))
				holder, err := c.LabelHolder(t.Context(), of, l.Spec.Title)
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
			scope, err := c.LabelScope(t.Context(), l)
			if err != nil {
				t.Fatal(err)
			}
			return scope
		}
	}
	t.Fatalf("there is no %s", name)
	return catalog.Scope{}
}

func TestLabelsOfATitleInTheProjectsOfAGroup(t *testing.T) {
	g := NewWithT(t)
	w, _ := tenantWorld(t)
	sub := group("a", "sub", pinned(11), below(byName("acme")))
	w.Put(project("a", "up", byName("acme"), known(102)),
		labelled("a", "l1", "bug", byName("web")), labelled("a", "l2", "bug", byPath("acme/sub/other")), labelled("a", "l3", "bug", byID(100)),
		labelled("a", "l4", "Bug", byName("web")), labelled("a", "l5", "bug", byName("up")), labelledBelow("a", "l6", "bug", byName("sub")),
		labelled("b", "l7", "bug", byName("web")), labelled("a", "l8", "bug", byName("nowhere")),
	)
	c := w.Catalog()
	g.Expect(w.Reader().Get(t.Context(), client.ObjectKeyFromObject(sub), sub)).To(Succeed())
	found, err := c.ProjectLabels(t.Context(), sub, "bug")
	g.Expect(err).NotTo(HaveOccurred())
	of := map[string]string{}
	for _, l := range found {
		of[l.Name] = l.Project.Name
	}
	g.Expect(of).To(Equal(map[string]string{"l1": "web", "l2": "other", "l3": "web"}))
}

func TestALabelWakesUpThoseOfItsTitleThereAndBelow(t *testing.T) {
	g := NewWithT(t)
	w, _ := tenantWorld(t)
	shown := func(l *v1alpha1.Label, path string) *v1alpha1.Label {
		l.Status.TargetPath = path
		return l
	}
	above := labelledBelow("a", "above", "bug", byName("acme"))
	w.Put(above, shown(labelled("a", "web", "bug", byName("web")), "acme/sub/web"), shown(labelledBelow("a", "sub", "bug", byName("sub")), "ACME/Sub"),
		shown(labelled("b", "elsewhere", "bug", byName("web")), "bolt/web"), shown(labelled("b", "begins-alike", "bug", byName("web")), "acmes/web"),
		shown(labelled("a", "docs", "docs", byName("web")), "acme/sub/web"), labelled("a", "new", "bug", byName("web")))
	c := w.Catalog()
	woken := func(l *v1alpha1.Label) (names []string) {
		for _, r := range c.LabelRivals(t.Context(), l) {
			names = append(names, r.Name)
		}
		return names
	}
	g.Expect(woken(above)).To(ConsistOf("web", "sub"))
	g.Expect(woken(shown(labelledBelow("a", "gone", "bug", byName("gone")), "acme/sub"))).To(ConsistOf("web", "sub"), "as its status shows")
	g.Expect(woken(labelled("a", "x", "bug", byName("web")))).To(ConsistOf("web"))
	g.Expect(woken(labelled("a", "x", "bug", byName("nowhere")))).To(BeEmpty())
}

func TestStanding(t *testing.T) {
	g := NewWithT(t)
	p := project("a", "web", byName("acme"))
	seen := map[string]bool{}
	changed := func(what string) {
		t.Helper()
		g.Expect(seen).NotTo(HaveKey(catalog.Standing(p)), what)
		seen[catalog.Standing(p)] = true
	}
	changed("new")
	p.Status.FullPath = "acme/web"
	changed("in place")
	p.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonReady}}
	changed("ready")
	p.Status.FullPath, p.Status.Conditions[0].Reason = "", v1alpha1.ReasonAlreadyExists
	changed("its path is another one's")
	p.Status.Conditions[0].Message = "full path acme/web is held by Group web"
	changed("which is told")
	before := catalog.Standing(p)
	p.Status.HeadCommit, p.Status.SizeBytes = "0123", 7
	g.Expect(catalog.Standing(p)).To(Equal(before), "a push")
	g.Expect(catalog.Standing(&v1alpha1.Group{Status: v1alpha1.GroupStatus{FullPath: "acme"}})).To(Equal("acme"))
	g.Expect(catalog.Standing(user("max", 1))).To(BeEmpty())
}

func BenchmarkLabels(b *testing.B) {
	web := project("a", "web", byName("sub"), known(100))
	w := catalogtest.New(b, group("a", "acme", pinned(10)), group("a", "sub", pinned(11), below(byName("acme"))), web)
	for i := range 200 {
		l := labelID(labelled("a", fmt.Sprintf("l%d", i), fmt.Sprintf("title %d", i), byName("web")), int64(i+1))
		l.Status.ID = l.Spec.ID
		w.Put(l)
	}
	c := w.Catalog()
	scope, err := c.ProjectScope(b.Context(), web)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if all, err := c.Labels(b.Context(), scope); err != nil || len(all) != 200 {
			b.Fatal(len(all), err)
		}
	}
}

func TestTheProjectsBelowAGroupAreThoseThatHaveAPlaceThere(t *testing.T) {
	g := NewWithT(t)
	acme := group("a", "acme", pinned(10))
	c := catalogtest.New(t, acme, group("a", "sub", below(byName("acme"))), group("b", "bolt"),
		group("b", "guest", below(byPath("acme"))), // whom acme does not admit
		project("a", "web", byName("acme")), project("a", "api", byID(10)), project("a", "deep", byPath("acme/sub")),
		project("b", "app", byName("bolt")), project("b", "intruder", byPath("acme")), project("b", "lost", byName("guest")),
	).Catalog()
	found, err := c.ProjectsBelow(t.Context(), acme)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found).To(ConsistOf(HaveField("Name", "web"), HaveField("Name", "api"), HaveField("Name", "deep")))
}
