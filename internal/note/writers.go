package note

import (
	"context"

	"github.com/uptrace/bun"
	"k8s.io/apimachinery/pkg/types"

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

// Wrote reports whether a user is one of the Writers.
func (s *Store) Wrote(ctx context.Context, on database.Item, user types.UID) (wrote bool, err error) {
	err = s.db.Read(ctx, "finding out whether a user has written notes on "+on.String(), func(ctx context.Context, db bun.IDB) error {
		wrote, err = visible(db.NewSelect().Model((*Note)(nil)), on, Reader{}).Where("NOT system").Where("author_uid = ?", user).Exists(ctx)
		return err
	})
	return wrote, err
}
