package issue

import (
	"context"
	"fmt"

	"github.com/uptrace/bun"
)

// ReplaceMilestone gives the issues of a milestone another one, in the transaction that deletes the milestone. They do not count as changed.
func (s *Store) ReplaceMilestone(ctx context.Context, id, by int64) error {
	return s.db.Write(ctx, fmt.Sprintf("replacing milestone %d of its issues", id), func(ctx context.Context, db bun.IDB) error {
		_, err := db.NewUpdate().Model((*Issue)(nil)).Set("milestone_id = ?", by).Where("milestone_id = ?", id).Exec(ctx)
		return err
	})
}

// ForgetMilestone removes a milestone from the issues that have it, in the transaction that deletes the milestone.
func (s *Store) ForgetMilestone(ctx context.Context, id int64) error {
	return s.db.Write(ctx, fmt.Sprintf("removing milestone %d from its issues", id), func(ctx context.Context, db bun.IDB) error {
		_, err := db.NewUpdate().Model((*Issue)(nil)).Set("milestone_id = 0").Where("milestone_id = ?", id).Exec(ctx)
		return err
	})
}

// ForgetEpic removes an epic from the issues that have it, in the transaction that deletes the epic.
func (s *Store) ForgetEpic(ctx context.Context, id int64) error {
	return s.db.Write(ctx, fmt.Sprintf("removing epic %d from its issues", id), func(ctx context.Context, db bun.IDB) error {
		_, err := db.NewUpdate().Model((*Issue)(nil)).Set("epic_id = 0").Where("epic_id = ?", id).Exec(ctx)
		return err
	})
}
