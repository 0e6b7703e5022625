// Package issue stores the issues of projects: tables of the activity database.
package issue

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
	"github.com/forgeplane/forgeplane/internal/follower"
	"github.com/forgeplane/forgeplane/internal/iid"
	"github.com/forgeplane/forgeplane/internal/labeling"
	"github.com/forgeplane/forgeplane/internal/search"
	"github.com/forgeplane/forgeplane/internal/sweep"
)

// Kind is the kind of items that are issues.
const Kind = "issue"

//go:embed migrations
var migrations embed.FS

// Migrations returns the migrations of the tables, for database.Open.
func Migrations() fs.FS { return migrations }

// State is the state of an issue.
type State string

// The states.
const (
	Opened State = "opened"
	Closed State = "closed"
)

// ErrNotFound says that a project has no issue with an iid.
var ErrNotFound = errors.New("there is no such issue")

// Issue is an issue of a project.
type Issue struct {
	bun.BaseModel `bun:"table:issues"`

	ID int64 `bun:"id,pk,autoincrement"`
	// In is the project.
	In          database.Subject `bun:"embed:subject_"`
	IID         int64            `bun:"iid"`
	Title       string           `bun:"title"`
	Description string           `bun:"description"`
	// Text is the text for searches. The store writes it and does not read it.
	Text             string        `bun:"text"`
	State            State         `bun:"state"`
	Type             string        `bun:"issue_type"`
	Confidential     bool          `bun:"confidential"`
	DiscussionLocked bool          `bun:"discussion_locked"`
	Author           database.User `bun:"embed:author_"`
	// MilestoneID and EpicID are 0 without one.
	MilestoneID int64  `bun:"milestone_id"`
	EpicID      int64  `bun:"epic_id"`
	Weight      *int64 `bun:"weight"`
	// Due is a day in the form of time.DateOnly; empty without one.
	Due string `bun:"due_date"`
	// Closer is the user who closed the issue. Closer and ClosedAt are empty while it is open.
	Closer   database.User `bun:"embed:closer_"`
	ClosedAt time.Time     `bun:"closed_at,nullzero"`
	// Estimate and Spent are times in seconds.
	Estimate int64     `bun:"time_estimate"`
	Spent    int64     `bun:"time_spent"`
	Created  time.Time `bun:"created_at"`
	Updated  time.Time `bun:"updated_at"`

	// Labels and Assignees are in tables of their own.
	Labels    []Label         `bun:"-"`
	Assignees []database.User `bun:"-"`
}

// Label is a label of an issue.
type Label = database.Label

// Item identifies the issue in its notes, reactions and state events.
func (i Issue) Item() database.Item { return database.Item{Kind: Kind, ID: i.ID} }

// label and assignee are rows of the tables that join issues with labels and users.
type label struct {
	bun.BaseModel `bun:"table:issue_labels"`

	IssueID int64 `bun:"issue_id,pk"`
	Label   Label `bun:"embed:label_"`
}

type assignee struct {
	bun.BaseModel `bun:"table:issue_assignees"`

	IssueID  int64         `bun:"issue_id,pk"`
	User     database.User `bun:"embed:user_"`
	Position int           `bun:"position"`
}

// Store is the issues in a database. It is safe for concurrent use.
type Store struct {
	follower.Choices

	db     *database.DB
	clock  clock.PassiveClock
	counts database.Counts
}

// New returns the issues of a database. The database must have been opened with Migrations and iid.Migrations.
func New(db *database.DB, c clock.PassiveClock) *Store {
	return &Store{follower.New(db, "issue_subscriptions", "issue_id"), db, c, database.NewCounts()}
}

// Subjects are the issues by their projects, for a sweep.Sweeper.
func (s *Store) Subjects() sweep.Inherited { return sweep.Table(s.db, (*Issue)(nil)) }

// Labels are the labels of issues.
func (s *Store) Labels() labeling.Rows { return labeling.New(s.db, "issue_labels", "issue_id") }

// Create adds an issue with its labels and assignees, and completes it. If Created is not zero, it stays.
func (s *Store) Create(ctx context.Context, i *Issue) error {
	if i.Created.IsZero() {
		i.Created = s.clock.Now().UTC()
	}
	i.Updated, i.State, i.Text = i.Created, Opened, search.Fold(i.Title, i.Description)
	return s.db.Atomically(ctx, fmt.Sprintf("creating an issue in %s", i.In), func(ctx context.Context, db bun.IDB) (err error) {
		if i.IID, err = iid.Next(ctx, s.db, i.In, Kind); err != nil {
			return err
		}
		if _, err = db.NewInsert().Model(i).Returning("id").Exec(ctx); err != nil {
			return err
		}
		return attach(ctx, db, i)
	})
}

// attach writes the labels and assignees of a new issue.
func attach(ctx context.Context, db bun.IDB, i *Issue) error {
	labels, assignees := make([]label, len(i.Labels)), make([]assignee, len(i.Assignees))
	for n, l := range i.Labels {
		labels[n] = label{IssueID: i.ID, Label: l}
	}
	for n, u := range i.Assignees {
		assignees[n] = assignee{IssueID: i.ID, User: u, Position: n}
	}
	if len(labels) > 0 {
		if _, err := db.NewInsert().Model(&labels).Exec(ctx); err != nil {
			return err
		}
	}
	if len(assignees) > 0 {
		if _, err := db.NewInsert().Model(&assignees).Exec(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Get returns the issue of a project with an iid. The error is ErrNotFound if there is none.
func (s *Store) Get(ctx context.Context, project types.UID, number int64) (Issue, error) {
	return s.get(ctx, fmt.Sprintf("reading issue %d", number), "subject_uid = ? AND iid = ?", project, number)
}

func (s *Store) get(ctx context.Context, attempt, where string, args ...any) (Issue, error) {
	var found []Issue
	err := s.db.Read(ctx, attempt, func(ctx context.Context, db bun.IDB) error {
		if err := db.NewSelect().Model(&found).ExcludeColumn("text").Where(where, args...).Scan(ctx); err != nil {
			return err
		}
		if len(found) == 0 {
			return ErrNotFound
		}
		return complete(ctx, db, found)
	})
	if err != nil {
		return Issue{}, err
	}
	return found[0], nil
}

// WithID returns the issue with an id, of any project. The error is ErrNotFound if there is none.
func (s *Store) WithID(ctx context.Context, id int64) (Issue, error) {
	return s.get(ctx, fmt.Sprintf("reading the issue with the id %d", id), "id = ?", id)
}

// complete reads the labels and assignees of issues.
func complete(ctx context.Context, db bun.IDB, issues []Issue) error {
	if len(issues) == 0 {
		return nil
	}
	at, ids := map[int64]*Issue{}, make([]int64, len(issues))
	for n := range issues {
		at[issues[n].ID], ids[n] = &issues[n], issues[n].ID
	}
	var labels []label
	if err := db.NewSelect().Model(&labels).Where("issue_id IN (?)", bun.List(ids)).Scan(ctx); err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	for _, l := range labels {
		at[l.IssueID].Labels = append(at[l.IssueID].Labels, l.Label)
	}
	var assignees []assignee
	if err := db.NewSelect().Model(&assignees).Where("issue_id IN (?)", bun.List(ids)).Order("position").Scan(ctx); err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	for _, a := range assignees {
		at[a.IssueID].Assignees = append(at[a.IssueID].Assignees, a.User)
	}
	return nil
}
