package item

import (
	"context"

	"github.com/uptrace/bun"

	"github.com/forgeplane/forgeplane/internal/database"
)

// Lock keeps others from changing or deleting an item until the transaction of db ends. If the item is gone, the error is the answer for a missing one.
func Lock(ctx context.Context, db bun.IDB, i Item) error {
	locked, err := db.NewUpdate().Model(i.Row()).Set("updated_at = updated_at").WherePK().Exec(ctx)
	return database.Changed(locked, err, i.Missing())
}
