package pipeline

import (
	"context"

	"github.com/uptrace/bun"
	"k8s.io/utils/lru"
)

// maxCounts is the maximum number of numbers that are remembered.
const maxCounts = 4096

// counts remembers how many rows queries select, by the version of the rows: to count 10,000 rows takes ten times as long as to read a page of them.
type counts struct{ known *lru.Cache }

func newCounts() counts { return counts{lru.New(maxCounts)} }

// counted identifies a number.
type counted struct{ version, query string }

// find returns the number of rows of a query. It remembers nothing about rows without a version.
func (c counts) find(ctx context.Context, db bun.IDB, q *bun.SelectQuery, version string) (n int, err error) {
	key := counted{version, q.String()}
	if known, ok := c.known.Get(key); ok {
		return known.(int), nil
	}
	err = db.NewSelect().TableExpr("(?) AS selected", q).ColumnExpr("count(*)").Scan(ctx, &n)
	if err == nil && version != "" {
		c.known.Add(key, n)
	}
	return n, err
}
