package databasetest

import (
	"context"
	"strings"
	"testing"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect"

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
