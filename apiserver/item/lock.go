package item

import (
	"context"
	"time"

	"github.com/uptrace/bun"

	"github.com/forgeplane/forgeplane/internal/database"
)

// Lock keeps others from changing or deleting an item until the transaction of db ends. If the item is gone, or belongs to another project since it was
// read, the error is the answer for a missing one.
func Lock(ctx context.Context, db bun.IDB, i Item) error {
	return hold(ctx, db, i, "updated_at = updated_at")
}

// Touch is Lock, and sets the time of the last change of the item.
func Touch(ctx context.Context, db bun.IDB, i Item, at time.Time) error {
	return hold(ctx, db, i, "updated_at = ?", at.UTC())
}

// hold writes an item that is still in its place: rows that are added for its former place would be lost.
func hold(ctx context.Context, db bun.IDB, i Item, set string, args ...any) error {
	held, err := db.NewUpdate().Model(i.Row()).Set(set, args...).WherePK().Where("subject_uid = ?", i.Place().UID).Exec(ctx)
	return database.Changed(held, err, i.Missing())
}
