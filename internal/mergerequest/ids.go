package mergerequest

import (
	"context"

	"github.com/uptrace/bun"
	"k8s.io/apimachinery/pkg/types"
)

// WithIDs returns the merge requests with some ids, without their descriptions. It leaves out missing ones.
func (s *Store) WithIDs(ctx context.Context, ids ...int64) ([]MergeRequest, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	return s.brief(ctx, "reading merge requests", func(q *bun.SelectQuery) *bun.SelectQuery { return q.Where("id IN (?)", bun.List(ids)) })
}

// OpenFrom returns the first open merge requests from a branch of a project, by their ids, without their descriptions.
func (s *Store) OpenFrom(ctx context.Context, project types.UID, branch string, most int) ([]MergeRequest, error) {
	return s.brief(ctx, "reading the merge requests from a branch", func(q *bun.SelectQuery) *bun.SelectQuery {
		return q.Where("source_uid = ? AND source_branch = ?", project, branch).Where("state IN (?)", bun.List([]State{Opened, Locked})).Order("id").Limit(int64(most))
	})
}

// brief returns merge requests without their descriptions.
func (s *Store) brief(ctx context.Context, attempt string, which func(*bun.SelectQuery) *bun.SelectQuery) (some []MergeRequest, err error) {
	err = s.db.Read(ctx, attempt, func(ctx context.Context, db bun.IDB) error {
		if err := which(db.NewSelect().Model(&some).ExcludeColumn("text", "description")).Scan(ctx); err != nil {
			return err
		}
		return complete(ctx, db, some)
	})
	return some, err
}
