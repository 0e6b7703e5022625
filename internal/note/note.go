// Package note stores the notes on items, such as issues, and the discussions that they form: a table of the activity database.
package note

import (
	"context"
	"crypto/rand"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/uptrace/bun"
	"k8s.io/utils/clock"

	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/sweep"
)

// Kind is the kind of items that are notes.
const Kind = "note"

//go:embed migrations
var migrations embed.FS

// Migrations returns the migrations of the table, for database.Open.
func Migrations() fs.FS { return migrations }

var (
	// ErrNotFound says that an item has no such note or discussion.
	ErrNotFound = errors.New("there is no such note")
	// ErrFull says that an item has MaxNotes notes or more.
	ErrFull = errors.New("the item has as many notes as it can have")
	// ErrSystem says that a discussion records a change of the item and takes no replies.
	ErrSystem = errors.New("a system note cannot have replies")
)

// MaxNotes is the number of notes on an item, system notes included, from which on only system notes are added. It limits the size of a page of discussions.
const MaxNotes = 5000

// Note is a note on an item.
type Note struct {
	bun.BaseModel `bun:"table:notes"`

	ID int64 `bun:"id,pk,autoincrement"`
	// In is the project or group of the item.
	In database.Subject `bun:"embed:subject_"`
	On database.Item    `bun:"embed:item_"`
	// Discussion is the id of the discussion that the note belongs to. An individual note is alone in it.
	Discussion string `bun:"discussion"`
	Individual bool   `bun:"individual"`
	Resolvable bool   `bun:"resolvable"`
	// System says that the note records a change of the item.
	System bool `bun:"system"`
	// Internal says that only Reporters see the note.
	Internal bool          `bun:"internal"`
	Body     string        `bun:"body"`
	Author   database.User `bun:"embed:author_"`
	// Resolver is the user who resolved the discussion. Resolver and ResolvedAt are empty while it is unresolved.
	Resolver   database.User `bun:"embed:resolver_"`
	ResolvedAt time.Time     `bun:"resolved_at,nullzero"`
	// Position is nil unless the note is about a place in a diff.
	Position *Position `bun:"position,type:text"`
	// Commit is the id of the commit that the note is about; empty for none.
	Commit  string    `bun:"commit_id"`
	Created time.Time `bun:"created_at"`
	Updated time.Time `bun:"updated_at"`
}

// Item identifies the note in the reactions to it.
func (n Note) Item() database.Item { return database.Item{Kind: Kind, ID: n.ID} }

// Store is the notes in a database. It is safe for concurrent use.
type Store struct {
	db    *database.DB
	clock clock.PassiveClock
}

// New returns the notes of a database that was opened with Migrations.
func New(db *database.DB, c clock.PassiveClock) *Store { return &Store{db, c} }

// Subjects are the notes by their projects and groups, for a sweep.Sweeper.
func (s *Store) Subjects() sweep.Inherited { return sweep.Table(s.db, (*Note)(nil)) }

// Create adds a note, which begins a discussion, and completes it. If Created or Discussion is not zero, it stays. The error is ErrFull if the item has
// MaxNotes notes or more, except for system notes.
func (s *Store) Create(ctx context.Context, n *Note) error {
	if n.Discussion == "" {
		id := make([]byte, 20)
		_, _ = rand.Read(id) // it never fails
		n.Discussion = hex.EncodeToString(id)
	}
	return s.insert(ctx, n)
}

func (s *Store) insert(ctx context.Context, n *Note) error {
	if n.Created.IsZero() {
		n.Created = s.clock.Now().UTC()
	}
	n.Updated = n.Created
	return s.db.Write(ctx, fmt.Sprintf("creating a note on %s", n.On), func(ctx context.Context, db bun.IDB) error {
		if !n.System {
			full, err := db.NewSelect().Model((*Note)(nil)).Where("item_kind = ?", n.On.Kind).Where("item_id = ?", n.On.ID).
				Order("created_at").Offset(MaxNotes - 1).Limit(1).Exists(ctx)
			if err == nil && full {
				err = ErrFull
			}
			if err != nil {
				return err
			}
		}
		_, err := db.NewInsert().Model(n).Returning("id").Exec(ctx)
		return err
	})
}

// Get returns the note on an item with an id. The error is ErrNotFound if there is none.
func (s *Store) Get(ctx context.Context, on database.Item, id int64) (n Note, err error) {
	err = s.db.Read(ctx, fmt.Sprintf("reading note %d", id), func(ctx context.Context, db bun.IDB) error {
		return database.Found(db.NewSelect().Model(&n).Where("id = ?", id).Where("item_kind = ?", on.Kind).Where("item_id = ?", on.ID).Scan(ctx), ErrNotFound)
	})
	return n, err
}

// Update changes the text of a note, and returns the note. The error is ErrNotFound if there is none with the id.
func (s *Store) Update(ctx context.Context, id int64, body string) (Note, error) {
	var changed []Note
	err := s.db.Write(ctx, fmt.Sprintf("changing note %d", id), func(ctx context.Context, db bun.IDB) error {
		_, err := db.NewUpdate().Model((*Note)(nil)).Set("body = ?", body).Set("updated_at = ?", s.clock.Now().UTC()).Where("id = ?", id).
			Returning("*").Exec(ctx, &changed)
		if err == nil && len(changed) == 0 {
			err = ErrNotFound
		}
		return err
	})
	if err != nil {
		return Note{}, err
	}
	return changed[0], nil
}

// Delete removes a note. The error is ErrNotFound if there is none with the id.
func (s *Store) Delete(ctx context.Context, id int64) error {
	return s.db.Write(ctx, fmt.Sprintf("removing note %d", id), func(ctx context.Context, db bun.IDB) error {
		removed, err := db.NewDelete().Model((*Note)(nil)).Where("id = ?", id).Exec(ctx)
		return database.Changed(removed, err, ErrNotFound)
	})
}

// Count has the numbers of notes on an item.
type Count struct {
	// Notes is the number of notes that people have written.
	Notes int64
	// Unresolved is the number of notes that can be resolved and are not.
	Unresolved int64
}

// Counts returns the counts of items of a kind by their ids. Items without notes are left out.
func (s *Store) Counts(ctx context.Context, kind string, ids ...int64) (map[int64]Count, error) {
	counts := map[int64]Count{}
	if len(ids) == 0 {
		return counts, nil
	}
	var rows []struct {
		ID int64
		Count
	}
	err := s.db.Read(ctx, "counting notes", func(ctx context.Context, db bun.IDB) error {
		return db.NewSelect().Model((*Note)(nil)).ColumnExpr("item_id AS id").ColumnExpr("count(*) FILTER (WHERE NOT system) AS notes").
			ColumnExpr("count(*) FILTER (WHERE resolvable AND resolved_at IS NULL) AS unresolved").
			Where("item_kind = ?", kind).Where("item_id IN (?)", bun.List(ids)).Group("item_id").Scan(ctx, &rows)
	})
	for _, r := range rows {
		counts[r.ID] = r.Count
	}
	return counts, err
}

// Remove removes all notes on an item, which is deleted in the same transaction, and returns their ids.
func (s *Store) Remove(ctx context.Context, on database.Item) (ids []int64, err error) {
	err = s.db.Write(ctx, fmt.Sprintf("removing the notes on %s", on), func(ctx context.Context, db bun.IDB) error {
		_, err := db.NewDelete().Model((*Note)(nil)).Where("item_kind = ?", on.Kind).Where("item_id = ?", on.ID).Returning("id").Exec(ctx, &ids)
		return err
	})
	return ids, err
}
