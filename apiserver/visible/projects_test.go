package visible_test

import (
	"cmp"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/visible"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/catalog/catalogtest"
	. "github.com/forgeplane/forgeplane/internal/catalog/catalogtest/objects"
)

var noon = time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC)

// every selects all projects except one, in the order of their names, and counts the searches.
type every struct {
	except   string
	searches *int
}

// Wants implements visible.Filter.
func (e every) Wants() func(catalog.Seen) bool {
	*e.searches++
	return func(s catalog.Seen) bool { return s.Project.Name != e.except }
}

// Compare implements visible.Filter.
func (every) Compare(a, b catalog.Seen) int { return cmp.Compare(a.Project.Name, b.Project.Name) }

// fixture has the projects that tests look for.
type fixture struct {
	*catalogtest.World
	acme, sub, shop *v1alpha1.Group
	web             *v1alpha1.Project
	mary            *v1alpha1.User
	projects        *visible.Projects
	clock           *clocktesting.FakePassiveClock
	searches        int
}

// newFixture returns the public projects web in acme, api in acme/sub, which is a fork of web, and till in shop, which is shared with acme for
// some time after noon. The project safe in acme is private, and mary is a member of it for some time after noon.
func newFixture(t *testing.T, shared, member time.Duration) *fixture {
	t.Helper()
	public := Visible(v1alpha1.VisibilityPublic)
	f := &fixture{
		acme: Group("a", "acme", public), sub: Group("a", "sub", public, Below(ByName("acme"))), shop: Group("a", "shop", public),
		web: Project("a", "web", ByName("acme"), Known(1), open), mary: User("mary", 1), clock: clocktesting.NewFakePassiveClock(noon),
	}
	forked := func(s *v1alpha1.ProjectSpec) {
		s.ForkOf = &v1alpha1.ForkOf{ProjectRef: Meaning(ByID(1), f.web.UID)}
	}
	lent := func(s *v1alpha1.ProjectSpec) {
		share := Sharing(ByName("acme"), v1alpha1.RoleGuest)
		share.ExpiresAt = &metav1.Time{Time: noon.Add(shared)}
		s.SharedWith = []v1alpha1.Share{share}
	}
	f.World = catalogtest.New(t, f.acme, f.sub, f.shop, f.mary, f.web, Project("a", "api", ByName("sub"), Known(2), open, forked),
		Project("a", "till", ByName("shop"), Known(3), open, lent), Project("a", "safe", ByName("acme"), Known(4)),
		Until(InProject("a", "mary", ByName("safe"), ByPath("mary"), v1alpha1.RoleGuest), noon.Add(member)))
	f.projects = visible.NewProjects(f.Catalog(), f.clock)
	return f
}

// open makes a project public.
func open(s *v1alpha1.ProjectSpec) { s.Visibility = v1alpha1.VisibilityPublic }

// find returns the names of the projects that a caller can see, except one.
func (f *fixture) find(t *testing.T, caller auth.Caller, in visible.In, except string) (names []string) {
	t.Helper()
	all, err := f.projects.Find(t.Context(), caller, in, every{except, &f.searches})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		names = append(names, s.Project.Name)
	}
	return names
}

func TestFind_limitsPlaceAndCaller(t *testing.T) {
	f := newFixture(t, time.Hour, time.Hour)
	mary, admin := auth.Caller{User: f.mary}, auth.Caller{User: User("root", 2), Admin: true}
	for _, tt := range []struct {
		name   string
		caller auth.Caller
		in     visible.In
		except string
		want   []string
	}{
		{name: "anywhere", want: []string{"api", "till", "web"}},
		{name: "anywhere for a member", caller: mary, want: []string{"api", "safe", "till", "web"}},
		{name: "anywhere for an administrator", caller: admin, want: []string{"api", "safe", "till", "web"}},
		{name: "selected by the filter", except: "web", want: []string{"api", "till"}},
		{name: "in a group", in: visible.In{Group: f.acme}, want: []string{"web"}},
		{name: "in a group and below", in: visible.In{Group: f.acme, Below: true}, want: []string{"api", "web"}},
		{name: "not above a group", in: visible.In{Group: f.sub, Below: true}, want: []string{"api"}},
		{name: "in a group and shared with it", in: visible.In{Group: f.acme, Shared: true}, want: []string{"till", "web"}},
		{name: "not shared with the group above", in: visible.In{Group: f.sub, Shared: true}, want: []string{"api"}},
		{name: "in, below and shared", in: visible.In{Group: f.acme, Below: true, Shared: true}, want: []string{"api", "till", "web"}},
		{name: "forks", in: visible.In{ForkOf: f.web}, want: []string{"api"}},
		{name: "forks in a group", in: visible.In{ForkOf: f.web, Group: f.acme}},
		{name: "in a group for a member", caller: mary, in: visible.In{Group: f.acme}, want: []string{"safe", "web"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			NewWithT(t).Expect(f.find(t, tt.caller, tt.in, tt.except)).To(Equal(tt.want))
		})
	}
}

func TestFind_remembersAnswerUntilObjectChanges(t *testing.T) {
	g, f := NewWithT(t), newFixture(t, time.Hour, time.Hour)
	in := visible.In{Group: f.acme}
	for range 2 {
		g.Expect(f.find(t, auth.Caller{}, in, "")).To(HaveExactElements("web"))
	}
	g.Expect(f.searches).To(Equal(1))
	f.Put(Project("a", "new", ByName("acme"), Known(5), open))
	g.Expect(f.find(t, auth.Caller{}, in, "")).To(HaveExactElements("new", "web"))
	g.Expect(f.searches).To(Equal(2))
}

func TestFind_forgetsAnswerWhenShareOrMembershipEnds(t *testing.T) {
	for _, tt := range []struct {
		name           string
		shared, member time.Duration
		between        []string
	}{
		{name: "share first", shared: time.Hour, member: 2 * time.Hour, between: []string{"safe", "web"}},
		{name: "membership first", shared: 2 * time.Hour, member: time.Hour, between: []string{"till", "web"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g, f := NewWithT(t), newFixture(t, tt.shared, tt.member)
			for _, at := range []struct {
				after time.Duration
				want  []string
			}{
				{0, []string{"safe", "till", "web"}},
				{time.Hour - time.Second, []string{"safe", "till", "web"}},
				{time.Hour, tt.between},
				{2 * time.Hour, []string{"web"}},
			} {
				f.clock.SetTime(noon.Add(at.after))
				g.Expect(f.find(t, auth.Caller{User: f.mary}, visible.In{Group: f.acme, Shared: true}, "")).To(Equal(at.want), "after %s", at.after)
			}
			g.Expect(f.searches).To(Equal(3), "times at which the answer was looked for")
		})
	}
}
