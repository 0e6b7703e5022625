package stateevent_test

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/uptrace/bun"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/database/databasetest"
	"github.com/forgeplane/forgeplane/internal/iid"
	"github.com/forgeplane/forgeplane/internal/issue"
	"github.com/forgeplane/forgeplane/internal/stateevent"
)

var (
	noon = time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC)
	web  = database.Subject{Kind: database.KindProject, ID: 20, UID: "web"}
	ann  = database.User{ID: 2, UID: "ann"}
)

// event returns an event of an item; each is a minute later than the one before.
func event(of database.Item, s stateevent.State, minute int) stateevent.Event {
	return stateevent.Event{In: web, Of: of, State: s, User: ann, Created: noon.Add(time.Duration(minute) * time.Minute)}
}

func TestStore_listsEventsOfItemOldestFirst(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g, ctx := NewWithT(t), t.Context()
		s := stateevent.New(databasetest.Open(t, name, stateevent.Migrations()))
		one, other := database.Item{Kind: "issue", ID: 1}, database.Item{Kind: "epic", ID: 1}
		closed, reopened, foreign := event(one, stateevent.Closed, 0), event(one, stateevent.Reopened, 1), event(other, stateevent.Closed, 2)
		for _, e := range []*stateevent.Event{&closed, &reopened, &foreign} {
			g.Expect(s.Add(ctx, e)).To(Succeed())
		}
		page := func(skip, limit int) (states []stateevent.State) {
			some, total, err := s.List(ctx, one, skip, limit)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(total).To(Equal(2))
			for _, e := range some {
				states = append(states, e.State)
			}
			return states
		}
		g.Expect(page(0, 20)).To(Equal([]stateevent.State{stateevent.Closed, stateevent.Reopened}))
		g.Expect(page(1, 1)).To(Equal([]stateevent.State{stateevent.Reopened}))
		g.Expect(page(2, 1)).To(BeEmpty())

		got, err := s.Get(ctx, one, reopened.ID)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(got.Created).To(BeTemporally("==", reopened.Created))
		got.Created = reopened.Created
		g.Expect(got).To(Equal(reopened))
		_, err = s.Get(ctx, one, foreign.ID)
		g.Expect(err).To(MatchError(stateevent.ErrNotFound))

		g.Expect(s.Remove(ctx, one)).To(Succeed())
		_, err = s.Get(ctx, one, closed.ID)
		g.Expect(err).To(MatchError(stateevent.ErrNotFound))
		_, err = s.Get(ctx, other, foreign.ID)
		g.Expect(err).NotTo(HaveOccurred())
	})
}

func TestStore_keepsNothingOfTransactionThatFails(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g, ctx := NewWithT(t), t.Context()
		db := databasetest.Open(t, name, iid.Migrations(), issue.Migrations(), stateevent.Migrations())
		issues, s := issue.New(db, clocktesting.NewFakePassiveClock(noon)), stateevent.New(db)
		broken := errors.New("broken")
		// change creates an issue and records an event of it in one transaction, which ends with an error.
		change := func(end error) (issue.Issue, error) {
			i := issue.Issue{In: web, Title: "Broken", Type: "issue", Author: ann}
			err := db.Atomically(ctx, "testing", func(ctx context.Context, _ bun.IDB) error {
				e := event(database.Item{}, stateevent.Closed, 0)
				if err := issues.Create(ctx, &i); err != nil {
					return err
				}
				e.Of = i.Item()
				return errors.Join(s.Add(ctx, &e), end)
			})
			return i, err
		}
		for _, end := range []error{broken, nil} {
			i, err := change(end)
			_, total, listed := s.List(ctx, i.Item(), 0, 20)
			g.Expect(listed).NotTo(HaveOccurred())
			_, found := issues.Get(ctx, web.UID, i.IID)
			if end != nil {
				g.Expect(err).To(MatchError(broken))
				g.Expect(total).To(BeZero())
				g.Expect(found).To(MatchError(issue.ErrNotFound))
				continue
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(total).To(Equal(1))
			g.Expect(found).NotTo(HaveOccurred())
		}
	})
}
