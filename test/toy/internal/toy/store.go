// Package toy is an example of an aggregate of the activity database: a table with its migrations.
package toy

import (
	"context"
	"embed"
	"fmt"
	"io/fs"

	"github.com/uptrace/bun"
	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/internal/database"
)

//go:embed migrations
var migrations embed.FS

// Migrations returns the migrations of the tables, for database.Open.
func Migrations() fs.FS { return migrations }

// Row is a toy in the database.
type Row struct {
	bun.BaseModel `bun:"table:toys"`

	ID         int64     `bun:"id,pk,autoincrement"`
	Namespace  string    `bun:"namespace"`
	ProjectUID types.UID `bun:"project_uid"`
	State      string    `bun:"state"`
	// Created and Changed are the revisions of the first and the last change. A revision counts the changes of all toys.
	Created int64 `bun:"created"`
	Changed int64 `bun:"changed"`
}

// Store has the toys in a database. It is safe for concurrent use.
type Store struct{ db *database.DB }

// New returns a store for a database that was opened with Migrations.
func New(db *database.DB) *Store { return &Store{db} }

// Save adds a toy without an id, or changes the state of a toy. It can be part of a transaction.
func (s *Store) Save(ctx context.Context, r *Row) error {
	return s.db.Atomically(ctx, fmt.Sprintf("saving a toy of project %s", r.ProjectUID), func(ctx context.Context, db bun.IDB) error {
		// Other changes wait until the transaction ends, so that revisions become visible in their order.
		if err := db.NewRaw("UPDATE toy_revision SET last = last + 1 RETURNING last").Scan(ctx, &r.Changed); err != nil {
			return err
		}
		if r.ID != 0 {
			_, err := db.NewUpdate().Model(r).Column("state", "changed").WherePK().Exec(ctx)
			return err
		}
		r.Created = r.Changed
		_, err := db.NewInsert().Model(r).Exec(ctx)
		return err
	})
}

// List returns the toys for which a condition holds, in the order of their ids, and a revision that they include.
func (s *Store) List(ctx context.Context, condition string, values ...any) (all []*Row, revision int64, err error) {
	err = s.db.Read(ctx, "listing toys", func(ctx context.Context, db bun.IDB) error {
		if err := db.NewRaw("SELECT last FROM toy_revision").Scan(ctx, &revision); err != nil {
			return err
		}
		return db.NewSelect().Model(&all).Where(condition, values...).Order("id").Scan(ctx)
	})
	return all, revision, err
}
