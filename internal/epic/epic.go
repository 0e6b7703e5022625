// Package epic stores the epics of groups: tables of the activity database.
package epic

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
	"github.com/forgeplane/forgeplane/internal/labeling"
	"github.com/forgeplane/forgeplane/internal/search"
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
	In          database.Subject `bun:"embed:subject_"`
	IID         int64            `bun:"iid"`
	Title       string           `bun:"title"`
	Description string           `bun:"description"`
	// Text is the text for searches. The store writes it and does not read it.
	Text         string        `bun:"text"`
	State        State         `bun:"state"`
	Confidential bool          `bun:"confidential"`
	Author       database.User `bun:"embed:author_"`
	// Start and Due are days in the form of time.DateOnly; empty without one.
	Start string `bun:"start_date"`
	Due   string `bun:"due_date"`
	// Closer is the user who closed the epic. Closer and ClosedAt are empty while it is open.
	Closer   database.User `bun:"embed:closer_"`
	ClosedAt time.Time     `bun:"closed_at,nullzero"`
	Created  time.Time     `bun:"created_at"`
	Updated  time.Time     `bun:"updated_at"`

	// Labels are in a table of their own.
	Labels []Label `bun:"-"`
}

// Label is a label of an epic.
type Label = database.Label

// label is a row of the table of labels.
type label struct {
	bun.BaseModel `bun:"table:epic_labels"`

	EpicID int64 `bun:"epic_id,pk"`
	Label  Label `bun:"embed:label_"`
}

// Item identifies the epic in its notes, reactions and state events.
func (e Epic) Item() database.Item { return database.Item{Kind: Kind, ID: e.ID} }

// Store is the epics in a database. It is safe for concurrent use.
type Store struct {
	db    *database.DB
	clock clock.PassiveClock
}

// New returns the epics of a database. The database must have been opened with Migrations and iid.Migrations.
func New(db *database.DB, c clock.PassiveClock) *Store { return &Store{db, c} }

// Subjects are the epics by their groups, for a sweep.Sweeper.
func (s *Store) Subjects() sweep.Inherited { return sweep.Table(s.db, (*Epic)(nil)) }

// Labels are the labels of epics.
func (s *Store) Labels() labeling.Rows { return labeling.New(s.db, "epic_labels", "epic_id") }

// Create adds an epic with its labels, and completes it.
func (s *Store) Create(ctx context.Context, e *Epic) error {
	e.Created = s.clock.Now().UTC()
	e.Updated, e.State, e.Text = e.Created, Opened, search.Fold(e.Title, e.Description)
	return s.db.Atomically(ctx, fmt.Sprintf("creating an epic in %s", e.In), func(ctx context.Context, db bun.IDB) (err error) {
		if e.IID, err = iid.Next(ctx, s.db, e.In, Kind); err != nil {
			return err
		}
		if _, err = db.NewInsert().Model(e).Returning("id").Exec(ctx); err != nil {
			return err
		}
		return attach(ctx, db, e)
	})
}

// attach writes the labels of an epic. The database must not contain any for it.
func attach(ctx context.Context, db bun.IDB, e *Epic) error {
	if len(e.Labels) == 0 {
		return nil
	}
	rows := make([]label, len(e.Labels))
	for i, l := range e.Labels {
		rows[i] = label{EpicID: e.ID, Label: l}
	}
	_, err := db.NewInsert().Model(&rows).Exec(ctx)
	return err
}

// complete reads the labels of epics.
func complete(ctx context.Context, db bun.IDB, epics []Epic) error {
	if len(epics) == 0 {
		return nil
	}
	at, ids := map[int64]*Epic{}, make([]int64, len(epics))
	for i := range epics {
		at[epics[i].ID], ids[i] = &epics[i], epics[i].ID
	}
	var rows []label
	if err := db.NewSelect().Model(&rows).Where("epic_id IN (?)", bun.List(ids)).Scan(ctx); err != nil {
		return err
	}
	for _, l := range rows {
		at[l.EpicID].Labels = append(at[l.EpicID].Labels, l.Label)
	}
	return nil
}

// Get returns the epic of a group with an id. The error is ErrNotFound if there is none.
func (s *Store) Get(ctx context.Context, group types.UID, id int64) (Epic, error) {
	var found []Epic
	err := s.db.Read(ctx, fmt.Sprintf("reading epic %d", id), func(ctx context.Context, db bun.IDB) error {
		if err := db.NewSelect().Model(&found).ExcludeColumn("text").Where("subject_uid = ?", group).Where("id = ?", id).Scan(ctx); err != nil {
			return err
		}
		if len(found) == 0 {
			return ErrNotFound
		}
		return complete(ctx, db, found)
	})
	if err != nil {
		return Epic{}, err
	}
	return found[0], nil
}

// Update locks an epic, changes it with change and returns it, in one transaction. If change returns an error, Update returns it and writes nothing.
// Update returns ErrNotFound if the epic does not exist.
func (s *Store) Update(ctx context.Context, id int64, change func(ctx context.Context, e *Epic) error) (e Epic, err error) {
	err = s.db.Atomically(ctx, fmt.Sprintf("changing epic %d", id), func(ctx context.Context, db bun.IDB) error {
		// Two changes must not read the same state: the first statement locks the row.
		if err := s.Touch(ctx, id, s.clock.Now()); err != nil {
			return err
		}
		found := make([]Epic, 0, 1)
		if err := db.NewSelect().Model(&found).ExcludeColumn("text").Where("id = ?", id).Scan(ctx); err != nil {
			return err
		}
		if len(found) == 0 {
			return ErrNotFound
		}
		if err := complete(ctx, db, found); err != nil {
			return err
		}
		e = found[0]
		if err := change(ctx, &e); err != nil {
			return err
		}
		e.Text = search.Fold(e.Title, e.Description)
		if _, err := db.NewUpdate().Model(&e).WherePK().Exec(ctx); err != nil {
			return err
		}
		if _, err := db.NewDelete().Model((*label)(nil)).Where("epic_id = ?", id).Exec(ctx); err != nil {
			return err
		}
		return attach(ctx, db, &e)
	})
	return e, err
}

// Touch records the time of a change of an epic or its notes. The error is ErrNotFound if there is no such epic.
func (s *Store) Touch(ctx context.Context, id int64, at time.Time) error {
	return s.db.Write(ctx, fmt.Sprintf("recording a change of epic %d", id), func(ctx context.Context, db bun.IDB) error {
		return found(db.NewUpdate().Model((*Epic)(nil)).Set("updated_at = ?", at.UTC()).Where("id = ?", id).Exec(ctx))
	})
}

// Delete removes an epic with its labels. Other aggregates remove what belongs to the epic in the same transaction. The error is ErrNotFound if there
// is no such epic.
func (s *Store) Delete(ctx context.Context, id int64) error {
	return s.db.Write(ctx, fmt.Sprintf("deleting epic %d", id), func(ctx context.Context, db bun.IDB) error {
		return found(db.NewDelete().Model((*Epic)(nil)).Where("id = ?", id).Exec(ctx))
	})
}

func found(result sql.Result, err error) error { return database.Changed(result, err, ErrNotFound) }
