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

// ReadPage returns the rows on a page, and the number of selected rows, which is counted up to p.Enough. sorted returns the selected rows in the order of
// the list, which can depend on their number. A row has its id in the column "id". Columns without can be left out.
func ReadPage[T any](ctx context.Context, db bun.IDB, p Page, counts Counts, selected *bun.SelectQuery, sorted func(total int) *bun.SelectQuery,
	id func(T) int64, without ...string,
) (page []T, total int, err error) {
	if total, err = counts.Find(ctx, db, selected.Column("id").Limit(int64(p.Enough)), p.Version); err != nil || total <= p.Skip {
		return nil, total, err
	}
	// Sorting ids takes much less time than sorting whole rows.
	var ids []int64
	if err := sorted(total).Column("id").Offset(int64(p.Skip)).Limit(int64(p.Limit)).Scan(ctx, &ids); err != nil {
		return nil, 0, err
	}
	err = db.NewSelect().Model(&page).ExcludeColumn(without...).Where("id IN (?)", bun.List(ids)).Scan(ctx)
	slices.SortFunc(page, func(a, b T) int { return cmp.Compare(slices.Index(ids, id(a)), slices.Index(ids, id(b))) })
	return page, total, err
}
