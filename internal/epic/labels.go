package epic

import (
	"context"
	"fmt"

	"github.com/uptrace/bun"
	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/sweep"
)

// ForgetLabel removes a label from all epics.
func (s *Store) ForgetLabel(ctx context.Context, l Label) error {
	return s.db.Write(ctx, fmt.Sprintf("removing label %d from its epics", l.ID), func(ctx context.Context, db bun.IDB) error {
		_, err := db.NewDelete().Model((*label)(nil)).Where("label_id = ?", l.ID).Where("label_uid = ?", l.UID).Exec(ctx)
		return err
	})
}

// Labels are the labels of epics, for a sweep.Sweeper.
func (s *Store) Labels() sweep.Rows { return labels{s} }

type labels struct{ *Store }

// After implements sweep.Rows.
func (l labels) After(ctx context.Context, after database.Subject) ([]database.Subject, error) {
	var ids []int64
	var uids []types.UID
	err := l.db.Read(ctx, "listing the labels of epics", func(ctx context.Context, db bun.IDB) error {
		return db.NewSelect().Model((*label)(nil)).Distinct().Column("label_id", "label_uid").Where("(label_id, label_uid) > (?, ?)", after.ID, after.UID).
			Order("label_id", "label_uid").Limit(sweep.SubjectsAtOnce).Scan(ctx, &ids, &uids)
	})
	all := make([]database.Subject, len(ids))
	for i := range ids {
		all[i] = database.Subject{Kind: after.Kind, ID: ids[i], UID: uids[i]}
	}
	return all, err
}

// Remove implements sweep.Rows.
func (l labels) Remove(ctx context.Context, s database.Subject) error {
	return l.ForgetLabel(ctx, Label{ID: s.ID, UID: s.UID})
}
