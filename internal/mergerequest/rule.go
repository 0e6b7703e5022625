package mergerequest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/uptrace/bun"

	"github.com/forgeplane/forgeplane/internal/database"
)

// KindUser is the kind of approvers that are users. The others are of database.KindGroup.
const KindUser = "user"

var (
	// ErrRuleNotFound says that a merge request has no approval rule with an id.
	ErrRuleNotFound = errors.New("there is no such approval rule")
	// ErrRuleTaken says that a merge request already has an approval rule with a name.
	ErrRuleTaken = errors.New("the approval rule already exists")
)

// ApprovalRule asks for a number of approvals of a merge request.
type ApprovalRule struct {
	bun.BaseModel `bun:"table:merge_request_approval_rules"`

	ID             int64  `bun:"id,pk,autoincrement"`
	MergeRequestID int64  `bun:"merge_request_id"`
	Name           string `bun:"name"`
	Required       int64  `bun:"approvals_required"`
	// Approvers are the users, and the groups of users, whose approvals count. All approvals count if there are none. They are in a table of their own.
	Approvers []database.Subject `bun:"-"`
}

// approver is a row of the table of the approvers of rules.
type approver struct {
	bun.BaseModel `bun:"table:merge_request_approvers"`

	RuleID   int64            `bun:"rule_id,pk"`
	Approver database.Subject `bun:"embed:approver_"`
}

// ApprovalRules returns the approval rules of merge requests by the ids of the merge requests, in the order of their own ids.
func (s *Store) ApprovalRules(ctx context.Context, ids ...int64) (map[int64][]ApprovalRule, error) {
	all := map[int64][]ApprovalRule{}
	if len(ids) == 0 {
		return all, nil
	}
	err := s.db.Read(ctx, "reading the approval rules of merge requests", func(ctx context.Context, db bun.IDB) error {
		var rules []ApprovalRule
		if err := db.NewSelect().Model(&rules).Where("merge_request_id IN (?)", bun.List(ids)).Order("id").Scan(ctx); err != nil || len(rules) == 0 {
			return err
		}
		var rows []approver
		of := db.NewSelect().Model((*ApprovalRule)(nil)).Column("id").Where("merge_request_id IN (?)", bun.List(ids))
		if err := db.NewSelect().Model(&rows).Where("rule_id IN (?)", of).Order("approver_kind", "approver_id").Scan(ctx); err != nil {
			return err
		}
		approvers := map[int64][]database.Subject{}
		for _, r := range rows {
			approvers[r.RuleID] = append(approvers[r.RuleID], r.Approver)
		}
		clear(all)
		for _, r := range rules {
			r.Approvers = approvers[r.ID]
			all[r.MergeRequestID] = append(all[r.MergeRequestID], r)
		}
		return nil
	})
	return all, err
}

// ApprovalRule returns an approval rule of a merge request. The error is ErrRuleNotFound if there is none with the id.
func (s *Store) ApprovalRule(ctx context.Context, mergeRequest, id int64) (ApprovalRule, error) {
	all, err := s.ApprovalRules(ctx, mergeRequest)
	if err != nil {
		return ApprovalRule{}, err
	}
	for _, r := range all[mergeRequest] {
		if r.ID == id {
			return r, nil
		}
	}
	return ApprovalRule{}, ErrRuleNotFound
}

// SaveApprovalRule adds an approval rule without an id and sets the id, or replaces the one with the id. The error is ErrRuleTaken if another rule
// of the merge request has the name, and ErrRuleNotFound if there is no rule with the id.
func (s *Store) SaveApprovalRule(ctx context.Context, r *ApprovalRule) error {
	return s.db.Atomically(ctx, fmt.Sprintf("saving an approval rule of merge request %d", r.MergeRequestID), func(ctx context.Context, db bun.IDB) error {
		taken, err := db.NewSelect().Model((*ApprovalRule)(nil)).Where("merge_request_id = ?", r.MergeRequestID).Where("name = ?", r.Name).
			Where("id <> ?", r.ID).Exists(ctx)
		if err == nil && taken {
			err = ErrRuleTaken
		}
		if err != nil {
			return err
		}
		if r.ID == 0 {
			_, err = db.NewInsert().Model(r).Returning("id").Exec(ctx)
		} else {
			err = foundRule(db.NewUpdate().Model(r).WherePK().Where("merge_request_id = ?", r.MergeRequestID).Exec(ctx))
		}
		if err != nil {
			return err
		}
		if _, err := db.NewDelete().Model((*approver)(nil)).Where("rule_id = ?", r.ID).Exec(ctx); err != nil || len(r.Approvers) == 0 {
			return err
		}
		rows := make([]approver, len(r.Approvers))
		for n, a := range r.Approvers {
			rows[n] = approver{RuleID: r.ID, Approver: a}
		}
		_, err = db.NewInsert().Model(&rows).Exec(ctx)
		return err
	})
}

// DeleteApprovalRule removes an approval rule of a merge request. The error is ErrRuleNotFound if there is none with the id.
func (s *Store) DeleteApprovalRule(ctx context.Context, mergeRequest, id int64) error {
	return s.db.Write(ctx, fmt.Sprintf("removing an approval rule of merge request %d", mergeRequest), func(ctx context.Context, db bun.IDB) error {
		return foundRule(db.NewDelete().Model((*ApprovalRule)(nil)).Where("id = ?", id).Where("merge_request_id = ?", mergeRequest).Exec(ctx))
	})
}

func foundRule(result sql.Result, err error) error {
	if err = found(result, err); errors.Is(err, ErrNotFound) {
		err = ErrRuleNotFound
	}
	return err
}
