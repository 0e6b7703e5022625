package sweep_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/database/databasetest"
	"github.com/forgeplane/forgeplane/internal/subscription"
	"github.com/forgeplane/forgeplane/internal/sweep"
	"github.com/forgeplane/forgeplane/internal/tokenuse"
)

// withoutUIDs creates a database of a version that did not know UIDs. Its rows are from noon: subscriptions of the users 7, 8 and 9 to the
// label 1 and of the user 7 to the label 2, and uses of the trigger tokens 1 and 2. It returns a function that counts the rows of a table.
func withoutUIDs(t *testing.T, name string) func(table string) int {
	t.Helper()
	g := NewWithT(t)
	old, err := database.Open(t.Context(), name, databasetest.Until(2, subscription.Migrations()), databasetest.Until(2, tokenuse.Migrations()))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(old.Close()).To(Succeed())
	pool := databasetest.SQL(t, name)
	for _, statement := range []string{
		`INSERT INTO subscriptions VALUES (7, 'label', 1, '2026-05-04 12:00:00+00:00'), (7, 'label', 2, '2026-05-04 12:00:00+00:00'),
			(8, 'label', 1, '2026-05-04 12:00:00+00:00'), (9, 'label', 1, '2026-05-04 12:00:00+00:00')`,
		`INSERT INTO uses VALUES ('trigger_token', 1, '2026-05-04 12:00:00+00:00'), ('trigger_token', 2, '2026-05-04 12:00:00+00:00')`,
	} {
		_, err := pool.ExecContext(t.Context(), statement)
		g.Expect(err).NotTo(HaveOccurred())
	}
	return func(table string) (n int) {
		g.Expect(pool.QueryRowContext(t.Context(), "SELECT count(*) FROM "+table).Scan(&n)).To(Succeed())
		return n
	}
}

func TestFillIn_assignsRowsToObjectsOfTheirTime(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g := NewWithT(t)
		rows := withoutUIDs(t, name)
		w := newWorld(t, name)
		madeAt := func(at time.Time, names ...types.UID) (all []sweep.Known) {
			for _, uid := range names {
				all = append(all, sweep.Known{UID: uid, Created: at})
			}
			return all
		}
		before, after := noon.Add(-time.Hour), noon.Add(time.Hour)
		w.users.recreated = map[int64][]sweep.Known{7: madeAt(before, uid(7)), 8: madeAt(after, uid(8)), 9: madeAt(before, uid(9), "rival")}
		w.labels.recreated = map[int64][]sweep.Known{1: madeAt(before, uid(1)), 2: madeAt(after, uid(2))}
		w.tokens.recreated = map[int64][]sweep.Known{1: madeAt(noon, uid(1)), 2: madeAt(after, uid(2))}

		expectSubscribed(t, w, 7)
		expectLastUsed(t, w, map[int64]time.Time{})
		g.Expect(w.subscriptions.Subscribe(t.Context(), who(7), label(1))).To(BeTrue(), "before it is filled in")
		g.Expect(w.Look(t.Context())).To(Succeed())
		expectSubscribed(t, w, 7, 1)
		expectSubscribed(t, w, 8)
		expectSubscribed(t, w, 9)
		expectLastUsed(t, w, map[int64]time.Time{1: noon})

		w.pass(t, 26)
		expectSubscribed(t, w, 7, 1)
		g.Expect(rows("subscriptions")).To(Equal(1), "what was nobody's is gone")
		expectLastUsed(t, w, map[int64]time.Time{1: noon})
		g.Expect(rows("uses")).To(Equal(1))
	})
}

func TestSweeper_removesRowsOfRecreatedObjects(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g, w := NewWithT(t), newWorld(t, name)
		g.Expect(w.subscriptions.Subscribe(t.Context(), who(7), label(1))).To(BeTrue())
		g.Expect(w.uses.Use(t.Context(), trigger(1), noon)).To(Succeed())
		w.labels.recreated = map[int64][]sweep.Known{1: {{UID: "another"}}}
		w.tokens.recreated = w.labels.recreated
		another := label(1)
		another.UID = "another"
		g.Expect(w.subscriptions.Subscribe(t.Context(), who(7), another)).To(BeTrue(), "it has nothing of the former one")
		w.pass(t, 26)
		g.Expect(w.subscriptions.Subscribed(t.Context(), who(7), subscription.KindLabel)).To(And(HaveLen(1), HaveKey(another.UID)))
		expectLastUsed(t, w, map[int64]time.Time{})
	})
}
