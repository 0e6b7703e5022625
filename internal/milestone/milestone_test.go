package milestone_test

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/database/databasetest"
	"github.com/forgeplane/forgeplane/internal/iid"
	"github.com/forgeplane/forgeplane/internal/milestone"
)

var noon = time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC)

var (
	web  = database.Subject{Kind: database.KindProject, ID: 20, UID: "web"}
	acme = database.Subject{Kind: database.KindGroup, ID: 10, UID: "acme"}
)

func onEachEngine(t *testing.T, test func(t *testing.T, g *WithT, s *milestone.Store, c *clocktesting.FakePassiveClock)) {
	t.Helper()
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		c := clocktesting.NewFakePassiveClock(noon)
		test(t, NewWithT(t), milestone.New(databasetest.Open(t, name, iid.Migrations(), milestone.Migrations()), c), c)
	})
}

// stored returns a milestone of a project or group with times in UTC.
func stored(t *testing.T, s *milestone.Store, in types.UID, id int64) milestone.Milestone {
	t.Helper()
	m, err := s.Get(t.Context(), in, id)
	if err != nil {
		t.Fatal(err)
	}
	m.Created, m.Updated = m.Created.UTC(), m.Updated.UTC()
	return m
}

// add creates a milestone.
func add(t *testing.T, s *milestone.Store, m milestone.Milestone) milestone.Milestone {
	t.Helper()
	if m.State == "" {
		m.State = milestone.Active
	}
	if err := s.Create(t.Context(), &m); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestStore_createsReadsChangesAndDeletes(t *testing.T) {
	onEachEngine(t, func(t *testing.T, g *WithT, s *milestone.Store, c *clocktesting.FakePassiveClock) {
		made := add(t, s, milestone.Milestone{In: web, Title: "1.0", Description: "First", Start: "2026-01-01", Due: "2026-02-01"})
		g.Expect(made).To(And(HaveField("ID", BeNumerically(">", 0)), HaveField("IID", BeEquivalentTo(1)), HaveField("Created", noon), HaveField("Updated", noon)))
		made.Text = "" // it is not read
		g.Expect(stored(t, s, "web", made.ID)).To(Equal(made))
		_, err := s.Get(t.Context(), "acme", made.ID)
		g.Expect(err).To(MatchError(milestone.ErrNotFound))
		g.Expect(add(t, s, milestone.Milestone{In: web, Title: "2.0"}).IID).To(BeEquivalentTo(2))
		g.Expect(add(t, s, milestone.Milestone{In: acme, Title: "1.0"}).IID).To(BeEquivalentTo(1), "each project and group counts for itself")

		c.SetTime(noon.Add(time.Hour))
		_, err = s.Update(t.Context(), "web", made.ID, func(_ context.Context, m *milestone.Milestone) error {
			m.Title, m.State, m.Due = "1.1", milestone.Closed, ""
			return nil
		})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(stored(t, s, "web", made.ID)).To(And(HaveField("Title", "1.1"), HaveField("State", milestone.Closed), HaveField("Due", ""), HaveField("Start", "2026-01-01"),
			HaveField("Created", noon), HaveField("Updated", noon.Add(time.Hour))))

		g.Expect(s.Delete(t.Context(), made.ID)).To(Succeed())
		_, err = s.Get(t.Context(), "web", made.ID)
		g.Expect(err).To(MatchError(milestone.ErrNotFound))
		g.Expect(add(t, s, milestone.Milestone{In: web, Title: "3.0"}).IID).To(BeEquivalentTo(3), "numbers are not used again")
	})
}

func TestStore_updateThatFailsChangesNothing(t *testing.T) {
	onEachEngine(t, func(t *testing.T, g *WithT, s *milestone.Store, c *clocktesting.FakePassiveClock) {
		made := add(t, s, milestone.Milestone{In: web, Title: "1.0"})
		c.SetTime(noon.Add(time.Hour))
		refused := errors.New("refused")
		_, err := s.Update(t.Context(), "web", made.ID, func(_ context.Context, m *milestone.Milestone) error {
			m.Title = "1.1"
			return refused
		})
		g.Expect(err).To(MatchError(refused))
		_, err = s.Update(t.Context(), "acme", made.ID, func(context.Context, *milestone.Milestone) error { return nil })
		g.Expect(err).To(MatchError(milestone.ErrNotFound), "it is in another project")
		made.Text = "" // it is not read
		g.Expect(stored(t, s, "web", made.ID)).To(Equal(made))
	})
}

func TestStore_titleIsUniqueInProject(t *testing.T) {
	onEachEngine(t, func(t *testing.T, g *WithT, s *milestone.Store, _ *clocktesting.FakePassiveClock) {
		one := add(t, s, milestone.Milestone{In: web, Title: "1.0"})
		g.Expect(s.Create(t.Context(), &milestone.Milestone{In: web, Title: "1.0", State: milestone.Active})).To(MatchError(milestone.ErrTaken))
		two := add(t, s, milestone.Milestone{In: web, Title: "2.0"})
		g.Expect(two.IID).To(BeEquivalentTo(2), "a creation that fails takes no number")
		_, err := s.Update(t.Context(), "web", two.ID, func(_ context.Context, m *milestone.Milestone) error { m.Title = "1.0"; return nil })
		g.Expect(err).To(MatchError(milestone.ErrTaken))
		g.Expect(s.Taken(t.Context(), "1.0", 0, "web", "acme")).To(BeTrue())
		g.Expect(s.Taken(t.Context(), "1.0", one.ID, "web", "acme")).To(BeFalse())
		g.Expect(s.Taken(t.Context(), "1.0", 0, "acme")).To(BeFalse())
	})
}

func TestStore_listsByFilterWhatIsDueFirst(t *testing.T) {
	onEachEngine(t, func(t *testing.T, g *WithT, s *milestone.Store, _ *clocktesting.FakePassiveClock) {
		add(t, s, milestone.Milestone{In: web, Title: "never", Description: "The ÄRA of 100% effort"})
		add(t, s, milestone.Milestone{In: web, Title: "late", Due: "2026-12-01"})
		add(t, s, milestone.Milestone{In: web, Title: "soon", Due: "2026-06-20", Start: "2026-06-10"})
		add(t, s, milestone.Milestone{In: web, Title: "closed", Due: "2026-01-01", State: milestone.Closed})
		add(t, s, milestone.Milestone{In: acme, Title: "all", Due: "2026-06-20", Start: "2026-06-01"})
		for name, test := range map[string]struct {
			filter milestone.Filter
			want   []string
		}{
			"of a project":         {milestone.Filter{In: []types.UID{"web"}}, []string{"closed", "soon", "late", "never"}},
			"of both":              {milestone.Filter{In: []types.UID{"web", "acme"}}, []string{"closed", "all", "soon", "late", "never"}},
			"of nothing":           {milestone.Filter{}, nil},
			"by state":             {milestone.Filter{In: []types.UID{"web"}, State: milestone.Closed}, []string{"closed"}},
			"by iids":              {milestone.Filter{In: []types.UID{"web"}, IIDs: []int64{1, 3, 9}}, []string{"soon", "never"}},
			"by title":             {milestone.Filter{In: []types.UID{"web"}, Title: "late"}, []string{"late"}},
			"by title, whole":      {milestone.Filter{In: []types.UID{"web"}, Title: "lat"}, nil},
			"by text, in any case": {milestone.Filter{In: []types.UID{"web"}, Search: "ära OF"}, []string{"never"}},
			"by text, literally":   {milestone.Filter{In: []types.UID{"web"}, Search: "0% e"}, []string{"never"}},
			"by text, no pattern":  {milestone.Filter{In: []types.UID{"web"}, Search: "l_te"}, nil},
		} {
			page, total, err := s.List(t.Context(), test.filter, 0, 20)
			g.Expect(err).NotTo(HaveOccurred(), name)
			g.Expect(total).To(Equal(len(test.want)), name)
			var titles []string
			for _, m := range page {
				titles = append(titles, m.Title)
			}
			g.Expect(titles).To(Equal(test.want), name)
		}
		page, total, err := s.List(t.Context(), milestone.Filter{In: []types.UID{"web"}}, 1, 2)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(total).To(Equal(4))
		g.Expect(page).To(And(HaveExactElements(HaveField("Title", "soon"), HaveField("Title", "late")), HaveEach(HaveField("Text", ""))))
	})
}
