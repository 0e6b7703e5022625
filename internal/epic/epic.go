// Package epic stores the epics of groups: tables of the activity database.
package epic

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/uptrace/bun"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/iid"
	"github.com/forgeplane/forgeplane/internal/sweep"
)

// Kind is the kind of items that are epics.
const Kind = "epic"

//go:embed migrations
var migrations embed.FS

// Migrations returns the migrations of the tables, for database.Open.
func Migrations() fs.FS { return migrations }

// State is the state of an epic.
type State string

// The states.
const (
	Opened State = "opened"
	Closed State = "closed"
)

// ErrNotFound says that a group has no such epic.
var ErrNotFound = errors.New("there is no such epic")

// Epic is an epic of a group.
type Epic struct {
	bun.BaseModel `bun:"table:epics"`

	ID int64 `bun:"id,pk,autoincrement"`
	// In is the group.
	In           database.Subject `bun:"embed:subject_"`
	IID          int64            `bun:"iid"`
	Title        string           `bun:"title"`
	Description  string           `bun:"description"`
	Text         string           `bun:"text"`
	State        State            `bun:"state"`
	Confidential bool             `bun:"confidential"`
	Author       database.User    `bun:"embed:author_"`
	// Start and Due are days in the form of time.DateOnly; empty without one.
	Start string `bun:"start_date"`
	Due   string `bun:"due_date"`
	// Closer is who has closed the epic; empty while it is open, as ClosedAt is.
	Closer   database.User `bun:"embed:closer_"`
	ClosedAt time.Time     `bun:"closed_at,nullzero"`
	Created  time.Time     `bun:"created_at"`
	Updated  time.Time     `bun:"updated_at"`
}

// Item returns what notes, reactions and state events on the epic belong to.
func (e Epic) Item() database.Item { return database.Item{Kind: Kind, ID: e.ID} }

// Store is the epics in a database. It is safe for concurrent use.
type Store struct {
	db    *database.DB
	clock clock.PassiveClock
}

// New returns the epics of a database that was opened with Migrations and those of iid.
func New(db *database.DB, c clock.PassiveClock) *Store { return &Store{db, c} }

// Subjects are the epics by their groups, for a sweep.Sweeper.
func (s *Store) Subjects() sweep.Inherited { return sweep.Table(s.db, (*Epic)(nil)) }

// Create adds an epic, and completes it.
func (s *Store) Create(ctx context.Context, e *Epic) error {
	e.Created = s.clock.Now().UTC()
	e.Updated, e.State = e.Created, Opened
	return s.db.Atomically(ctx, fmt.Sprintf("creating an epic in %s", e.In), func(ctx context.Context, db bun.IDB) (err error) {
		if e.IID, err = iid.Next(ctx, s.db, e.In, Kind); err != nil {
			return err
		}
		_, err = db.NewInsert().Model(e).Returning("id").Exec(ctx)
		return err
	})
}

// Get returns the epic of a group with an id, or else with an iid. The error is ErrNotFound if there is none.
func (s *Store) Get(ctx context.Context, group types.UID, number int64) (Epic, error) {
	var found []Epic
	err := s.db.Read(ctx, fmt.Sprintf("reading epic %d", number), func(ctx context.Context, db bun.IDB) error {
		return db.NewSelect().Model(&found).Where("subject_uid = ?", group).Where("id = ? OR iid = ?", number, number).Limit(2).Scan(ctx)
	})
	switch {
	case err != nil:
		return Epic{}, err
	case len(found) == 0:
		return Epic{}, ErrNotFound
	case len(found) == 2 && found[1].ID == number:
		return found[1], nil
	default:
		return found[0], nil
	}
}
