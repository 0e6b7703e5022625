package database

import (
	"slices"
	"time"

	"github.com/uptrace/bun"
)

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

// Or is true of rows for which at least one of two conditions is true.
func Or(a, b Condition) Condition {
	return func(db bun.IDB) (string, []any) {
		first, args := a(db)
		second, more := b(db)
		return "(" + first + ") OR (" + second + ")", slices.Concat(args, more)
	}
}

// And is true of rows for which both conditions are true.
func And(a, b Condition) Condition {
	return func(db bun.IDB) (string, []any) {
		first, args := a(db)
		second, more := b(db)
		return "(" + first + ") AND (" + second + ")", slices.Concat(args, more)
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

// Among is true of rows with one of some values in a column.
func Among[T any](column string, values []T) Condition {
	if len(values) == 0 {
		return Where("FALSE")
	}
	return Where(column+" IN (?)", bun.List(values))
}

// TimeColumn is a column of times, with the name of its table.
type TimeColumn string

// Since is true of rows whose time is not before at.
func (c TimeColumn) Since(at time.Time) Condition { return Where(string(c)+" >= ?", Time(at)) }

// Until is true of rows whose time is not after at.
func (c TimeColumn) Until(at time.Time) Condition { return Where(string(c)+" <= ?", Time(at)) }
