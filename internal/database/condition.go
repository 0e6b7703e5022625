package database

import "github.com/uptrace/bun"

// Condition is true of some rows of a table. It is never unknown, so Not is true of all others.
type Condition func(db bun.IDB) (query string, args []any)

// Where returns a condition in SQL.
func Where(query string, args ...any) Condition {
	return func(bun.IDB) (string, []any) { return query, args }
}

// Not is true of the rows of which c is not true.
func Not(c Condition) Condition {
	return func(db bun.IDB) (string, []any) {
		query, args := c(db)
		return "NOT (" + query + ")", args
	}
}

// Select returns a query of the rows of which all conditions are true.
func Select(db bun.IDB, q *bun.SelectQuery, all []Condition) *bun.SelectQuery {
	for _, c := range all {
		query, args := c(db)
		q = q.Where(query, args...)
	}
	return q
}
