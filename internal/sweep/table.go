package sweep

import (
	"context"
	"fmt"

	"github.com/uptrace/bun"

	"github.com/forgeplane/forgeplane/internal/database"
)

// Table returns the Rows of a table with the columns subject_kind, subject_id and subject_uid, which a pointer to its row names. Rows of other
// tables that refer to them must go with them (ON DELETE CASCADE).
func Table(db *database.DB, row any) Inherited { return table{db, row} }

// Inherited are Rows that a new object can take over from a deleted one.
type Inherited interface {
	Rows
	// Move moves the rows of a subject to another subject of its kind, which must not have any. It can be repeated.
	Move(ctx context.Context, from, to database.Subject) error
}

type table struct {
	db  *database.DB
	row any
}

// After implements Rows.
func (t table) After(ctx context.Context, after database.Subject) ([]database.Subject, error) {
	return Subjects(ctx, t.db, t.row, after)
}

// Remove implements Rows.
func (t table) Remove(ctx context.Context, s database.Subject) error {
	return t.db.Write(ctx, fmt.Sprintf("removing the activity of %s", s), func(ctx context.Context, db bun.IDB) error {
		_, err := db.NewDelete().Model(t.row).
			Where("subject_kind = ?", s.Kind).Where("subject_id = ?", s.ID).Where("subject_uid = ?", s.UID).Exec(ctx)
		return err
	})
}

// Move implements Inherited.
func (t table) Move(ctx context.Context, from, to database.Subject) error {
	return t.db.Write(ctx, fmt.Sprintf("giving the activity of a former %s to %s", from.Kind, to), func(ctx context.Context, db bun.IDB) error {
		_, err := db.NewUpdate().Model(t.row).Set("subject_id = ?", to.ID).Set("subject_uid = ?", to.UID).
			Where("subject_kind = ?", from.Kind).Where("subject_uid = ?", from.UID).Exec(ctx)
		return err
	})
}
