// Package draftnote stores draft notes: notes that their authors have not published yet. It is a table of the activity database.
package draftnote

import (
	"cmp"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/uptrace/bun"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/note"
	"github.com/forgeplane/forgeplane/internal/sweep"
)

// Most is the maximum number of draft notes of one author on one item.
const Most = 200

// MaxSize is the maximum size in bytes of the bodies of all draft notes of one author on one item: they are listed and published together.
const MaxSize = 4 << 20

//go:embed migrations
var migrations embed.FS

// Migrations returns the migrations of the table, for database.Open.
func Migrations() fs.FS { return migrations }

var (
	// ErrNotFound says that an item has no such draft note.
	ErrNotFound = errors.New("there is no such draft note")
	// ErrTooMany says that the author has Most draft notes on the item.
	ErrTooMany = fmt.Errorf("an author can have at most %d draft notes on an item", Most)
	// ErrTooLong says that the draft notes of the author on the item would have more than MaxSize bytes.
	ErrTooLong = fmt.Errorf("the draft notes of an author on an item can have at most %d bytes", MaxSize)
)

// Draft is a draft note on an item.
type Draft struct {
	bun.BaseModel `bun:"table:draft_notes"`

	ID int64 `bun:"id,pk,autoincrement"`
	// In is the project of the item.
	In     database.Subject `bun:"embed:subject_"`
	On     database.Item    `bun:"embed:item_"`
	Author database.User    `bun:"embed:author_"`
	Body   string           `bun:"body"`
	// Commit is the id of the commit that the note is about; empty for none.
	Commit string `bun:"commit_id"`
	// Discussion is the id of the discussion to which the note is a reply; empty for none.
	Discussion string `bun:"discussion"`
	// Resolves says that the note resolves the discussion when it is published.
	Resolves bool `bun:"resolves"`
	// Position is nil unless the note is about a place in a diff.
	Position *note.Position `bun:"position,type:text"`
}

// Store is the draft notes in a database. It is safe for concurrent use.
type Store struct{ db *database.DB }

// New returns the draft notes of a database that was opened with Migrations.
func New(db *database.DB) *Store { return &Store{db} }

// Subjects are the draft notes by their projects, for a sweep.Sweeper.
func (s *Store) Subjects() sweep.Inherited { return sweep.Table(s.db, (*Draft)(nil)) }

// Create adds a draft note, and sets its id.
func (s *Store) Create(ctx context.Context, d *Draft) error {
	return s.db.Write(ctx, fmt.Sprintf("creating a draft note on %s", d.On), func(ctx context.Context, db bun.IDB) error {
		_, err := db.NewInsert().Model(d).Returning("id").Exec(ctx)
		return err
	})
}

// CheckLimits returns ErrTooMany or ErrTooLong if an author has too many draft notes on an item. A caller that creates or changes a
// draft note must lock the item first, and call it before the transaction ends: of two such transactions, the later one then sees the draft notes of both.
func (s *Store) CheckLimits(ctx context.Context, on database.Item, author types.UID) error {
	return s.db.Read(ctx, "measuring the draft notes on "+on.String(), func(ctx context.Context, db bun.IDB) error {
		var number, size int64
		err := own(db.NewSelect().Model((*Draft)(nil)), on, author).ColumnExpr("count(*)").ColumnExpr("coalesce(sum(octet_length(body)), 0)").Scan(ctx, &number, &size)
		switch {
		case err != nil:
			return err
		case number > Most:
			return ErrTooMany
		case size > MaxSize:
			return ErrTooLong
		default:
			return nil
		}
	})
}

// List returns the draft notes of an author on an item, the oldest first.
func (s *Store) List(ctx context.Context, on database.Item, author types.UID) (all []Draft, err error) {
	err = s.db.Read(ctx, "listing draft notes on "+on.String(), func(ctx context.Context, db bun.IDB) error {
		return own(db.NewSelect().Model(&all), on, author).Order("id").Scan(ctx)
	})
	return all, err
}

