package labels

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/family"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/catalog/catalogtest"
	. "github.com/forgeplane/forgeplane/internal/catalog/catalogtest/objects"
)

func TestGroupLabels_followChangesBelow(t *testing.T) {
	g := NewWithT(t)
	acme, mary := Group("a", "acme", Pinned(10)), User("mary", 1)
	role := func(r v1alpha1.Role) *v1alpha1.Membership {
		return InGroup("a", "mary", ByName("sub"), ByPath("mary"), r)
	}
	private := func(s *v1alpha1.GroupSpec) { s.Visibility = v1alpha1.VisibilityPrivate }
	acme.Spec.Visibility = v1alpha1.VisibilityPublic
	w := catalogtest.New(t, acme, mary, Group("a", "sub", Pinned(11), Below(ByName("acme")), private), LabelID(LabelledBelow("a", "top", "top", ByName("acme")), 1))
	f := New(family.Kit{Catalog: w.Catalog(), Clock: clocktesting.NewFakePassiveClock(time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC))})
	seen := func(by auth.Caller) (titles []string) {
		t.Helper()
		s := auth.Subject{Caller: by, Scope: catalog.Scope{Groups: []*v1alpha1.Group{acme}}}
		all, err := f.reached(t.Context(), s, reach{Ancestors: true, Descendants: true, OnlyGroups: true})
		g.Expect(err).NotTo(HaveOccurred())
		for _, e := range all {
			titles = append(titles, e.Spec.Title)
		}
		return titles
	}
	by := auth.Caller{User: mary}
	g.Expect(seen(by)).To(HaveExactElements("top"))
	w.Put(LabelID(LabelledBelow("a", "below", "below", ByName("sub")), 2))
	g.Expect(seen(by)).To(HaveExactElements("top"), "the group below is private")
	member := role(v1alpha1.RoleGuest)
	w.Put(member)
	g.Expect(seen(by)).To(HaveExactElements("below", "top"))
	g.Expect(seen(auth.Caller{})).To(HaveExactElements("top"), "the answer is mary's")
	g.Expect(seen(auth.Caller{User: User("root", 2), Admin: true})).To(HaveExactElements("below", "top"))
	w.Remove(member)
	g.Expect(seen(by)).To(HaveExactElements("top"))
}

// BenchmarkGroupLabels finds the labels of a group with 50 subgroups that have 45 labels each, beside 500 other groups.
func BenchmarkGroupLabels(b *testing.B) {
	acme, mary := Group("a", "acme", Pinned(10)), User("mary", 1)
	objects := []client.Object{acme, mary, InGroup("a", "mary", ByName("acme"), ByPath("mary"), v1alpha1.RoleOwner)}
	id := int64(0)
	label := func(group string) {
		for i := range 45 {
			id++
			l := LabelID(LabelledBelow("a", fmt.Sprintf("%s-%d", group, i), fmt.Sprintf("title %s %d", group, i), ByName(group)), id)
			l.Status.ID = id
			objects = append(objects, l)
		}
	}
	label("acme")
	for n := range 50 {
		group := fmt.Sprintf("sub%d", n)
		objects = append(objects, Group("a", group, Pinned(int64(100+n)), Below(ByName("acme"))))
		label(group)
	}
	for n := range 500 {
		objects = append(objects, Group("b", fmt.Sprintf("other%d", n), Pinned(int64(1000+n))))
	}
	w := catalogtest.New(b, objects...)
	c := w.Catalog()
	f := New(family.Kit{Catalog: c, Clock: clocktesting.NewFakePassiveClock(time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC))})
	s := auth.Subject{Caller: auth.Caller{User: mary}, Scope: catalog.Scope{Groups: []*v1alpha1.Group{acme}}}
	find := func() {
		if all, err := f.reached(b.Context(), s, reach{Ancestors: true, Descendants: true, OnlyGroups: true}); err != nil || len(all) != 51*45 {
			b.Fatal(len(all), err)
		}
	}
	b.Run("first", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			w.Put(InGroup("a", "mary", ByName("acme"), ByPath("mary"), v1alpha1.RoleOwner)) // nothing can be remembered
			find()
		}
	})
	b.Run("again", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			find()
		}
	})
}
