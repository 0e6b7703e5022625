// Package schedule stores the schedules that create pipelines: tables of the activity database.
package schedule

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"time"

	"github.com/uptrace/bun"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/fair"
	"github.com/forgeplane/forgeplane/internal/job"
	"github.com/forgeplane/forgeplane/internal/sweep"
	"github.com/forgeplane/forgeplane/internal/timetable"
)

//go:embed migrations
var migrations embed.FS

// Migrations returns the migrations of the tables, for database.Open.
func Migrations() fs.FS { return migrations }

const (
	// QueueName is the name of the queue whose tasks create the pipelines. The key of a task is the id of the schedule.
	QueueName = "pipeline-schedules"
	// Max is the maximum number of schedules of a project.
	Max = 50
	// MaxVariables is the maximum number of variables of a schedule.
	MaxVariables = 100
)

var (
	// ErrNotFound says that there is no such schedule or variable.
	ErrNotFound = errors.New("there is no such schedule or variable")
	// ErrExists says that a schedule has a variable with the key.
	ErrExists = errors.New("the schedule has a variable with this key")
	// ErrTooMany says that a project has Max schedules, or a schedule MaxVariables variables.
	ErrTooMany = errors.New("there are too many schedules in the project, or variables of the schedule")
)

// Schedule creates pipelines of a branch or tag at the times of a timetable.
type Schedule struct {
	bun.BaseModel `bun:"table:pipeline_schedules"`

	ID int64 `bun:"id,pk,autoincrement"`
	// In is the project.
	In          database.Subject `bun:"embed:subject_"`
	Description string           `bun:"description"`
	// Ref is the name of a branch or tag.
	Ref string `bun:"ref"`
	// Cron and Zone are the arguments of timetable.Parse.
	Cron   string `bun:"cron"`
	Zone   string `bun:"zone"`
	Active bool   `bun:"active"`
	// Owner is the user with whose rights the pipelines run.
	Owner database.User `bun:"embed:owner_"`
	// Next is the next time of the timetable.
	Next    time.Time `bun:"next_run_at"`
	Created time.Time `bun:"created_at"`
	Updated time.Time `bun:"updated_at"`
}

// Variable is a variable that the pipelines of a schedule get.
type Variable struct {
	bun.BaseModel `bun:"table:pipeline_schedule_variables"`

	ScheduleID int64  `bun:"schedule_id,pk"`
	Key        string `bun:"key,pk"`
	Value      string `bun:"value"`
	Type       string `bun:"type"`
}

// Store is the schedules in a database. It is safe for concurrent use.
type Store struct {
	db    *database.DB
	clock clock.PassiveClock
	// tasks is the queue with a task for each active schedule.
	tasks *job.Queue
}

// New returns the schedules of a database. The database must have been opened with Migrations and job.Migrations.
func New(db *database.DB, c clock.PassiveClock) *Store {
	return &Store{db, c, job.NewQueue(db, job.QueueOptions{Name: QueueName})}
}

// Subjects are the schedules by their projects, for a sweep.Sweeper.
func (s *Store) Subjects() sweep.Inherited { return sweep.Table(s.db, (*Schedule)(nil)) }

// Create adds a schedule and completes it. The error is one of timetable.Parse, or ErrTooMany.
func (s *Store) Create(ctx context.Context, of *Schedule) error {
	of.Created = s.clock.Now().UTC()
	if err := s.plan(of); err != nil {
		return err
	}
	return s.db.Atomically(ctx, "creating a schedule", func(ctx context.Context, db bun.IDB) error {
		n, err := db.NewSelect().Model((*Schedule)(nil)).Where("subject_uid = ?", of.In.UID).Count(ctx)
		if err != nil {
			return err
		}
		if n >= Max {
			return ErrTooMany
		}
		if _, err := db.NewInsert().Model(of).Returning("id").Exec(ctx); err != nil {
			return err
		}
		return s.wait(ctx, of)
	})
}

// plan sets the times of a schedule that changes now.
func (s *Store) plan(of *Schedule) error {
	now := s.clock.Now().UTC()
	t, err := timetable.Parse(of.Cron, of.Zone, now)
	if err != nil {
		return err
	}
	of.Updated, of.Next = now, t.Next(now)
	return nil
}

// wait adds the task of an active schedule.
func (s *Store) wait(ctx context.Context, of *Schedule) error {
	if !of.Active {
		return nil
	}
	return s.tasks.AddAfter(ctx, job.Task{Key: strconv.FormatInt(of.ID, 10), Tenant: fair.User(of.Owner.ID)}, max(0, of.Next.Sub(s.clock.Now())))
}

