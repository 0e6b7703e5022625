package mergerequest

import (
	"context"
	"fmt"
	"time"

	"github.com/uptrace/bun"

	"github.com/forgeplane/forgeplane/internal/database"
)

// Approval is the approval of a merge request by a user.
type Approval struct {
	bun.BaseModel `bun:"table:merge_request_approvals"`

	MergeRequestID int64         `bun:"merge_request_id,pk"`
	User           database.User `bun:"embed:user_"`
	At             time.Time     `bun:"approved_at"`
}

// Approve adds the approval of a user, and reports false if the user has already approved.
func (s *Store) Approve(ctx context.Context, id int64, u database.User) (added bool, err error) {
	a := Approval{MergeRequestID: id, User: u, At: s.clock.Now().UTC()}
	err = s.db.Write(ctx, fmt.Sprintf("approving merge request %d", id), func(ctx context.Context, db bun.IDB) error {
		result, err := db.NewInsert().Model(&a).On("CONFLICT DO NOTHING").Exec(ctx)
		if err != nil {
			return err
		}
		n, err := result.RowsAffected()
		added = n > 0
		return err
	})
	return added, err
}

// Unapprove removes the approval of a user, and reports false if there is none.
func (s *Store) Unapprove(ctx context.Context, id int64, u database.User) (removed bool, err error) {
	err = s.db.Write(ctx, fmt.Sprintf("removing the approval of merge request %d", id), func(ctx context.Context, db bun.IDB) error {
		result, err := db.NewDelete().Model((*Approval)(nil)).Where("merge_request_id = ?", id).Where("user_uid = ?", u.UID).Exec(ctx)
		if err != nil {
			return err
		}
		n, err := result.RowsAffected()
		removed = n > 0
		return err
	})
	return removed, err
}

// ResetApprovals removes all approvals of a merge request.
func (s *Store) ResetApprovals(ctx context.Context, id int64) error {
	return s.db.Write(ctx, fmt.Sprintf("removing the approvals of merge request %d", id), func(ctx context.Context, db bun.IDB) error {
		return unapprove(ctx, db, id)
	})
}

// unapprove removes all approvals of a merge request.
func unapprove(ctx context.Context, db bun.IDB, id int64) error {
	_, err := db.NewDelete().Model((*Approval)(nil)).Where("merge_request_id = ?", id).Exec(ctx)
	return err
}

// Approvals returns the approvals of a merge request, the oldest first.
func (s *Store) Approvals(ctx context.Context, id int64) ([]Approval, error) {
	all, err := s.ApprovalsOf(ctx, id)
	return all[id], err
}

// ApprovalsOf returns the approvals of merge requests by the ids of the merge requests, the oldest first.
func (s *Store) ApprovalsOf(ctx context.Context, ids ...int64) (map[int64][]Approval, error) {
	all := map[int64][]Approval{}
	if len(ids) == 0 {
		return all, nil
	}
	var rows []Approval
	err := s.db.Read(ctx, "reading the approvals of merge requests", func(ctx context.Context, db bun.IDB) error {
		return db.NewSelect().Model(&rows).Where("merge_request_id IN (?)", bun.List(ids)).Order("approved_at", "user_id").Scan(ctx)
	})
	for _, a := range rows {
		all[a.MergeRequestID] = append(all[a.MergeRequestID], a)
	}
	return all, err
}
