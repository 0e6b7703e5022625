package mergerequest

import (
	"context"
	"fmt"

	"github.com/uptrace/bun"
	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/internal/database"
)

// subscription says whether a user wants to follow a merge request. It prevails over what follows from the part of the user in it.
type subscription struct {
	bun.BaseModel `bun:"table:merge_request_subscriptions"`

	MergeRequestID int64         `bun:"merge_request_id,pk"`
	User           database.User `bun:"embed:user_"`
	Subscribed     bool          `bun:"subscribed"`
}

// Subscribe subscribes a user to a merge request, or unsubscribes the user if on is false.
func (s *Store) Subscribe(ctx context.Context, id int64, u database.User, on bool) error {
	return s.db.Write(ctx, fmt.Sprintf("subscribing to merge request %d", id), func(ctx context.Context, db bun.IDB) error {
		_, err := db.NewInsert().Model(&subscription{MergeRequestID: id, User: u, Subscribed: on}).
			On("CONFLICT (merge_request_id, user_uid) DO UPDATE").Set("subscribed = EXCLUDED.subscribed").Exec(ctx)
		return err
	})
}

// Subscribed reports whether a user has subscribed to a merge request; known is false if the user has neither subscribed nor unsubscribed.
func (s *Store) Subscribed(ctx context.Context, id int64, user types.UID) (on, known bool, err error) {
	var rows []bool
	err = s.db.Read(ctx, fmt.Sprintf("reading the subscription to merge request %d", id), func(ctx context.Context, db bun.IDB) error {
		return db.NewSelect().Model((*subscription)(nil)).Column("subscribed").Where("merge_request_id = ?", id).Where("user_uid = ?", user).Scan(ctx, &rows)
	})
	if err != nil || len(rows) == 0 {
		return false, false, err
	}
	return rows[0], true, nil
}

// HasMerged reports whether a project has a merged merge request of an author.
func (s *Store) HasMerged(ctx context.Context, project, author types.UID) (has bool, err error) {
	err = s.db.Read(ctx, "looking for an earlier contribution", func(ctx context.Context, db bun.IDB) error {
		has, err = db.NewSelect().Model((*MergeRequest)(nil)).Where("subject_uid = ?", project).Where("author_uid = ?", author).Where("state = ?", Merged).Exists(ctx)
		return err
	})
	return has, err
}
