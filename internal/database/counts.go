package database

import (
	"context"

	"github.com/uptrace/bun"
	"k8s.io/utils/lru"
)

// Count returns the number of rows of a query.
func Count(ctx context.Context, db bun.IDB, q *bun.SelectQuery) (n int, err error) {
	err = db.NewSelect().TableExpr("(?) AS selected", q).ColumnExpr("count(*)").Scan(ctx, &n)
	return n, err
}

// maxCounts is the maximum number of numbers that are remembered.
const maxCounts = 4096

// Counts remembers how many rows queries select, by the version of the rows: to count 10,000 rows takes ten times as long as to read a page of them.
type Counts struct{ known *lru.Cache }

// NewCounts returns an empty memory, which is safe for concurrent use.
func NewCounts() Counts { return Counts{lru.New(maxCounts)} }

// counted identifies a number.
type counted struct{ version, query string }

// Find returns the number of rows of a query. It remembers nothing about rows without a version.
func (c Counts) Find(ctx context.Context, db bun.IDB, q *bun.SelectQuery, version string) (n int, err error) {
	if version == "" {
		return Count(ctx, db, q)
	}
	key := counted{version, q.String()}
	if known, ok := c.known.Get(key); ok {
		return known.(int), nil
	}
	if n, err = Count(ctx, db, q); err == nil {
		c.known.Add(key, n)
	}
	return n, err
}
