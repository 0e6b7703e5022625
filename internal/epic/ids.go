package epic

import (
	"context"

	"github.com/uptrace/bun"
)

// WithIDs returns the epics with some ids by their ids. It leaves out epics that do not exist.
func (s *Store) WithIDs(ctx context.Context, ids ...int64) (map[int64]Epic, error) {
	found := map[int64]Epic{}
	if len(ids) == 0 {
		return found, nil
	}
	var rows []Epic
	err := s.db.Read(ctx, "reading epics", func(ctx context.Context, db bun.IDB) error {
		return db.NewSelect().Model(&rows).ExcludeColumn("text").Where("id IN (?)", bun.List(ids)).Scan(ctx)
	})
	for _, e := range rows {
		found[e.ID] = e
	}
	return found, err
}
