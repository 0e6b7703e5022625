package item

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/entity"
	"github.com/forgeplane/forgeplane/internal/bottoken"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/database"
)

// Users returns public summaries of the users that rows name, including bots. Deleted users and zero values are left out.
func Users(ctx context.Context, c *catalog.Catalog, webURL string, users ...database.User) (map[types.UID]*entity.UserSummary, error) {
	shown := map[types.UID]*entity.UserSummary{}
	for _, row := range users {
		if row.UID == "" || shown[row.UID] != nil {
			continue
		}
		u, err := user(ctx, c, row.ID)
		if errors.Is(err, catalog.ErrNotFound) || err == nil && u.UID != row.UID {
			continue // another one can have the id
		}
		if err != nil {
			return nil, err
		}
		summary := entity.SummarizeUser(u, webURL)
		shown[row.UID] = &summary
	}
	return shown, nil
}

// user returns the user or bot with an id.
func user(ctx context.Context, c *catalog.Catalog, id int64) (*v1alpha1.User, error) {
	u, err := c.User(ctx, v1alpha1.Reference{ID: id})
	if !errors.Is(err, catalog.ErrNotFound) {
		return u, err
	}
	bot, err := bottoken.ByUserID(ctx, c, id)
	return bot.User, err
}

// User returns a user in the form of rows.
func User(u *v1alpha1.User) database.User { return database.User{ID: u.RESTID(), UID: u.UID} }

// Person returns the user with the id and the UID of a row. If that user does not exist, the error is catalog.ErrNotFound, even if another user now
// has the id.
func Person(ctx context.Context, c *catalog.Catalog, row database.User) (*v1alpha1.User, error) {
	return c.User(ctx, v1alpha1.Reference{ID: row.ID, UID: string(row.UID)})
}

// Known returns the users of rows who are among the given ones, in the order of the rows.
func Known(users map[types.UID]*entity.UserSummary, rows []database.User) []*entity.UserSummary {
	all := []*entity.UserSummary{}
	for _, row := range rows {
		if u := users[row.UID]; u != nil {
			all = append(all, u)
		}
	}
	return all
}
