package reaction_test

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/uptrace/bun"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/database/databasetest"
	"github.com/forgeplane/forgeplane/internal/reaction"
)

var (
	noon = time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC)
	web  = database.Subject{Kind: database.KindProject, ID: 20, UID: "web"}
	ann  = database.User{ID: 2, UID: "ann"}
	mary = database.User{ID: 3, UID: "mary"}
)

func issue(id int64) database.Item { return database.Item{Kind: "issue", ID: id} }
func note(id int64) database.Item  { return database.Item{Kind: "note", ID: id} }

func open(t *testing.T, name string) (*reaction.Store, *database.DB) {
	t.Helper()
	db := databasetest.Open(t, name, reaction.Migrations())
	return reaction.New(db, clocktesting.NewFakePassiveClock(noon)), db
}

// add adds a reaction and returns it.
func add(t *testing.T, s *reaction.Store, to database.Item, name string, by database.User) reaction.Reaction {
	t.Helper()
	r := reaction.Reaction{In: web, To: to, Name: name, User: by}
	if err := s.Add(t.Context(), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestStore_keepsReactions(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g, ctx := NewWithT(t), t.Context()
		s, _ := open(t, name)
		first := add(t, s, issue(1), "tada", ann)
		g.Expect(first.ID).NotTo(BeZero())
		again := reaction.Reaction{In: web, To: issue(1), Name: "tada", User: ann}
		g.Expect(s.Add(ctx, &again)).To(MatchError(reaction.ErrTaken))
		second := add(t, s, issue(1), "tada", mary)
		add(t, s, note(1), "tada", ann)

		got, err := s.Get(ctx, issue(1), first.ID)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(got.Created).To(BeTemporally("==", noon))
		got.Created = first.Created
		g.Expect(got).To(Equal(first))
		_, err = s.Get(ctx, note(1), first.ID)
		g.Expect(err).To(MatchError(reaction.ErrNotFound))

		page := func(skip, limit int) (ids []int64) {
			some, total, err := s.List(ctx, issue(1), skip, limit)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(total).To(Equal(2))
			for _, r := range some {
				ids = append(ids, r.ID)
			}
			return ids
		}
		g.Expect(page(0, 20)).To(Equal([]int64{first.ID, second.ID}))
		g.Expect(page(1, 1)).To(Equal([]int64{second.ID}))
		g.Expect(page(2, 20)).To(BeEmpty())

		g.Expect(s.Delete(ctx, first.ID)).To(Succeed())
		g.Expect(s.Delete(ctx, first.ID)).To(MatchError(reaction.ErrNotFound))
		third := add(t, s, issue(1), "tada", ann)
		g.Expect(third.ID).To(BeNumerically(">", second.ID), "ids are not reused")
	})
}

func TestStore_countsThumbs(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g := NewWithT(t)
		s, _ := open(t, name)
		add(t, s, issue(1), "thumbsup", ann)
		add(t, s, issue(1), "thumbsup", mary)
		add(t, s, issue(1), "tada", mary)
		add(t, s, issue(2), "thumbsdown", mary)
		add(t, s, issue(4), "thumbsdown", mary)
		add(t, s, note(3), "thumbsup", mary)
		g.Expect(s.Counts(t.Context(), "issue", 1, 2, 3)).To(Equal(map[int64]reaction.Count{1: {Up: 2}, 2: {Down: 1}}))
		g.Expect(s.Counts(t.Context(), "issue")).To(BeEmpty())
	})
}

func TestStore_removesReactionsToDeletedItems(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g, ctx := NewWithT(t), t.Context()
		s, _ := open(t, name)
		for _, to := range []database.Item{issue(1), issue(2), issue(3), note(1)} {
			add(t, s, to, "thumbsup", ann)
		}
		g.Expect(s.Remove(ctx, "issue", 1, 2)).To(Succeed())
		g.Expect(s.Remove(ctx, "issue")).To(Succeed())
		g.Expect(s.Counts(ctx, "issue", 1, 2, 3)).To(HaveLen(1))
		g.Expect(s.Counts(ctx, "note", 1)).To(HaveLen(1))

		rows := s.Subjects()
		g.Expect(rows.After(ctx, database.Subject{Kind: database.KindProject})).To(ConsistOf(web))
		g.Expect(rows.Remove(ctx, database.Subject{Kind: web.Kind, ID: web.ID, UID: "another"})).To(Succeed())
		g.Expect(s.Counts(ctx, "issue", 3)).To(HaveLen(1))
		g.Expect(rows.Remove(ctx, web)).To(Succeed())
		g.Expect(s.Counts(ctx, "issue", 3)).To(BeEmpty())
	})
}

func TestGiven_findsItemsByReactionOfUser(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g := NewWithT(t)
		s, db := open(t, name)
		add(t, s, issue(1), "thumbsup", ann)
		add(t, s, issue(2), "tada", ann)
		add(t, s, issue(3), "thumbsup", mary)
		add(t, s, note(4), "thumbsup", ann)
		for _, tt := range []struct {
			user  types.UID
			emoji string
			want  []int64
		}{
			{"ann", "thumbsup", []int64{1}}, {"ann", "+1", []int64{1}}, {"ann", "", []int64{1, 2}}, {"ann", "heart", nil}, {"ann", "no emoji", nil},
			{"mary", "", []int64{3}}, {"otto", "", nil},
		} {
			var ids []int64
			g.Expect(db.Read(t.Context(), "testing", func(ctx context.Context, db bun.IDB) error {
				return reaction.Given(db, "issue", tt.user, tt.emoji).Order("item_id").Scan(ctx, &ids)
			})).To(Succeed())
			g.Expect(ids).To(Equal(tt.want), "%s %s", tt.user, tt.emoji)
		}
	})
}

func TestEmoji_knowsNamesAndAliases(t *testing.T) {
	for name, want := range map[string]string{
		"thumbsup": "thumbsup", "+1": "thumbsup", "thumbsdown": "thumbsdown", "-1": "thumbsdown", "tada": "tada", "100": "100",
		"laughing": "laughing", "satisfied": "laughing", "heart": "heart",
		"": "", "no emoji": "", ":tada:": "", "Tada": "", "+": "",
	} {
		if got, known := reaction.Emoji(name); got != want || known != (want != "") {
			t.Errorf("%q: got %q, %t, want %q", name, got, known, want)
		}
	}
}
