package database

import (
	"cmp"
	"context"
	"slices"

	"github.com/uptrace/bun"
)

// Page is a part of a list of rows.
type Page struct {
	// Skip is the number of rows before the page, and Limit the maximum number on it.
	Skip, Limit int
	// Enough is the number of rows at which counting stops; 0 to count all.
	Enough int
	// Version changes with everything that the conditions of the list are about. The total of a version is remembered, unless it is empty.
	Version string
}

// List is a list of rows, which have their ids in the column "id".
type List[T any] struct {
	// Selected selects the rows, in no order.
	Selected func(db bun.IDB) *bun.SelectQuery
	// Sorted selects them in the order of the list, which can depend on their number: total is counted up to Page.Enough.
	Sorted func(db bun.IDB, total int) *bun.SelectQuery
	// ID returns the id of a row.
	ID func(T) int64
	// Without names columns that are not read.
	Without []string
	// Counts remembers the numbers of selected rows.
	Counts Counts
}

// Read returns the rows on a page, and the number of selected rows, which is counted up to p.Enough.
func (l List[T]) Read(ctx context.Context, db bun.IDB, p Page) (page []T, total int, err error) {
	if total, err = l.Counts.Find(ctx, db, l.Selected(db).Column("id").Limit(int64(p.Enough)), p.Version); err != nil || total <= p.Skip {
		return nil, total, err
	}
	// Sorting ids takes much less time than sorting whole rows.
	var ids []int64
	if err := l.Sorted(db, total).Column("id").Offset(int64(p.Skip)).Limit(int64(p.Limit)).Scan(ctx, &ids); err != nil {
		return nil, 0, err
	}
	err = db.NewSelect().Model(&page).ExcludeColumn(l.Without...).Where("id IN (?)", bun.List(ids)).Scan(ctx)
	slices.SortFunc(page, func(a, b T) int { return cmp.Compare(slices.Index(ids, l.ID(a)), slices.Index(ids, l.ID(b))) })
	return page, total, err
}
