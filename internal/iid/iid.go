// Package iid allocates the internal ids (iid) of items: numbers that count from 1 in each project or group. They are a table of the activity
// database.
package iid

import (
	"context"
	"embed"
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

// row has the last iid of a kind of items in a project or group.
type row struct {
	bun.BaseModel `bun:"table:iids"`

	In   database.Subject `bun:"embed:subject_"`
	Kind string           `bun:"kind,pk"`
	Last int64            `bun:"last"`
}

// Next returns the next iid of an item of a kind in a project or group. It is called in the transaction that creates the item, so a creation that
// fails takes no number.
func Next(ctx context.Context, d *database.DB, in database.Subject, kind string) (next int64, err error) {
	err = d.Write(ctx, fmt.Sprintf("numbering a new %s in %s", kind, in), func(ctx context.Context, db bun.IDB) error {
		_, err := db.NewInsert().Model(&row{In: in, Kind: kind, Last: 1}).
			On("CONFLICT (subject_uid, kind, subject_kind, subject_id) DO UPDATE").Set("last = ?TableAlias.last + 1").
			Returning("last").Exec(ctx, &next)
		return err
	})
	return next, err
}

// Subjects are the numbers by their projects and groups, for a sweep.Sweeper.
func Subjects(d *database.DB) sweep.Inherited { return sweep.Table(d, (*row)(nil)) }
