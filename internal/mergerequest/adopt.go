package mergerequest

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/uptrace/bun"

	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/sweep"
)

// Subjects are the merge requests by their projects, for a sweep.Sweeper. closed is called with the merge requests that a Move closes, in the
// transaction.
func (s *Store) Subjects(closed func(context.Context, MergeRequest) error) sweep.Inherited {
	return subjects{sweep.Table(s.db, (*MergeRequest)(nil)), s, closed}
}

type subjects struct {
	sweep.Inherited
	*Store
	closed func(context.Context, MergeRequest) error
}

// Move implements sweep.Inherited. Merge requests with a source branch in the former project follow, also those of other projects. If two open ones
// would be of the same branches, the older one is closed.
func (m subjects) Move(ctx context.Context, from, to database.Subject, unique ...string) error {
	if err := m.closeRivals(ctx, from, to); err != nil {
		return err
	}
	if err := m.moveSources(ctx, from, to); err != nil {
		return err
	}
	return m.Inherited.Move(ctx, from, to, unique...)
}

func (m subjects) closeRivals(ctx context.Context, from, to database.Subject) error {
	const one = "CASE merge_requests.%[1]s WHEN ?1 THEN ?2 ELSE merge_requests.%[1]s END = CASE o.%[1]s WHEN ?1 THEN ?2 ELSE o.%[1]s END"
	query := "UPDATE merge_requests SET state = 'closed', closed_at = ?0, auto_merge = NULL, auto_merge_pipeline = 0 WHERE state = 'opened' AND (source_uid IN (?1, ?2) OR subject_uid IN (?1, ?2)) AND EXISTS (" +
		"SELECT 1 FROM merge_requests AS o WHERE o.source_uid IN (merge_requests.source_uid, ?1, ?2) AND o.source_branch = merge_requests.source_branch " +
		"AND o.target_branch = merge_requests.target_branch AND o.state IN ('opened', 'locked') AND o.id > merge_requests.id " +
		"AND " + fmt.Sprintf(one, "source_uid") + " AND " + fmt.Sprintf(one, "subject_uid") + ") RETURNING id"
	return m.db.Atomically(ctx, fmt.Sprintf("closing merge requests of the same branches in %s", to), func(ctx context.Context, db bun.IDB) error {
		var ids []int64
		if err := db.NewRaw(query, m.clock.Now().UTC(), from.UID, to.UID).Scan(ctx, &ids); err != nil {
			return err
		}
		for _, id := range ids {
			one, err := m.WithID(ctx, id)
			if err == nil {
				err = m.closed(ctx, one)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// moveSources gives the source branches of a project to another one.
func (s *Store) moveSources(ctx context.Context, from, to database.Subject) error {
	attempt := fmt.Sprintf("giving source branches to %s", to)
	return sweep.InBatches(ctx, s.db, attempt, func(ctx context.Context, db bun.IDB, limit int64) (sql.Result, error) {
		some := db.NewSelect().Model((*MergeRequest)(nil)).Column("id").Where("source_uid = ?", from.UID).Limit(limit)
		return db.NewUpdate().Model((*MergeRequest)(nil)).Set("source_id = ?", to.ID).Set("source_uid = ?", to.UID).Where("id IN (?)", some).Exec(ctx)
	})
}
