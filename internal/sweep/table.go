package sweep

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/uptrace/bun"

	"github.com/forgeplane/forgeplane/internal/database"
)

// batch is the maximum number of rows of one statement: a subject can have more than a statement can change within database.Limit.
const batch int64 = 100

// Table returns the Rows of a table with the columns id, subject_kind, subject_id and subject_uid, which a pointer to its row names. Rows of
// other tables that refer to them must go with them (ON DELETE CASCADE).
func Table(db *database.DB, row any) Inherited { return table{db, row} }

// Inherited are Rows that a new object can take over from a deleted one.
type Inherited interface {
	Rows
	// Move moves the rows of a subject to another subject of its kind, except those with a value that the other subject already has in a unique
	// column. It can be repeated, also after an error.
	Move(ctx context.Context, from, to database.Subject, unique ...string) error
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
	return InBatches(ctx, t.db, fmt.Sprintf("removing the activity of %s", s), func(ctx context.Context, db bun.IDB, limit int64) (sql.Result, error) {
		some := t.of(db, s, "id").Where("subject_id = ?", s.ID).Limit(limit)
		return db.NewDelete().Model(t.row).Where("id IN (?)", some).Exec(ctx)
	})
}

// Move implements Inherited.
func (t table) Move(ctx context.Context, from, to database.Subject, unique ...string) error {
	attempt := fmt.Sprintf("giving the activity of a former %s to %s", from.Kind, to)
	return InBatches(ctx, t.db, attempt, func(ctx context.Context, db bun.IDB, limit int64) (sql.Result, error) {
		some := t.of(db, from, "id").Limit(limit)
		for _, column := range unique {
			some.Where("? NOT IN (?)", bun.Ident(column), t.of(db, to, column))
		}
		return db.NewUpdate().Model(t.row).Set("subject_id = ?", to.ID).Set("subject_uid = ?", to.UID).Where("id IN (?)", some).Exec(ctx)
	})
}

// of selects a column of the rows of a subject.
func (t table) of(db bun.IDB, s database.Subject, column string) *bun.SelectQuery {
	return db.NewSelect().Model(t.row).Column(column).Where("subject_kind = ?", s.Kind).Where("subject_uid = ?", s.UID)
}

// InBatches repeats a statement that changes at most limit rows until it changes fewer. Each statement has its own time, so InBatches must not be
// called in a transaction.
func InBatches(
	ctx context.Context, d *database.DB, attempt string, statement func(ctx context.Context, db bun.IDB, limit int64) (sql.Result, error),
) error {
	for limit := batch; ; {
		var changed int64
		err := d.Write(ctx, attempt, func(ctx context.Context, db bun.IDB) error {
			result, err := statement(ctx, db, limit)
			if err != nil {
				return err
			}
			changed, err = result.RowsAffected()
			return err
		})
		switch {
		case err != nil && limit > 1 && ctx.Err() == nil:
			limit = 1 // to remove a long text from the index of texts can take a second
		case err != nil || changed < limit:
			return err
		}
	}
}
