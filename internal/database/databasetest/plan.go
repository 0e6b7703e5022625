package databasetest

import (
	"context"
	"strings"
	"testing"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect"
	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/internal/database"
)

// Plan returns the steps of the plan of a query. PostgreSQL, which would read the whole of a small table, avoids that if it can use an index.
func Plan(tb testing.TB, d *database.DB, query func(db bun.IDB) *bun.SelectQuery) (steps []string) {
	tb.Helper()
	check(tb, d.Atomically(tb.Context(), "explaining a query", func(ctx context.Context, db bun.IDB) error {
		if db.Dialect().Name() == dialect.PG {
			if _, err := db.ExecContext(ctx, "SET LOCAL enable_seqscan = off"); err != nil {
				return err
			}
			return db.NewRaw("EXPLAIN ?", query(db)).Scan(ctx, &steps)
		}
		var rows []struct {
			ID, Parent, Notused int64
			Detail              string
		}
		err := db.NewRaw("EXPLAIN QUERY PLAN ?", query(db)).Scan(ctx, &rows)
		for _, r := range rows {
			steps = append(steps, r.Detail)
		}
		return err
	}))
	if len(steps) == 0 {
		tb.Fatal("the query has no plan")
	}
	return steps
}

// Scans returns the steps of the plan of a query that read all rows of a table whose name begins with a prefix.
func Scans(tb testing.TB, d *database.DB, prefix string, query func(db bun.IDB) *bun.SelectQuery) (scans []string) {
	tb.Helper()
	for _, step := range Plan(tb, d, query) {
		scan := strings.HasPrefix(step, "SCAN "+prefix) && !strings.Contains(step, "VIRTUAL TABLE INDEX")
		if scan || strings.Contains(step, "Seq Scan on "+prefix) {
			scans = append(scans, step)
		}
	}
	return scans
}

// List is a query of a list: it selects rows of projects in order. total is their number.
type List func(db bun.IDB, projects []types.UID, total int) *bun.SelectQuery

// listed is a case in which a list can have another plan.
type listed struct {
	projects []types.UID
	total    int
	// rowByRow says that SQLite reads the rows in the order of the list.
	rowByRow bool
}

// cases returns the cases of lists in which up to few rows count as few.
func cases(few int) []listed {
	one, several := []types.UID{"web"}, []types.UID{"web", "shop"}
	return []listed{{one, few, false}, {one, few + 1, true}, {several, few, false}, {several, few + 1, false}}
}

// CheckScans checks that a list reads the whole of no table whose name begins with a prefix, neither with few rows nor with more. what is for messages.
func CheckScans(t *testing.T, d *database.DB, prefix string, few int, what string, query List) {
	t.Helper()
	for _, c := range cases(few) {
		for _, step := range Scans(t, d, prefix, func(db bun.IDB) *bun.SelectQuery { return query(db, c.projects, c.total) }) {
			t.Errorf("%s, %d rows of %v: %s", what, c.total, c.projects, step)
		}
	}
}

// CheckTexts checks that SQLite finds the rows of a search through the index of texts, unless more than few rows of one project are found.
func CheckTexts(t *testing.T, d *database.DB, few int, query List) {
	t.Helper()
	for _, c := range cases(few) {
		plan := strings.Join(Plan(t, d, func(db bun.IDB) *bun.SelectQuery { return query(db, c.projects, c.total) }), "\n")
		if strings.Contains(plan, "VIRTUAL TABLE") == c.rowByRow {
			t.Errorf("with %d rows of %v, the index of texts must be read: %t; got %s", c.total, c.projects, !c.rowByRow, plan)
		}
	}
}
