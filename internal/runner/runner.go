// Package runner stores the runners that execute jobs: tables of the activity database.
package runner

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/uptrace/bun"
	"k8s.io/utils/clock"

	"github.com/forgeplane/forgeplane/internal/credential"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/sweep"
)

//go:embed migrations
var migrations embed.FS

// Migrations returns the migrations of the tables, for database.Open.
func Migrations() fs.FS { return migrations }

// Type says whose jobs a runner executes.
type Type string

// The types of runners.
const (
	OfInstance Type = "instance_type"
	OfGroup    Type = "group_type"
	OfProject  Type = "project_type"
)

// ErrNotFound says that there is no runner with an id or a token.
var ErrNotFound = errors.New("there is no such runner")

// Runner is a program that executes jobs.
type Runner struct {
	bun.BaseModel `bun:"table:runners"`

	ID          int64  `bun:"id,pk,autoincrement"`
	Type        Type   `bun:"type"`
	Description string `bun:"description"`
	// Digest is the digest of the authentication token.
	Digest string `bun:"digest"`
	// A paused runner gets no jobs.
	Paused bool `bun:"paused"`
	// Locked says that the runner of a project cannot be assigned to other projects.
	Locked bool `bun:"locked"`
	// RunUntagged says that the runner also executes jobs without tags, and Protected that it executes only those of protected branches.
	RunUntagged bool `bun:"run_untagged"`
	Protected   bool `bun:"protected"`
	// Tags are the tags that the jobs of the runner can have.
	Tags []string `bun:"tags,type:text"`
	// MaximumTimeout limits the time of a job; 0 for no limit.
	MaximumTimeout  time.Duration `bun:"maximum_timeout"`
	MaintenanceNote string        `bun:"maintenance_note"`
	// User is the user who created the runner; zero if it registered itself.
	User    database.User `bun:"embed:user_"`
	Created time.Time     `bun:"created_at"`
	// Changed is the time of the last change of what decides about the jobs of the runner.
	Changed time.Time `bun:"changed_at"`
	// Contacted is the time of the last request of the runner, up to a minute late.
	Contacted time.Time `bun:"contacted_at,nullzero"`
	Program
}

// Program describes the program of a runner, in its own words.
type Program struct {
	Name         string `bun:"name"`
	Version      string `bun:"version"`
	Revision     string `bun:"revision"`
	Platform     string `bun:"platform"`
	Architecture string `bun:"architecture"`
	Executor     string `bun:"executor"`
	// Address is the address that the runner has called from.
	Address string `bun:"address"`
}

// Place is a project or group whose jobs a runner executes.
type Place struct {
	bun.BaseModel `bun:"table:runner_places"`

	ID       int64            `bun:"id,pk,autoincrement"`
	RunnerID int64            `bun:"runner_id"`
	In       database.Subject `bun:"embed:subject_"`
}

// Store is the runners in a database. It is safe for concurrent use.
type Store struct {
	db    *database.DB
	clock clock.PassiveClock
}

// New returns the runners of a database, which must have been opened with Migrations.
func New(db *database.DB, c clock.PassiveClock) *Store { return &Store{db, c} }

// Subjects are the places of runners, for a sweep.Sweeper.
func (s *Store) Subjects() sweep.Inherited { return sweep.Table(s.db, (*Place)(nil)) }

// Prefix begins the authentication tokens of runners.
const Prefix = "glrt-"

// NewToken returns a new authentication token.
func NewToken() string { return credential.NewToken(Prefix) }

// Create adds a runner with an authentication token and its places, and completes it.
func (s *Store) Create(ctx context.Context, r *Runner, token string, places ...database.Subject) error {
	now := s.clock.Now().UTC()
	r.Digest, r.Created, r.Changed = credential.Digest(token), now, now
	return s.db.Atomically(ctx, "creating a runner", func(ctx context.Context, db bun.IDB) error {
		if _, err := db.NewInsert().Model(r).Returning("id").Exec(ctx); err != nil {
			return err
		}
		for _, in := range places {
			if err := s.Assign(ctx, r.ID, in); err != nil {
				return err
			}
		}
		return nil
	})
}

// Assign lets a runner execute the jobs of a project as well.
func (s *Store) Assign(ctx context.Context, id int64, in database.Subject) error {
	return s.db.Atomically(ctx, fmt.Sprintf("assigning runner %d to %s", id, in), func(ctx context.Context, db bun.IDB) error {
		if _, err := db.NewInsert().Model(&Place{RunnerID: id, In: in}).On("CONFLICT (runner_id, subject_uid) DO NOTHING").Exec(ctx); err != nil {
			return err
		}
		return found(db.NewUpdate().Model((*Runner)(nil)).Set("changed_at = ?", s.clock.Now().UTC()).Where("id = ?", id).Exec(ctx))
	})
}

// Unassign takes the jobs of a project from a runner. The error is ErrNotFound if it was not assigned to the project.
func (s *Store) Unassign(ctx context.Context, id int64, in database.Subject) error {
	return s.db.Write(ctx, fmt.Sprintf("removing runner %d from %s", id, in), func(ctx context.Context, db bun.IDB) error {
		return found(db.NewDelete().Model((*Place)(nil)).Where("runner_id = ?", id).Where("subject_uid = ?", in.UID).Exec(ctx))
	})
}

// Update replaces what users can change of a runner. The error is ErrNotFound if the runner does not exist any more.
func (s *Store) Update(ctx context.Context, r Runner) error {
	r.Changed = s.clock.Now().UTC()
	return s.db.Write(ctx, fmt.Sprintf("changing runner %d", r.ID), func(ctx context.Context, db bun.IDB) error {
		return found(db.NewUpdate().Model(&r).Column("changed_at", "description", "paused", "locked", "run_untagged", "protected", "tags", "maximum_timeout",
			"maintenance_note").WherePK().Exec(ctx))
	})
}

// Reset gives a runner another authentication token. The error is ErrNotFound if the runner does not exist any more.
func (s *Store) Reset(ctx context.Context, id int64, token string) error {
	return s.db.Write(ctx, fmt.Sprintf("resetting the token of runner %d", id), func(ctx context.Context, db bun.IDB) error {
		return found(db.NewUpdate().Model((*Runner)(nil)).Set("digest = ?", credential.Digest(token)).Where("id = ?", id).Exec(ctx))
	})
}

// Delete removes a runner. If it does not exist, the error is ErrNotFound.
func (s *Store) Delete(ctx context.Context, id int64) error {
	return s.db.Write(ctx, fmt.Sprintf("deleting runner %d", id), func(ctx context.Context, db bun.IDB) error {
		return found(db.NewDelete().Model((*Runner)(nil)).Where("id = ?", id).Exec(ctx))
	})
}

// contactInterval is the time for which Contact does not record another contact.
const contactInterval = time.Minute

// Contact records that a runner has made a request, and what it says of itself, once a minute.
func (s *Store) Contact(ctx context.Context, r Runner, p Program) error {
	now := s.clock.Now().UTC()
	if now.Sub(r.Contacted) < contactInterval && r.Program == p {
		return nil
	}
	r.Contacted, r.Program = now, p
	return s.db.Write(ctx, fmt.Sprintf("recording the contact of runner %d", r.ID), func(ctx context.Context, db bun.IDB) error {
		_, err := db.NewUpdate().Model(&r).Column("contacted_at", "name", "version", "revision", "platform", "architecture", "executor", "address").
			WherePK().Exec(ctx)
		return err
	})
}

func found(result sql.Result, err error) error { return database.Changed(result, err, ErrNotFound) }
