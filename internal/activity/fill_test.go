package activity_test

import (
	"database/sql"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/pressly/goose/v3"
	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/internal/activity"
)

// withoutUIDs makes a database as it was before there were UIDs, with rows of noon: of the users 7, 8 and 9, who are subscribed to the
// label 1, the first to the label 2 as well, and of the trigger tokens 1 and 2. It returns what counts the rows of a table.
func withoutUIDs(t *testing.T, database string) func(table string) int {
	t.Helper()
	g := NewWithT(t)
	driver, dialect := "sqlite", goose.DialectSQLite3
	if activity.IsPostgres(database) {
		driver, dialect = "pgx", goose.DialectPostgres
	}
	pool, err := sql.Open(driver, database)
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { g.Expect(pool.Close()).To(Succeed()) })
	g.Expect(activity.MigrateTo(t.Context(), pool, dialect, 2)).To(Succeed())
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

func TestFillIn_givesRowsToWhoeverWasThereWhenTheyWereWritten(t *testing.T) {
	onEachEngine(t, func(t *testing.T, database string) {
		g := NewWithT(t)
		rows := withoutUIDs(t, database)
		store := open(t, database)
		w := newWorld(store)
		madeAt := func(at time.Time, names ...types.UID) (all []activity.Known) {
			for _, uid := range names {
				all = append(all, activity.Known{UID: uid, Created: at})
			}
			return all
		}
		before, after := noon.Add(-time.Hour), noon.Add(time.Hour)
		w.users.anew = map[int64][]activity.Known{7: madeAt(before, uid(7)), 8: madeAt(after, uid(8)), 9: madeAt(before, uid(9), "rival")}
		w.labels.anew = map[int64][]activity.Known{1: madeAt(before, uid(1)), 2: madeAt(after, uid(2))}
		w.tokens.anew = map[int64][]activity.Known{1: madeAt(noon, uid(1)), 2: madeAt(after, uid(2))}

		expectSubscribed(t, store, 7)
		expectLastUsed(t, store, map[int64]time.Time{})
		g.Expect(store.Subscribe(t.Context(), who(7), label(1))).To(BeTrue(), "before it is filled in")
		g.Expect(w.Look(t.Context())).To(Succeed())
		expectSubscribed(t, store, 7, 1)
		expectSubscribed(t, store, 8)
		expectSubscribed(t, store, 9)
		expectLastUsed(t, store, map[int64]time.Time{1: noon})

		w.pass(t, 26)
		expectSubscribed(t, store, 7, 1)
		g.Expect(rows("subscriptions")).To(Equal(1), "what was nobody's is gone")
		expectLastUsed(t, store, map[int64]time.Time{1: noon})
		g.Expect(rows("uses")).To(Equal(1))
	})
}

func TestSweeper_removesTheRowsOfAnObjectThatWasMadeAnewUnderItsID(t *testing.T) {
	onEachEngine(t, func(t *testing.T, database string) {
		g, store := NewWithT(t), open(t, database)
		w := newWorld(store)
		g.Expect(store.Subscribe(t.Context(), who(7), label(1))).To(BeTrue())
		g.Expect(store.Use(t.Context(), trigger(1), noon)).To(Succeed())
		w.labels.anew = map[int64][]activity.Known{1: {{UID: "another"}}}
		w.tokens.anew = w.labels.anew
		another := label(1)
		another.UID = "another"
		g.Expect(store.Subscribe(t.Context(), who(7), another)).To(BeTrue(), "it has nothing of the former one")
		w.pass(t, 26)
		g.Expect(store.Subscribed(t.Context(), who(7), activity.KindLabel)).To(And(HaveLen(1), HaveKey(another.UID)))
		expectLastUsed(t, store, map[int64]time.Time{})
	})
}
