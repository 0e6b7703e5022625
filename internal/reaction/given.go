package reaction

import (
	"github.com/uptrace/bun"
	"k8s.io/apimachinery/pkg/types"
)

// Given returns the query for the ids of the items of a kind to which a user has given a reaction, for use in another query. An empty name
// stands for any reaction.
func Given(db bun.IDB, kind string, user types.UID, name string) *bun.SelectQuery {
	q := db.NewSelect().Model((*Reaction)(nil)).Column("item_id").Where("item_kind = ?", kind).Where("user_uid = ?", user)
	if name != "" {
		q = q.Where("name = ?", name)
	}
	return q
}
