// Package milestone stores the milestones of projects and groups: a table of the activity database.
package milestone

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
	"github.com/forgeplane/forgeplane/internal/iid"
	"github.com/forgeplane/forgeplane/internal/search"
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

var (
	// ErrNotFound says that there is no milestone with an id.
	ErrNotFound = errors.New("there is no such milestone")
	// ErrTaken says that the project or group has another milestone with a title.
	ErrTaken = errors.New("another milestone has the title")
)

// Milestone is a milestone of a project or group.
type Milestone struct {
	bun.BaseModel `bun:"table:milestones"`

	ID int64 `bun:"id,pk,autoincrement"`
	// In is the project or group.
	In          database.Subject `bun:"embed:subject_"`
	IID         int64            `bun:"iid"`
	Title       string           `bun:"title"`
	Description string           `bun:"description"`
	// Text is the text for searches. The store writes it and does not read it.
	Text  string `bun:"text"`
	State State  `bun:"state"`
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

// New returns the milestones of a database. The database must have been opened with Migrations and iid.Migrations.
func New(db *database.DB, c clock.PassiveClock) *Store { return &Store{db, c} }

// Subjects are the milestones by their projects and groups, for a sweep.Sweeper.
func (s *Store) Subjects() sweep.Inherited { return sweep.Table(s.db, (*Milestone)(nil)) }

// Create adds a milestone, and completes it. The error is ErrTaken if its project or group has the title already.
func (s *Store) Create(ctx context.Context, m *Milestone) error {
	m.Created = s.clock.Now().UTC()
	m.Updated, m.Text = m.Created, search.Fold(m.Title, m.Description)
	return s.db.Atomically(ctx, fmt.Sprintf("creating a milestone in %s", m.In), func(ctx context.Context, db bun.IDB) (err error) {
		if m.IID, err = iid.Next(ctx, s.db, m.In, "milestone"); err != nil {
			return err
		}
		_, err = db.NewInsert().Model(m).On("CONFLICT (subject_uid, title) DO NOTHING").Returning("id").Exec(ctx)
		if errors.Is(err, sql.ErrNoRows) || err == nil && m.ID == 0 {
			return ErrTaken
		}
		return err
	})
}

// Get returns the milestone of a project or group with an id. The error is ErrNotFound if there is none.
func (s *Store) Get(ctx context.Context, in types.UID, id int64) (m Milestone, err error) {
	err = s.db.Read(ctx, fmt.Sprintf("reading milestone %d", id), func(ctx context.Context, db bun.IDB) error {
		return database.Found(db.NewSelect().Model(&m).ExcludeColumn("text").Where("id = ?", id).Where("subject_uid = ?", in).Scan(ctx), ErrNotFound)
	})
	return m, err
}

// Update locks a milestone of a project or group, changes it with change and returns it, in one transaction. If change returns an error, Update returns
// it and writes nothing. Update returns ErrNotFound if the milestone does not exist, and ErrTaken if its project or group already has the new title.
func (s *Store) Update(ctx context.Context, in types.UID, id int64, change func(ctx context.Context, m *Milestone) error) (m Milestone, err error) {
	err = s.db.Atomically(ctx, fmt.Sprintf("changing milestone %d", id), func(ctx context.Context, db bun.IDB) error {
		// Two changes must not read the same state: the first statement locks the row.
		if _, err := db.NewUpdate().Model((*Milestone)(nil)).Set("updated_at = ?", s.clock.Now().UTC()).Where("id = ?", id).Exec(ctx); err != nil {
			return err
		}
		if m, err = s.Get(ctx, in, id); err != nil {
			return err
		}
		if err := change(ctx, &m); err != nil {
			return err
		}
		taken, err := s.Taken(ctx, m.Title, m.ID, in)
		if err != nil {
			return err
		}
		if taken {
			return ErrTaken
		}
		m.Text = search.Fold(m.Title, m.Description)
		_, err = db.NewUpdate().Model(&m).WherePK().Exec(ctx)
		return err
	})
	return m, err
}

// Taken reports whether a milestone of some projects and groups has a title, apart from the one with an id.
func (s *Store) Taken(ctx context.Context, title string, except int64, in ...types.UID) (taken bool, err error) {
	err = s.db.Read(ctx, "looking up the title of a milestone", func(ctx context.Context, db bun.IDB) error {
		taken, err = db.NewSelect().Model((*Milestone)(nil)).Where("title = ?", title).Where("id <> ?", except).
			Where("subject_uid IN (?)", bun.List(in)).Exists(ctx)
		return err
	})
	return taken, err
}

// Titled returns the milestones of some projects and groups that have a title.
func (s *Store) Titled(ctx context.Context, title string, in ...types.UID) (all []Milestone, err error) {
	if len(in) == 0 {
		return nil, nil
	}
	err = s.db.Read(ctx, "looking up milestones with a title", func(ctx context.Context, db bun.IDB) error {
		return db.NewSelect().Model(&all).ExcludeColumn("text").Where("title = ?", title).Where("subject_uid IN (?)", bun.List(in)).Order("id").Scan(ctx)
	})
	return all, err
}

// Delete removes a milestone. Issues lose it in the same transaction; see issue.Store.ForgetMilestone.
func (s *Store) Delete(ctx context.Context, id int64) error {
	return s.db.Write(ctx, fmt.Sprintf("deleting milestone %d", id), func(ctx context.Context, db bun.IDB) error {
		_, err := db.NewDelete().Model((*Milestone)(nil)).Where("id = ?", id).Exec(ctx)
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
