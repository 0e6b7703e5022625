package mergerequest

import (
	"context"

	"github.com/uptrace/bun"
)

// WithIDs returns the merge requests with some ids, without their descriptions. It leaves out missing ones.
func (s *Store) WithIDs(ctx context.Context, ids ...int64) (some []MergeRequest, err error) {
	if len(ids) == 0 {
		return nil, nil
	}
	err = s.db.Read(ctx, "reading merge requests", func(ctx context.Context, db bun.IDB) error {
		if err := db.NewSelect().Model(&some).ExcludeColumn("text", "description").Where("id IN (?)", bun.List(ids)).Scan(ctx); err != nil {
			return err
		}
		return complete(ctx, db, some)
	})
	return some, err
}
