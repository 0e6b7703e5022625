package record

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/uptrace/bun"
)

// Cleanup is the record of a run of a cleanup in a repository.
type Cleanup struct {
	bun.BaseModel `bun:"table:container_cleanups"`

	Run          string `bun:"run,pk"`
	RepositoryID int64  `bun:"repository_id,pk"`
	// Began is the time at which the run began there.
	Began    time.Time `bun:"began_at"`
	Progress string    `bun:"progress"`
}

// remembered is the minimum time for which the beginning of a run in a repository is recorded. A run that takes longer may begin again.
const remembered = 7 * 24 * time.Hour

// BeginCleanup begins a run in a repository at a time, unless another run began there less than an interval before, and reports whether the run
// has begun. A run that has begun stays so, in any process, so it goes on after its process has ended, and whatever other runs do. The record is
// what all processes agree on, so only one of several simultaneous runs begins. The error is ErrDeleted or ErrNotFound for a repository that
// takes no changes.
func (s *Store) BeginCleanup(ctx context.Context, id int64, run string, at time.Time, interval time.Duration) (c Cleanup, began bool, err error) {
	at = at.UTC()
	err = s.db.Atomically(ctx, "beginning a cleanup", func(ctx context.Context, db bun.IDB) error {
		own := db.NewSelect().Model((*Cleanup)(nil)).Column("run").Where("repository_id = ?", id).Where("run = ?", run)
		err := s.update(ctx, "beginning a cleanup", id, func(q *bun.UpdateQuery) *bun.UpdateQuery {
			return q.Set("cleanup_at = ?", at).Where("status = ''").Where("NOT EXISTS (?)", own).
				Where("cleanup_at IS NULL OR cleanup_at <= ?", at.Add(-interval))
		})
		if err != nil {
			return err
		}
		if _, err := db.NewDelete().Model((*Cleanup)(nil)).Where("repository_id = ?", id).Where("began_at < ?", at.Add(-remembered)).Exec(ctx); err != nil {
			return err
		}
		_, err = db.NewInsert().Model(&Cleanup{Run: run, RepositoryID: id, Began: s.clock.Now().UTC()}).Exec(ctx)
		return err
	})
	if err != nil && !errors.Is(err, ErrDeleted) {
		return Cleanup{}, false, err
	}
	if r, err := s.Get(ctx, id); err != nil {
		return Cleanup{}, false, err
	} else if r.Status != "" {
		return Cleanup{}, false, ErrDeleted
	}
	err = s.db.Read(ctx, "reading the progress of a cleanup", func(ctx context.Context, db bun.IDB) error {
		err := db.NewSelect().Model(&c).Where("repository_id = ?", id).Where("run = ?", run).Scan(ctx)
		began = err == nil
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		return err
	})
	c.Began = c.Began.UTC()
	return c, began, err
}

// CancelCleanup takes back the beginning of a run in a repository in which the run has done nothing.
func (s *Store) CancelCleanup(ctx context.Context, id int64, run string) error {
	return s.db.Atomically(ctx, "taking back a cleanup", func(ctx context.Context, db bun.IDB) error {
		result, err := db.NewDelete().Model((*Cleanup)(nil)).Where("repository_id = ?", id).Where("run = ?", run).Exec(ctx)
		if err != nil {
			return err
		}
		if n, err := result.RowsAffected(); err != nil || n == 0 {
			return err
		}
		_, err = db.NewUpdate().Model((*Repository)(nil)).Set("cleanup_at = NULL").Where("id = ?", id).Exec(ctx)
		return err
	})
}

// Cleanups returns the records of a run for the repositories in which it has begun, by their ids.
func (s *Store) Cleanups(ctx context.Context, run string) (map[int64]Cleanup, error) {
	var found []Cleanup
	err := s.db.Read(ctx, "reading the progress of a cleanup", func(ctx context.Context, db bun.IDB) error {
		return db.NewSelect().Model(&found).Where("run = ?", run).Scan(ctx)
	})
	all := make(map[int64]Cleanup, len(found))
	for _, c := range found {
		c.Began = c.Began.UTC()
		all[c.RepositoryID] = c
	}
	return all, err
}

// RecordCleanup records the progress of a run that has begun in a repository, for a process that takes over. The error is ErrNotFound if the
// repository is gone.
func (s *Store) RecordCleanup(ctx context.Context, id int64, run, progress string) error {
	var recorded int64
	err := s.db.Write(ctx, "recording the progress of a cleanup", func(ctx context.Context, db bun.IDB) error {
		result, err := db.NewUpdate().Model((*Cleanup)(nil)).Set("progress = ?", progress).Where("repository_id = ?", id).Where("run = ?", run).Exec(ctx)
		if err != nil {
			return err
		}
		recorded, err = result.RowsAffected()
		return err
	})
	if err == nil && recorded == 0 {
		err = ErrNotFound
	}
	return err
}