// Update replaces what users can change of a schedule, and completes it. The error is one of timetable.Parse, or ErrNotFound if it is gone.
func (s *Store) Update(ctx context.Context, of *Schedule) error {
	if err := s.plan(of); err != nil {
		return err
	}
	return s.db.Atomically(ctx, fmt.Sprintf("changing schedule %d", of.ID), func(ctx context.Context, db bun.IDB) error {
		err := found(db.NewUpdate().Model(of).Column("description", "ref", "cron", "zone", "active", "owner_id", "owner_uid", "next_run_at", "updated_at").
			WherePK().Exec(ctx))
		if err != nil {
			return err
		}
		return s.wait(ctx, of)
	})
}

// Due returns the schedule of a task, if it is active and its time has come. Otherwise due is false, and the task waits for the next time if there is
// one.
func (s *Store) Due(ctx context.Context, key string) (of Schedule, due bool, err error) {
	id, err := strconv.ParseInt(key, 10, 64)
	if err != nil {
		return Schedule{}, false, fmt.Errorf("reading the id of a schedule: %w", err)
	}
	some, err := s.list(ctx, database.Where("schedule.id = ?", id), 0, 1)
	if err != nil || len(some) == 0 || !some[0].Active {
		return Schedule{}, false, err
	}
	if of = some[0]; of.Next.After(s.clock.Now()) {
		err := s.wait(ctx, &of)
		return of, false, err
	}
	return of, true, nil
}

// Done records that the pipeline of a time was created, and waits for the next time. If the schedule has changed meanwhile, it does nothing.
func (s *Store) Done(ctx context.Context, of Schedule) error {
	now := s.clock.Now().UTC()
	t, err := timetable.Parse(of.Cron, of.Zone, now)
	if err != nil {
		return err
	}
	was := of.Next
	of.Next = t.Next(now)
	return s.db.Atomically(ctx, fmt.Sprintf("planning schedule %d", of.ID), func(ctx context.Context, db bun.IDB) error {
		err := found(db.NewUpdate().Model(&of).Column("next_run_at").WherePK().Where("next_run_at = ?", was).Exec(ctx))
		if errors.Is(err, ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		return s.wait(ctx, &of)
	})
}

// Delete removes a schedule. The error is ErrNotFound if it is gone.
func (s *Store) Delete(ctx context.Context, id int64) error {
	return s.db.Write(ctx, fmt.Sprintf("deleting schedule %d", id), func(ctx context.Context, db bun.IDB) error {
		return found(db.NewDelete().Model((*Schedule)(nil)).Where("id = ?", id).Exec(ctx))
	})
}

// Query selects the schedules of a project. Active is nil for all.
type Query struct {
	Project types.UID
	Active  *bool
}

func (q Query) condition() database.Condition {
	if q.Active == nil {
		return database.Where("schedule.subject_uid = ?", q.Project)
	}
	return database.Where("schedule.subject_uid = ? AND schedule.active = ?", q.Project, *q.Active)
}

// List skips some schedules and returns at most so many of those that follow, in the order of their ids.
func (s *Store) List(ctx context.Context, q Query, skip, most int) ([]Schedule, error) {
	return s.list(ctx, q.condition(), skip, most)
}

func (s *Store) list(ctx context.Context, of database.Condition, skip, most int) (some []Schedule, err error) {
	err = s.db.Read(ctx, "listing schedules", func(ctx context.Context, db bun.IDB) error {
		q := database.Select(db, db.NewSelect().Model(&some), []database.Condition{of})
		return q.Order("schedule.id").Offset(int64(skip)).Limit(int64(most)).Scan(ctx)
	})
	return some, err
}

// Count returns the number of schedules.
func (s *Store) Count(ctx context.Context, of Query) (n int, err error) {
	err = s.db.Read(ctx, "counting schedules", func(ctx context.Context, db bun.IDB) error {
		count, err := database.Select(db, db.NewSelect().Model((*Schedule)(nil)), []database.Condition{of.condition()}).Count(ctx)
		n = int(count)
		return err
	})
	return n, err
}

// Get returns the schedule of a project with an id. If the schedule does not exist, the error is ErrNotFound.
func (s *Store) Get(ctx context.Context, project types.UID, id int64) (Schedule, error) {
	some, err := s.list(ctx, database.Where("schedule.subject_uid = ? AND schedule.id = ?", project, id), 0, 1)
	if err == nil && len(some) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return Schedule{}, err
	}
	return some[0], nil
}

func found(result sql.Result, err error) error { return database.Changed(result, err, ErrNotFound) }
