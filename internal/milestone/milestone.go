// Package milestone stores the milestones of projects and groups: a table of the activity database.
package milestone

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/uptrace/bun"
	"k8s.io/utils/clock"

	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/iid"
	"github.com/forgeplane/forgeplane/internal/sweep"
)

//go:embed migrations
var migrations embed.FS

// Migrations returns the migrations of the table, for database.Open.
func Migrations() fs.FS { return migrations }

// State is the state of a milestone.
type State string

// The states.
const (
	Active State = "active"
	Closed State = "closed"
)

// ErrNotFound says that there is no milestone with an id.
var ErrNotFound = errors.New("there is no such milestone")

// Milestone is a milestone of a project or group.
type Milestone struct {
	bun.BaseModel `bun:"table:milestones"`

	ID int64 `bun:"id,pk,autoincrement"`
	// In is the project or group.
	In          database.Subject `bun:"embed:subject_"`
	IID         int64            `bun:"iid"`
	Title       string           `bun:"title"`
	Description string           `bun:"description"`
	State       State            `bun:"state"`
	// Start and Due are days in the form of time.DateOnly; empty without one.
	Start   string    `bun:"start_date"`
	Due     string    `bun:"due_date"`
	Created time.Time `bun:"created_at"`
	Updated time.Time `bun:"updated_at"`
}

// Store is the milestones in a database. It is safe for concurrent use.
type Store struct {
	db    *database.DB
	clock clock.PassiveClock
}

// New returns the milestones of a database that was opened with Migrations and those of iid.
func New(db *database.DB, c clock.PassiveClock) *Store { return &Store{db, c} }

// Subjects are the milestones by their projects and groups, for a sweep.Sweeper.
func (s *Store) Subjects() sweep.Inherited { return sweep.Table(s.db, (*Milestone)(nil)) }

// Create adds a milestone, and completes it.
func (s *Store) Create(ctx context.Context, m *Milestone) error {
	m.Created = s.clock.Now().UTC()
	m.Updated = m.Created
	return s.db.Atomically(ctx, fmt.Sprintf("creating a milestone in %s", m.In), func(ctx context.Context, db bun.IDB) (err error) {
		if m.IID, err = iid.Next(ctx, s.db, m.In, "milestone"); err != nil {
			return err
		}
		_, err = db.NewInsert().Model(m).Returning("id").Exec(ctx)
		return err
	})
}

// WithIDs returns the milestones with some ids by their ids. It leaves out missing ones.
func (s *Store) WithIDs(ctx context.Context, ids ...int64) (map[int64]Milestone, error) {
	found := map[int64]Milestone{}
	if len(ids) == 0 {
		return found, nil
	}
	var rows []Milestone
	err := s.db.Read(ctx, "reading milestones", func(ctx context.Context, db bun.IDB) error {
		return db.NewSelect().Model(&rows).Where("id IN (?)", bun.List(ids)).Scan(ctx)
	})
	for _, m := range rows {
		found[m.ID] = m
	}
	return found, err
}
