package item

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/internal/catalog"
)

// UserUIDs returns the UIDs of the users and bots with some ids. It leaves out users who do not exist.
func UserUIDs(ctx context.Context, c *catalog.Catalog, ids ...int64) (uids []types.UID, err error) {
	for _, id := range ids {
		u, err := user(ctx, c, id)
		if errors.Is(err, catalog.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		uids = append(uids, u.UID)
	}
	return uids, nil
}

// NamedUIDs is UserUIDs for usernames of users.
func NamedUIDs(ctx context.Context, c *catalog.Catalog, usernames ...string) (uids []types.UID, err error) {
	for _, name := range usernames {
		u, err := c.UserByUsername(ctx, name)
		if errors.Is(err, catalog.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		uids = append(uids, u.UID)
	}
	return uids, nil
}
