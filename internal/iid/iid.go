// Package iid allocates the internal ids (iid) of items: numbers that count from 1 in each project or group. They are a table of the activity
// database.
package iid

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/uptrace/bun"

	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/sweep"
)

//go:embed migrations
var migrations embed.FS

// Migrations returns the migrations of the table, for database.Open.
func Migrations() fs.FS { return migrations }

// ErrMoved says that another project has adopted, or is adopting, the items of a project. New items of the project would be lost.
var ErrMoved = errors.New("the items belong to another project now")

// row has the last iid of a kind of items in a project or group.
type row struct {
	bun.BaseModel `bun:"table:iids"`

	In   database.Subject `bun:"embed:subject_"`
	Kind string           `bun:"kind,pk"`
	Last int64            `bun:"last"`
}

// mark is the kind of the row that stays in a project whose numbers have moved. The sweeper removes it as it removes all rows of deleted projects.
const mark = ""

// Next returns the next iid of an item of a kind in a project or group. It is called in the transaction that creates the item, so a creation that
// fails takes no number. The error is ErrMoved if the numbers have moved to another project.
func Next(ctx context.Context, d *database.DB, in database.Subject, kind string) (next int64, err error) {
	err = d.Write(ctx, fmt.Sprintf("numbering a new %s in %s", kind, in), func(ctx context.Context, db bun.IDB) error {
		_, err := db.NewInsert().Model(&row{In: in, Kind: kind, Last: 1}).
			On("CONFLICT (subject_uid, kind, subject_kind, subject_id) DO UPDATE").Set("last = ?TableAlias.last + 1").
			Returning("last").Exec(ctx, &next)
		if err != nil {
			return err
		}
		// Last, as a move that the statement before has waited for has left the mark.
		moved, err := db.NewSelect().Model((*row)(nil)).Where("subject_uid = ?", in.UID).Where("kind = ?", mark).Where("subject_kind = ?", in.Kind).Exists(ctx)
		if err == nil && moved {
			err = ErrMoved
		}
		return err
	})
	return next, err
}

// Lock makes others who number or lock items of the kind in a project or group wait until the transaction ends.
func Lock(ctx context.Context, d *database.DB, in database.Subject, kind string) error {
	return d.Write(ctx, fmt.Sprintf("locking the numbers of each %s in %s", kind, in), func(ctx context.Context, db bun.IDB) error {
		_, err := db.NewUpdate().Model((*row)(nil)).Set("last = last").Where("subject_uid = ?", in.UID).Where("subject_kind = ?", in.Kind).
			Where("subject_id = ?", in.ID).Where("kind = ?", kind).Exec(ctx)
		return err
	})
}

// Items are the tables of the items with iids, by kind of item: pointers to their rows.
type Items map[string]any

// Subjects are the numbers by their projects and groups, for a sweep.Sweeper. Move needs the items.
func Subjects(d *database.DB, items Items) sweep.Inherited { return subjects{d, items} }

type subjects struct {
	db    *database.DB
	items Items
}

// After implements sweep.Rows.
func (s subjects) After(ctx context.Context, after database.Subject) ([]database.Subject, error) {
	return sweep.Subjects(ctx, s.db, (*row)(nil), after)
}

// Remove implements sweep.Rows.
func (s subjects) Remove(ctx context.Context, in database.Subject) error {
	return s.db.Write(ctx, fmt.Sprintf("removing the numbers of the items in %s", in), func(ctx context.Context, db bun.IDB) error {
		_, err := db.NewDelete().Model((*row)(nil)).
			Where("subject_kind = ?", in.Kind).Where("subject_id = ?", in.ID).Where("subject_uid = ?", in.UID).Exec(ctx)
		return err
	})
}

// Move implements sweep.Inherited. It must come before the move of the items, which keep their numbers: the items that the new project or group
// already has are numbered after them.
func (s subjects) Move(ctx context.Context, from, to database.Subject, _ ...string) error {
	return s.db.Atomically(ctx, fmt.Sprintf("giving the numbers of a former %s to %s", from.Kind, to), func(ctx context.Context, db bun.IDB) error {
		var former []row
		err := db.NewDelete().Model((*row)(nil)).Where("subject_kind = ?", from.Kind).Where("subject_uid = ?", from.UID).Where("kind <> ?", mark).
			Returning("*").Scan(ctx, &former)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		if _, err := db.NewInsert().Model(&row{In: from, Kind: mark}).On("CONFLICT DO NOTHING").Exec(ctx); err != nil {
			return err
		}
		for _, r := range former {
			r.In = to
			_, err := db.NewInsert().Model(&r).On("CONFLICT (subject_uid, kind, subject_kind, subject_id) DO UPDATE").
				Set("last = ?TableAlias.last + EXCLUDED.last").Exec(ctx)
			if err != nil {
				return err
			}
			if err := s.renumber(ctx, db, to, r.Kind, r.Last); err != nil {
				return err
			}
		}
		return nil
	})
}

// renumber adds to the numbers of all items of a kind.
func (s subjects) renumber(ctx context.Context, db bun.IDB, in database.Subject, kind string, add int64) error {
	item, ok := s.items[kind]
	if !ok {
		return fmt.Errorf("no table has items of the kind %s", kind)
	}
	// They become negative first, because no two rows can have the same number, not even within a statement.
	for _, number := range []string{"-iid - ?", "-iid"} {
		_, err := db.NewUpdate().Model(item).Set("iid = "+number, add).Where("subject_kind = ?", in.Kind).Where("subject_uid = ?", in.UID).Exec(ctx)
		if err != nil {
			return err
		}
	}
	return nil
}
