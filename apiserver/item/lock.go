package item

import (
	"context"

	"github.com/uptrace/bun"
)

// Lock keeps others from changing or deleting an item until the transaction of db ends. If the item is gone, the error is the answer for a missing one.
func Lock(ctx context.Context, db bun.IDB, i Item) error {
	locked, err := db.NewUpdate().Model(i.Row()).Set("updated_at = updated_at").WherePK().Exec(ctx)
	if err != nil {
		return err
	}
	if n, err := locked.RowsAffected(); err != nil || n > 0 {
		return err
	}
	return i.Missing()
}
