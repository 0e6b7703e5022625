package epic_test

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
	"github.com/forgeplane/forgeplane/internal/epic"
	"github.com/forgeplane/forgeplane/internal/iid"
)

var noon = time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC)

var (
	acme  = database.Subject{Kind: database.KindGroup, ID: 10, UID: "acme"}
	below = database.Subject{Kind: database.KindGroup, ID: 11, UID: "below"}
	mary  = database.User{ID: 2, UID: "mary"}
	otto  = database.User{ID: 3, UID: "otto"}
	bug   = epic.Label{ID: 1, UID: "bug"}
	docs  = epic.Label{ID: 2, UID: "docs"}
)

func onEachEngine(t *testing.T, test func(t *testing.T, g *WithT, s *epic.Store, c *clocktesting.FakePassiveClock)) {
	t.Helper()
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		c := clocktesting.NewFakePassiveClock(noon)
		test(t, NewWithT(t), epic.New(databasetest.Open(t, name, iid.Migrations(), epic.Migrations()), c), c)
	})
}

// stored returns an epic of acme with times in UTC.
func stored(t *testing.T, s *epic.Store, id int64) epic.Epic {
	t.Helper()
	e, err := s.Get(t.Context(), "acme", id)
	if err != nil {
		t.Fatal(err)
	}
	e.Created, e.Updated, e.ClosedAt = e.Created.UTC(), e.Updated.UTC(), e.ClosedAt.UTC()
	return e
}

// add creates an epic, a minute after the one before.
func add(t *testing.T, s *epic.Store, c *clocktesting.FakePassiveClock, e epic.Epic) epic.Epic {
	t.Helper()
	c.SetTime(c.Now().Add(time.Minute))
	if err := s.Create(t.Context(), &e); err != nil {
		t.Fatal(err)
	}
	return e
}

func TestStore_createsReadsChangesAndDeletes(t *testing.T) {
	onEachEngine(t, func(t *testing.T, g *WithT, s *epic.Store, c *clocktesting.FakePassiveClock) {
		made := add(t, s, c, epic.Epic{In: acme, Title: "Search", Description: "Fast", Author: mary, Confidential: true, Start: "2026-01-01", Labels: []epic.Label{bug}})
		g.Expect(made).To(And(HaveField("IID", BeEquivalentTo(1)), HaveField("State", epic.Opened), HaveField("Created", noon.Add(time.Minute))))
		made.Text = "" // it is not read
		g.Expect(stored(t, s, made.ID)).To(Equal(made))
		_, err := s.Get(t.Context(), "below", made.ID)
		g.Expect(err).To(MatchError(epic.ErrNotFound))

		c.SetTime(noon.Add(time.Hour))
		_, err = s.Update(t.Context(), made.ID, func(_ context.Context, e *epic.Epic) error {
			g.Expect(e.Labels).To(Equal([]epic.Label{bug}))
			e.Title, e.State, e.Closer, e.ClosedAt, e.Labels = "Find", epic.Closed, otto, e.Updated, []epic.Label{docs}
			return nil
		})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(stored(t, s, made.ID)).To(And(HaveField("Title", "Find"), HaveField("Author", mary), HaveField("Start", "2026-01-01"), HaveField("Closer", otto),
			HaveField("ClosedAt", noon.Add(time.Hour)), HaveField("Updated", noon.Add(time.Hour)), HaveField("Created", made.Created), HaveField("Labels", []epic.Label{docs})))

		g.Expect(s.Touch(t.Context(), made.ID, noon.Add(2*time.Hour))).To(Succeed())
		g.Expect(stored(t, s, made.ID)).To(HaveField("Updated", noon.Add(2*time.Hour)))
		refused := errors.New("refused")
		_, err = s.Update(t.Context(), made.ID, func(_ context.Context, e *epic.Epic) error { e.Title = "x"; return refused })
		g.Expect(err).To(MatchError(refused))
		g.Expect(stored(t, s, made.ID)).To(And(HaveField("Title", "Find"), HaveField("Updated", noon.Add(2*time.Hour))))

		g.Expect(s.Delete(t.Context(), made.ID)).To(Succeed())
		_, err = s.Update(t.Context(), made.ID, func(context.Context, *epic.Epic) error { return nil })
		g.Expect(err).To(MatchError(epic.ErrNotFound))
		g.Expect(add(t, s, c, epic.Epic{In: acme, Title: "Next", Author: mary})).To(And(HaveField("IID", BeEquivalentTo(2)), HaveField("Labels", BeEmpty())))
	})
}

