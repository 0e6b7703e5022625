package sweep

import (
	"context"
	"fmt"

	"github.com/uptrace/bun"

	"github.com/forgeplane/forgeplane/internal/database"
)

// Table returns the Rows of a table with the columns subject_kind, subject_id and subject_uid, which a pointer to its row names. Rows of other
// tables that refer to them must go with them (ON DELETE CASCADE).
func Table(db *database.DB, row any) Rows { return table{db, row} }

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
