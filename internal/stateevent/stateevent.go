// Package stateevent records the changes of the states of items, such as issues: a table of the activity database.
package stateevent

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/uptrace/bun"

	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/sweep"
)

//go:embed migrations
var migrations embed.FS

// Migrations returns the migrations of the table, for database.Open.
func Migrations() fs.FS { return migrations }

// ErrNotFound says that an item has no event with an id.
var ErrNotFound = errors.New("there is no such state event")

// State is the state that an item has changed to.
type State string

// The states. Creating an item is not an event.
const (
	Closed   State = "closed"
	Reopened State = "reopened"
	Merged   State = "merged"
)

// Event is a change of the state of an item by a user.
type Event struct {
	bun.BaseModel `bun:"table:state_events"`

	ID int64 `bun:"id,pk,autoincrement"`
	// In is the project or group of the item.
	In      database.Subject `bun:"embed:subject_"`
	Of      database.Item    `bun:"embed:item_"`
	State   State            `bun:"state"`
	User    database.User    `bun:"embed:user_"`
	Created time.Time        `bun:"created_at"`
	// MergeRequestID is the id of the merge request whose merge has closed the issue; 0 otherwise.
	MergeRequestID int64 `bun:"merge_request_id"`
}

// Store is the events in a database. It is safe for concurrent use.
type Store struct{ db *database.DB }

// New returns the events of a database that was opened with Migrations.
func New(db *database.DB) *Store { return &Store{db} }

// Subjects are the events by their projects and groups, for a sweep.Sweeper.
func (s *Store) Subjects() sweep.Inherited { return sweep.Table(s.db, (*Event)(nil)) }

// Add records an event, in the transaction that changes the item. Created is the time of that change.
func (s *Store) Add(ctx context.Context, e *Event) error {
	return s.db.Write(ctx, fmt.Sprintf("recording a change of the state of %s", e.Of), func(ctx context.Context, db bun.IDB) error {
		_, err := db.NewInsert().Model(e).Returning("id").Exec(ctx)
		return err
	})
}

// List returns some events of an item, the oldest first, and how many there are.
func (s *Store) List(ctx context.Context, of database.Item, skip, limit int) (some []Event, total int, err error) {
	err = s.db.Read(ctx, fmt.Sprintf("listing the state events of %s", of), func(ctx context.Context, db bun.IDB) error {
		n, err := db.NewSelect().Model(&some).Where("item_kind = ?", of.Kind).Where("item_id = ?", of.ID).
			Order("id").Offset(int64(skip)).Limit(int64(limit)).ScanAndCount(ctx)
		total = int(n)
		return err
	})
	return some, total, err
}

// Get returns the event of an item with an id. The error is ErrNotFound if there is none.
func (s *Store) Get(ctx context.Context, of database.Item, id int64) (e Event, err error) {
	err = s.db.Read(ctx, fmt.Sprintf("reading state event %d", id), func(ctx context.Context, db bun.IDB) error {
		return database.Found(db.NewSelect().Model(&e).Where("id = ?", id).Where("item_kind = ?", of.Kind).Where("item_id = ?", of.ID).Scan(ctx), ErrNotFound)
	})
	return e, err
}

// Remove removes all events of an item, which is deleted in the same transaction.
func (s *Store) Remove(ctx context.Context, of database.Item) error {
	return s.db.Write(ctx, fmt.Sprintf("removing the state events of %s", of), func(ctx context.Context, db bun.IDB) error {
		_, err := db.NewDelete().Model((*Event)(nil)).Where("item_kind = ?", of.Kind).Where("item_id = ?", of.ID).Exec(ctx)
		return err
	})
}
