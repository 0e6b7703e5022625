// Package follower keeps which users have chosen to follow items, in tables of the activity database.
package follower

import (
	"context"
	"fmt"

	"github.com/uptrace/bun"
	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/internal/database"
)

// Choices are the rows of a table: each says whether a user wants to follow an item. It prevails over what follows from the part of the user in the
// item. The columns are the id of an item, user_id, user_uid and subscribed.
type Choices struct {
	db          *database.DB
	table, item string
}

// New returns the choices in a table. item is the column with the id of the item.
func New(db *database.DB, table, item string) Choices { return Choices{db, table, item} }

// Subscribe subscribes a user to an item, or unsubscribes the user if on is false.
func (c Choices) Subscribe(ctx context.Context, id int64, u database.User, on bool) error {
	return c.db.Write(ctx, fmt.Sprintf("writing the subscription of user %d to item %d", u.ID, id), func(ctx context.Context, db bun.IDB) error {
		_, err := db.NewRaw("INSERT INTO ?0 (?1, user_id, user_uid, subscribed) VALUES (?2, ?3, ?4, ?5) "+
			"ON CONFLICT (?1, user_uid) DO UPDATE SET subscribed = EXCLUDED.subscribed", bun.Ident(c.table), bun.Ident(c.item), id, u.ID, u.UID, on).Exec(ctx)
		return err
	})
}

// Subscribed reports whether a user has subscribed to an item; known is false if the user has neither subscribed nor unsubscribed.
func (c Choices) Subscribed(ctx context.Context, id int64, user types.UID) (on, known bool, err error) {
	var rows []bool
	err = c.db.Read(ctx, fmt.Sprintf("reading a subscription to item %d", id), func(ctx context.Context, db bun.IDB) error {
		return db.NewSelect().Table(c.table).Column("subscribed").Where("?0 = ?1", bun.Ident(c.item), id).Where("user_uid = ?", user).Scan(ctx, &rows)
	})
	if err != nil || len(rows) == 0 {
		return false, false, err
	}
	return rows[0], true, nil
}
