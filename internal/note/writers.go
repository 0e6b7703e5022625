package note

import (
	"context"

	"github.com/uptrace/bun"

	"github.com/forgeplane/forgeplane/internal/database"
)

// Writers returns the users who have written notes on an item, in the order of their first notes. Internal and system notes do not count.
func (s *Store) Writers(ctx context.Context, on database.Item) (users []database.User, err error) {
	var rows []struct {
		Author database.User `bun:"embed:author_"`
	}
	err = s.db.Read(ctx, "finding who has written notes on "+on.String(), func(ctx context.Context, db bun.IDB) error {
		return visible(db.NewSelect().Model((*Note)(nil)), on, Reader{}).Column("author_id", "author_uid").Where("NOT system").
			Group("author_id", "author_uid").OrderExpr("min(id)").Scan(ctx, &rows)
	})
	for _, r := range rows {
		users = append(users, r.Author)
	}
	return users, err
}