// own selects the draft notes of an author on an item.
func own(q *bun.SelectQuery, on database.Item, author types.UID) *bun.SelectQuery {
	return q.Where("item_kind = ?", on.Kind).Where("item_id = ?", on.ID).Where("author_uid = ?", author)
}

// Get returns the draft note on an item with an id, of any author. The error is ErrNotFound if the draft note does not exist.
func (s *Store) Get(ctx context.Context, on database.Item, id int64) (d Draft, err error) {
	err = s.db.Read(ctx, fmt.Sprintf("reading draft note %d", id), func(ctx context.Context, db bun.IDB) error {
		return database.Found(db.NewSelect().Model(&d).Where("id = ?", id).Where("item_kind = ?", on.Kind).Where("item_id = ?", on.ID).Scan(ctx), ErrNotFound)
	})
	return d, err
}

// Change is a change of a draft note. Fields that are nil do not change.
type Change struct {
	Body     *string
	Position *note.Position
}

// Update changes a draft note, and returns it. The error is ErrNotFound if the draft note does not exist.
func (s *Store) Update(ctx context.Context, id int64, c Change) (Draft, error) {
	var position *string
	if c.Position != nil {
		text, err := json.Marshal(c.Position)
		if err != nil {
			return Draft{}, fmt.Errorf("writing a position: %w", err)
		}
		position = ptr.To(string(text))
	}
	var changed []Draft
	err := s.db.Write(ctx, fmt.Sprintf("changing draft note %d", id), func(ctx context.Context, db bun.IDB) error {
		_, err := db.NewUpdate().Model((*Draft)(nil)).Set("body = coalesce(?, body)", c.Body).Set("position = coalesce(?, position)", position).
			Where("id = ?", id).Returning("*").Exec(ctx, &changed)
		if err == nil && len(changed) == 0 {
			err = ErrNotFound
		}
		return err
	})
	if err != nil {
		return Draft{}, err
	}
	return changed[0], nil
}

// Delete removes a draft note. The error is ErrNotFound if the draft note does not exist.
func (s *Store) Delete(ctx context.Context, id int64) error {
	return s.db.Write(ctx, fmt.Sprintf("removing draft note %d", id), func(ctx context.Context, db bun.IDB) error {
		removed, err := db.NewDelete().Model((*Draft)(nil)).Where("id = ?", id).Exec(ctx)
		return database.Changed(removed, err, ErrNotFound)
	})
}

// Take removes the draft notes of an author on an item, and returns them, the oldest first. With ids, it takes only these. Of two
// callers at once, only one gets a draft note.
func (s *Store) Take(ctx context.Context, on database.Item, author types.UID, ids ...int64) (taken []Draft, err error) {
	err = s.db.Write(ctx, "taking draft notes on "+on.String(), func(ctx context.Context, db bun.IDB) error {
		q := db.NewDelete().Model((*Draft)(nil)).Where("item_kind = ?", on.Kind).Where("item_id = ?", on.ID).Where("author_uid = ?", author)
		if len(ids) > 0 {
			q = q.Where("id IN (?)", bun.List(ids))
		}
		_, err := q.Returning("*").Exec(ctx, &taken)
		return err
	})
	slices.SortFunc(taken, func(a, b Draft) int { return cmp.Compare(a.ID, b.ID) })
	return taken, err
}

// Remove removes all draft notes on an item, which is deleted in the same transaction.
func (s *Store) Remove(ctx context.Context, on database.Item) error {
	return s.db.Write(ctx, fmt.Sprintf("removing the draft notes on %s", on), func(ctx context.Context, db bun.IDB) error {
		_, err := db.NewDelete().Model((*Draft)(nil)).Where("item_kind = ?", on.Kind).Where("item_id = ?", on.ID).Exec(ctx)
		return err
	})
}
