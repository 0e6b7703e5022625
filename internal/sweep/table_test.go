package sweep_test

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/database/databasetest"
	"github.com/forgeplane/forgeplane/internal/stateevent"
	"github.com/forgeplane/forgeplane/internal/sweep"
)

// many is more than some batches.
const many = 250

func TestTable_worksInBatches(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g, db := NewWithT(t), databasetest.Open(t, name, stateevent.Migrations())
		addEvents(t, db, project(1), many)
		addEvents(t, db, project(2), 1)
		rows := sweep.Table(db, (*stateevent.Event)(nil))

		g.Expect(rows.Move(t.Context(), project(1), project(3))).To(Succeed())
		g.Expect(countEvents(t, db)).To(Equal(map[database.Subject]int{project(2): 1, project(3): many}))
		g.Expect(rows.Remove(t.Context(), project(3))).To(Succeed())
		g.Expect(countEvents(t, db)).To(Equal(map[database.Subject]int{project(2): 1}))
	})
}

func TestTable_keepsProgressOnError(t *testing.T) {
	for statement, do := range map[string]func(rows sweep.Inherited) error{
		"DELETE": func(rows sweep.Inherited) error { return rows.Remove(t.Context(), project(1)) },
		"UPDATE": func(rows sweep.Inherited) error { return rows.Move(t.Context(), project(1), project(2)) },
	} {
		t.Run(statement, func(t *testing.T) {
			g, name := NewWithT(t), databasetest.SQLite(t)
			db := databasetest.Open(t, name, stateevent.Migrations())
			addEvents(t, db, project(1), many)
			_, err := databasetest.SQL(t, name).ExecContext(t.Context(), fmt.Sprintf(
				"CREATE TRIGGER stuck BEFORE %s ON state_events WHEN old.id = %d BEGIN SELECT RAISE(ABORT, 'stuck'); END", statement, many))
			g.Expect(err).NotTo(HaveOccurred())

			g.Expect(do(sweep.Table(db, (*stateevent.Event)(nil)))).To(MatchError(ContainSubstring("stuck")))
			g.Expect(countEvents(t, db)[project(1)]).To(And(BeNumerically(">", 0), BeNumerically("<", many)))
		})
	}
}

func project(id int64) database.Subject {
	return database.Subject{Kind: database.KindProject, ID: id, UID: uid(id)}
}

func addEvents(t *testing.T, db *database.DB, in database.Subject, number int) {
	t.Helper()
	events := stateevent.New(db)
	for range number {
		e := stateevent.Event{In: in, Of: database.Item{Kind: "issue", ID: in.ID}, State: stateevent.Closed, User: who(userMax), Created: noon}
		NewWithT(t).Expect(events.Add(t.Context(), &e)).To(Succeed())
	}
}

// countEvents returns how many events each project has.
func countEvents(t *testing.T, db *database.DB) map[database.Subject]int {
	t.Helper()
	g, count := NewWithT(t), map[database.Subject]int{}
	for item := range int64(4) {
		all, _, err := stateevent.New(db).List(t.Context(), database.Item{Kind: "issue", ID: item}, 0, 2*many)
		g.Expect(err).NotTo(HaveOccurred())
		for _, e := range all {
			count[e.In]++
		}
	}
	return count
}
