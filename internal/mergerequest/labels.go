package mergerequest

import (
	"context"
	"fmt"

	"github.com/uptrace/bun"
	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/sweep"
)

// MoveLabel gives the merge requests with a label another one instead, which they can have already.
func (s *Store) MoveLabel(ctx context.Context, from, to Label) error {
	return s.db.Atomically(ctx, fmt.Sprintf("replacing label %d of its merge requests", from.ID), func(ctx context.Context, db bun.IDB) error {
		_, err := db.NewRaw("INSERT INTO merge_request_labels (merge_request_id, label_id, label_uid) SELECT merge_request_id, ?, ? FROM merge_request_labels WHERE label_uid = ? "+
			"ON CONFLICT DO NOTHING", to.ID, to.UID, from.UID).Exec(ctx)
		if err != nil {
			return err
		}
		return s.ForgetLabel(ctx, from)
	})
}

// ForgetLabel removes a label from all merge requests.
func (s *Store) ForgetLabel(ctx context.Context, l Label) error {
	return s.db.Write(ctx, fmt.Sprintf("removing label %d from its merge requests", l.ID), func(ctx context.Context, db bun.IDB) error {
		_, err := db.NewDelete().Model((*label)(nil)).Where("label_id = ?", l.ID).Where("label_uid = ?", l.UID).Exec(ctx)
		return err
	})
}

// Labels are the labels of merge requests, for a sweep.Sweeper.
func (s *Store) Labels() sweep.Rows { return labels{s} }

type labels struct{ *Store }

// After implements sweep.Rows.
func (l labels) After(ctx context.Context, after database.Subject) ([]database.Subject, error) {
	var ids []int64
	var uids []types.UID
	err := l.db.Read(ctx, "listing the labels of merge requests", func(ctx context.Context, db bun.IDB) error {
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
