// Package labeling keeps the labels of items in tables of the activity database, without their titles, because labels can be renamed.
package labeling

import (
	"context"
	"fmt"

	"github.com/uptrace/bun"
	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/sweep"
)

// Rows are the rows of a table that joins items with labels: the columns are the id of an item, label_id and label_uid.
type Rows struct {
	db          *database.DB
	table, item string
}

// New returns the rows of a table. item is the column with the id of the item.
func New(db *database.DB, table, item string) Rows { return Rows{db, table, item} }

// Move gives the items with a label another one instead, which they can have already.
func (r Rows) Move(ctx context.Context, from, to database.Label) error {
	return r.db.Atomically(ctx, fmt.Sprintf("replacing label %d of its items", from.ID), func(ctx context.Context, db bun.IDB) error {
		_, err := db.NewRaw("INSERT INTO ?0 (?1, label_id, label_uid) SELECT ?1, ?2, ?3 FROM ?0 WHERE label_uid = ?4 ON CONFLICT DO NOTHING",
			bun.Ident(r.table), bun.Ident(r.item), to.ID, to.UID, from.UID).Exec(ctx)
		if err != nil {
			return err
		}
		return r.Forget(ctx, from)
	})
}

// Forget removes a label from all items.
func (r Rows) Forget(ctx context.Context, l database.Label) error {
	return r.db.Write(ctx, fmt.Sprintf("removing label %d from its items", l.ID), func(ctx context.Context, db bun.IDB) error {
		_, err := db.NewDelete().Table(r.table).Where("label_id = ?", l.ID).Where("label_uid = ?", l.UID).Exec(ctx)
		return err
	})
}

// After implements sweep.Rows.
func (r Rows) After(ctx context.Context, after database.Subject) ([]database.Subject, error) {
	var ids []int64
	var uids []types.UID
	err := r.db.Read(ctx, "listing the labels of items", func(ctx context.Context, db bun.IDB) error {
		return db.NewSelect().Table(r.table).Distinct().Column("label_id", "label_uid").Where("(label_id, label_uid) > (?, ?)", after.ID, after.UID).
			Order("label_id", "label_uid").Limit(sweep.SubjectsAtOnce).Scan(ctx, &ids, &uids)
	})
	all := make([]database.Subject, len(ids))
	for i := range ids {
		all[i] = database.Subject{Kind: after.Kind, ID: ids[i], UID: uids[i]}
	}
	return all, err
}

// Remove implements sweep.Rows.
func (r Rows) Remove(ctx context.Context, s database.Subject) error {
	return r.Forget(ctx, database.Label{ID: s.ID, UID: s.UID})
}