func TestGet_ignoresIID(t *testing.T) {
	onEachEngine(t, func(t *testing.T, g *WithT, s *epic.Store, c *clocktesting.FakePassiveClock) {
		add(t, s, c, epic.Epic{In: below, Title: "elsewhere", Author: mary})
		e := add(t, s, c, epic.Epic{In: acme, Title: "first", Author: mary})
		g.Expect(e).To(And(HaveField("ID", BeEquivalentTo(2)), HaveField("IID", BeEquivalentTo(1))))
		_, err := s.Get(t.Context(), "acme", 1)
		g.Expect(err).To(MatchError(epic.ErrNotFound))
	})
}

func TestStore_listsByFilter(t *testing.T) {
	onEachEngine(t, func(t *testing.T, g *WithT, s *epic.Store, c *clocktesting.FakePassiveClock) {
		a := add(t, s, c, epic.Epic{In: acme, Title: "a", Description: "Größe", Author: mary, Labels: []epic.Label{bug, docs}})
		add(t, s, c, epic.Epic{In: acme, Title: "C", Author: otto, Labels: []epic.Label{bug}})
		add(t, s, c, epic.Epic{In: acme, Title: "secret", Author: otto, Confidential: true})
		add(t, s, c, epic.Epic{In: below, Title: "b", Author: otto, Confidential: true})
		_, err := s.Update(t.Context(), a.ID, func(_ context.Context, e *epic.Epic) error { e.State = epic.Closed; return nil })
		g.Expect(err).NotTo(HaveOccurred())
		both := []types.UID{"acme", "below"}
		newest := epic.Order{By: epic.ByCreation, Descending: true}
		for name, test := range map[string]struct {
			filter epic.Filter
			order  epic.Order
			want   []string
		}{
			"public ones":               {epic.Filter{In: both}, newest, []string{"C", "a"}},
			"with confidential ones":    {epic.Filter{In: both, Confidential: []types.UID{"acme"}}, newest, []string{"secret", "C", "a"}},
			"with their own":            {epic.Filter{In: both, Viewer: "otto"}, newest, []string{"b", "secret", "C", "a"}},
			"with those of nobody":      {epic.Filter{In: both, Viewer: "mary"}, newest, []string{"C", "a"}},
			"by title":                  {epic.Filter{In: both, Confidential: both}, epic.Order{By: epic.ByTitle}, []string{"a", "b", "C", "secret"}},
			"by update":                 {epic.Filter{In: both}, epic.Order{By: epic.ByUpdate, Descending: true}, []string{"a", "C"}},
			"opened":                    {epic.Filter{In: both, State: epic.Opened}, newest, []string{"C"}},
			"of an author":              {epic.Filter{In: both, Author: "mary"}, newest, []string{"a"}},
			"with iids":                 {epic.Filter{In: both, IIDs: []int64{2, 7}}, newest, []string{"C"}},
			"with a text":               {epic.Filter{In: both, Search: "GRÖSSE"}, newest, []string{"a"}},
			"with two labels":           {epic.Filter{In: both, Labels: [][]types.UID{{"bug", "other"}, {"docs"}}}, newest, []string{"a"}},
			"with a label nobody has":   {epic.Filter{In: both, Labels: [][]types.UID{{"bug"}, nil}}, newest, nil},
			"created after, inclusive":  {epic.Filter{In: both, CreatedAfter: noon.Add(2 * time.Minute)}, newest, []string{"C"}},
			"created before, inclusive": {epic.Filter{In: both, CreatedBefore: noon.Add(time.Minute)}, newest, []string{"a"}},
			"updated after":             {epic.Filter{In: both, UpdatedAfter: noon.Add(3 * time.Minute)}, newest, []string{"a"}},
			"updated before":            {epic.Filter{In: both, UpdatedBefore: noon.Add(3 * time.Minute)}, newest, []string{"C"}},
			"created at any time": {epic.Filter{
				In: both, CreatedAfter: time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC), CreatedBefore: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC),
			}, newest, []string{"C", "a"}},
			"in no group": {epic.Filter{}, newest, nil},
		} {
			page, total, err := s.List(t.Context(), test.filter, test.order, 0, 20)
			g.Expect(err).NotTo(HaveOccurred(), name)
			var titles []string
			for _, e := range page {
				titles = append(titles, e.Title)
			}
			g.Expect(titles).To(Equal(test.want), name)
			g.Expect(total).To(Equal(len(test.want)), name)
		}
		page, total, err := s.List(t.Context(), epic.Filter{In: both}, newest, 1, 1)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(total).To(Equal(2))
		g.Expect(page).To(HaveExactElements(And(HaveField("Labels", ConsistOf(bug, docs)), HaveField("Description", "Größe"), HaveField("Text", ""))))
	})
}
