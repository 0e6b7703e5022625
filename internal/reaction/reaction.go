// Package reaction stores the emoji reactions to items, such as issues and notes: a table of the activity database.
package reaction

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/uptrace/bun"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/sweep"
)

//go:embed migrations
var migrations embed.FS

// Migrations returns the migrations of the table, for database.Open.
func Migrations() fs.FS { return migrations }

var (
	// ErrTaken says that a user has given the same reaction already.
	ErrTaken = errors.New("the user has given this reaction already")
	// ErrNotFound says that an item has no reaction with an id.
	ErrNotFound = errors.New("there is no such reaction")
)

// Reaction is an emoji that a user has given to an item.
type Reaction struct {
	bun.BaseModel `bun:"table:reactions"`

	ID int64 `bun:"id,pk,autoincrement"`
	// In is the project or group of the item.
	In   database.Subject `bun:"embed:subject_"`
	To   database.Item    `bun:"embed:item_"`
	Name string           `bun:"name"`
	User database.User    `bun:"embed:user_"`
	// Created is the time of the reaction, which never changes.
	Created time.Time `bun:"created_at"`
}

// Store is the reactions in a database. It is safe for concurrent use.
type Store struct {
	db    *database.DB
	clock clock.PassiveClock
}

// New returns the reactions of a database that was opened with Migrations.
func New(db *database.DB, c clock.PassiveClock) *Store { return &Store{db, c} }

// Subjects are the reactions by their projects and groups, for a sweep.Sweeper.
func (s *Store) Subjects() sweep.Inherited { return sweep.Table(s.db, (*Reaction)(nil)) }

// Add adds a reaction, and completes it. The error is ErrTaken if the user has given it already.
func (s *Store) Add(ctx context.Context, r *Reaction) error {
	r.Created = s.clock.Now().UTC()
	return s.db.Write(ctx, fmt.Sprintf("adding a reaction to %s", r.To), func(ctx context.Context, db bun.IDB) error {
		_, err := db.NewInsert().Model(r).On("CONFLICT (item_kind, item_id, user_uid, name) DO NOTHING").Returning("id").Exec(ctx)
		if errors.Is(err, sql.ErrNoRows) || err == nil && r.ID == 0 {
			return ErrTaken
		}
		return err
	})
}

// Get returns the reaction with an id to an item. The error is ErrNotFound if there is none.
func (s *Store) Get(ctx context.Context, to database.Item, id int64) (r Reaction, err error) {
	err = s.db.Read(ctx, fmt.Sprintf("reading reaction %d", id), func(ctx context.Context, db bun.IDB) error {
		return database.Found(db.NewSelect().Model(&r).Where("id = ?", id).Where("item_kind = ?", to.Kind).Where("item_id = ?", to.ID).Scan(ctx), ErrNotFound)
	})
	return r, err
}

// List returns some reactions to an item, the oldest first, and how many there are.
func (s *Store) List(ctx context.Context, to database.Item, skip, limit int) (some []Reaction, total int, err error) {
	err = s.db.Read(ctx, fmt.Sprintf("listing the reactions to %s", to), func(ctx context.Context, db bun.IDB) error {
		n, err := db.NewSelect().Model(&some).Where("item_kind = ?", to.Kind).Where("item_id = ?", to.ID).
			Order("id").Offset(int64(skip)).Limit(int64(limit)).ScanAndCount(ctx)
		total = int(n)
		return err
	})
	return some, total, err
}

// Delete removes a reaction by its id. The error is ErrNotFound if there is none.
func (s *Store) Delete(ctx context.Context, id int64) error {
	return s.db.Write(ctx, fmt.Sprintf("removing reaction %d", id), func(ctx context.Context, db bun.IDB) error {
		removed, err := db.NewDelete().Model((*Reaction)(nil)).Where("id = ?", id).Exec(ctx)
		return database.Changed(removed, err, ErrNotFound)
	})
}

// Given returns a query for the ids of the items of a kind to which a user has given an emoji, by any of its names; with an empty name, any emoji.
func Given(db bun.IDB, kind string, user types.UID, name string) *bun.SelectQuery {
	query := db.NewSelect().Model((*Reaction)(nil)).Column("item_id").Where("user_uid = ?", user).Where("item_kind = ?", kind)
	if name == "" {
		return query
	}
	canonical, _ := Emoji(name) // empty for an unknown emoji, and then no row matches
	return query.Where("name = ?", canonical)
}

// Count has the numbers of thumbs up and thumbs down among the reactions to an item.
type Count struct{ Up, Down int64 }

// Counts returns the counts of items of a kind. Items without thumbs are left out.
func (s *Store) Counts(ctx context.Context, kind string, ids ...int64) (map[int64]Count, error) {
	counts := map[int64]Count{}
	if len(ids) == 0 {
		return counts, nil
	}
	var rows []struct {
		ID   int64
		Name string
		N    int64
	}
	err := s.db.Read(ctx, "counting reactions", func(ctx context.Context, db bun.IDB) error {
		return db.NewSelect().Model((*Reaction)(nil)).ColumnExpr("item_id AS id").Column("name").ColumnExpr("count(*) AS n").
			Where("item_kind = ?", kind).Where("item_id IN (?)", bun.List(ids)).Where("name IN (?, ?)", "thumbsup", "thumbsdown").
			Group("item_id", "name").Scan(ctx, &rows)
	})
	for _, r := range rows {
		c := counts[r.ID]
		if r.Name == "thumbsup" {
			c.Up = r.N
		} else {
			c.Down = r.N
		}
		counts[r.ID] = c
	}
	return counts, err
}

// Remove removes all reactions to items of a kind, which are deleted in the same transaction.
func (s *Store) Remove(ctx context.Context, kind string, ids ...int64) error {
	if len(ids) == 0 {
		return nil
	}
	return s.db.Write(ctx, "removing the reactions to deleted items", func(ctx context.Context, db bun.IDB) error {
		_, err := db.NewDelete().Model((*Reaction)(nil)).Where("item_kind = ?", kind).Where("item_id IN (?)", bun.List(ids)).Exec(ctx)
		return err
	})
}
