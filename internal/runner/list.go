package runner

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect"
	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/internal/credential"
	"github.com/forgeplane/forgeplane/internal/database"
)

// Condition is true of some runners.
type Condition = database.Condition

// WithIDs is true of runners with one of some ids.
func WithIDs(ids ...int64) Condition { return database.Among("runner.id", ids) }

// Of is true of runners of a type.
func Of(t Type) Condition { return database.Where("runner.type = ?", t) }

// Paused is true of runners that get no jobs, or of the others.
func Paused(is bool) Condition { return database.Where("runner.paused = ?", is) }

// HeardSince is true of runners whose last request was at a time or later.
func HeardSince(at time.Time) Condition {
	return database.Where("runner.contacted_at IS NOT NULL AND runner.contacted_at >= ?", database.Time(at))
}

// SilentSince is true of runners whose last request was before a time.
func SilentSince(at time.Time) Condition {
	return database.Where("runner.contacted_at IS NOT NULL AND runner.contacted_at < ?", database.Time(at))
}

// NeverContacted is true of runners that have made no request yet.
func NeverContacted() Condition { return database.Where("runner.contacted_at IS NULL") }

// Tagged is true of runners that have a tag.
func Tagged(tag string) Condition {
	return func(db bun.IDB) (string, []any) {
		quoted, _ := json.Marshal(tag) // a text has a JSON form
		if db.Dialect().Name() == dialect.PG {
			return "strpos(runner.tags, ?) > 0", []any{string(quoted)}
		}
		return "instr(runner.tags, ?) > 0", []any{string(quoted)}
	}
}

// In is true of the runners that are assigned to one of some projects and groups.
func In(places ...types.UID) Condition {
	if len(places) == 0 {
		return database.Where("FALSE")
	}
	return database.Where("runner.id IN (SELECT runner_id FROM runner_places WHERE subject_uid IN (?))", bun.List(places))
}

// List skips some runners, the newest first, and returns at most so many of those that follow.
func (s *Store) List(ctx context.Context, of []Condition, skip, most int) (some []Runner, err error) {
	err = s.db.Read(ctx, "listing runners", func(ctx context.Context, db bun.IDB) error {
		q := database.Select(db, db.NewSelect().Model((*Runner)(nil)), of)
		return q.Model(&some).OrderExpr("runner.id DESC").Offset(int64(skip)).Limit(int64(most)).Scan(ctx)
	})
	return some, err
}

// Count returns the number of runners. It stops counting at most.
func (s *Store) Count(ctx context.Context, of []Condition, most int) (n int, err error) {
	err = s.db.Read(ctx, "counting runners", func(ctx context.Context, db bun.IDB) error {
		q := database.Select(db, db.NewSelect().Model((*Runner)(nil)), of)
		return db.NewSelect().TableExpr("(?) AS selected", q.Column("id").Limit(int64(most))).ColumnExpr("count(*)").Scan(ctx, &n)
	})
	return n, err
}

// Version returns a text that changes when a runner could get other jobs than before.
func (s *Store) Version(ctx context.Context) (version string, err error) {
	err = s.db.Read(ctx, "reading the last change of a runner", func(ctx context.Context, db bun.IDB) error {
		return db.NewSelect().Model((*Runner)(nil)).ColumnExpr("coalesce(CAST(max(runner.changed_at) AS TEXT), '-')").Scan(ctx, &version)
	})
	return version, err
}

// Get returns the runner with an id. If it does not exist, the error is ErrNotFound.
func (s *Store) Get(ctx context.Context, id int64) (Runner, error) { return s.one(ctx, WithIDs(id)) }

// ByToken returns the runner with an authentication token. If it does not exist, the error is ErrNotFound.
func (s *Store) ByToken(ctx context.Context, token string) (Runner, error) {
	return s.one(ctx, database.Where("runner.digest = ?", credential.Digest(token)))
}

func (s *Store) one(ctx context.Context, c Condition) (Runner, error) {
	some, err := s.List(ctx, []Condition{c}, 0, 1)
	if err == nil && len(some) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return Runner{}, err
	}
	return some[0], nil
}

// Places returns the projects or the group of a runner, in the order of their ids.
func (s *Store) Places(ctx context.Context, id int64) (all []database.Subject, err error) {
	var rows []Place
	err = s.db.Read(ctx, fmt.Sprintf("reading the projects of runner %d", id), func(ctx context.Context, db bun.IDB) error {
		return db.NewSelect().Model(&rows).Where("runner_id = ?", id).Order("subject_id").Scan(ctx)
	})
	for _, r := range rows {
		all = append(all, r.In)
	}
	return all, err
}

// Assigned returns the UIDs of all projects and groups that runners are assigned to.
func (s *Store) Assigned(ctx context.Context) (all []types.UID, err error) {
	err = s.db.Read(ctx, "reading the projects of runners", func(ctx context.Context, db bun.IDB) error {
		return db.NewSelect().Model((*Place)(nil)).ColumnExpr("DISTINCT subject_uid").Scan(ctx, &all)
	})
	return all, err
}
