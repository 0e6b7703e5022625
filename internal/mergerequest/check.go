package mergerequest

import (
	"context"
	"errors"
	"fmt"

	"github.com/uptrace/bun"
	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/internal/database"
)

// Check is the result of a check of the branches of a merge request.
type Check struct {
	// Head and Target are the heads of the source and target branches, and Base is their merge base. They are empty if a branch does not exist.
	Head, Base, Target string
	// Changes is the value of ChangesCount.
	Changes string
	// KeepApprovals says that approvals stay when the head of the source branch changes.
	KeepApprovals bool
	Status        MergeStatus
}

// ErrOutdated says that a check does not count any more: the merge request has changed in a way that matters since it was read.
var ErrOutdated = errors.New("the merge request has been checked or changed meanwhile")

// RecordCheck records a check of a merge request that was read before, and returns the merge request. It adds a version if the head of
// the source branch or the merge base has changed. The error is ErrOutdated if the check must be made again.
func (s *Store) RecordCheck(ctx context.Context, was MergeRequest, c Check) (now MergeRequest, err error) {
	attempt := fmt.Sprintf("recording a check of merge request %d", was.ID)
	err = s.db.Atomically(ctx, attempt, func(ctx context.Context, db bun.IDB) error {
		if err := lock(ctx, db, was.ID); err != nil {
			return err
		}
		if now, err = s.WithID(ctx, was.ID); err != nil {
			return err
		}
		if now.State != was.State || now.TargetBranch != was.TargetBranch || now.Head != was.Head || now.CheckedTarget != was.CheckedTarget {
			return ErrOutdated
		}
		if c.Head != "" && (c.Head != now.Head || c.Base != now.Base) {
			v := Version{MergeRequestID: was.ID, Head: c.Head, Base: c.Base, Start: c.Target, KeepApprovals: c.KeepApprovals}
			if err := s.AddVersion(ctx, &v, c.Changes); err != nil {
				return err
			}
		}
		q := db.NewUpdate().Model((*MergeRequest)(nil)).Set("merge_status = ?", c.Status).Set("checked_target = ?", c.Target).Where("id = ?", was.ID)
		if c.Status == Checking && now.MergeStatus != Checking {
			q = q.Set("updated_at = ?", s.clock.Now().UTC())
		}
		if c.Head != "" && now.PreparedAt.IsZero() {
			q = q.Set("prepared_at = ?", s.clock.Now().UTC())
		}
		if err := found(q.Exec(ctx)); err != nil {
			return err
		}
		now, err = s.WithID(ctx, was.ID)
		return err
	})
	return now, err
}

// lock makes other writes of a merge request wait until the transaction ends.
func lock(ctx context.Context, db bun.IDB, id int64) error {
	return found(db.NewUpdate().Model((*MergeRequest)(nil)).Set("updated_at = updated_at").Where("id = ?", id).Exec(ctx))
}

// Target is a branch that merge requests are into.
type Target struct {
	In     database.Subject `bun:"embed:subject_"`
	Branch string           `bun:"target_branch"`
}

// maxTargets is the maximum number of targets that Collaborations returns.
const maxTargets = 100

// Collaborations returns the targets of the open merge requests that allow collaboration in a branch of another project, or in all its
// branches if the name is empty; at most 100.
func (s *Store) Collaborations(ctx context.Context, source types.UID, branch string) (found []Target, err error) {
	err = s.db.Read(ctx, "finding the merge requests that allow collaboration", func(ctx context.Context, db bun.IDB) error {
		q := db.NewSelect().Model((*MergeRequest)(nil)).Distinct().Column("subject_kind", "subject_id", "subject_uid", "target_branch").
			Where("source_uid = ? AND subject_uid <> source_uid AND allow_collaboration", source).Where("state IN (?)", bun.List([]State{Opened, Locked}))
		if branch != "" {
			q = q.Where("source_branch = ?", branch)
		}
		return q.Limit(maxTargets).Scan(ctx, &found)
	})
	return found, err
}

// OfBranches returns the open merge requests that are from or into any of these branches of a project: their ids, projects, branches and
// heads.
func (s *Store) OfBranches(ctx context.Context, project types.UID, branches []string) (found []MergeRequest, err error) {
	err = s.db.Read(ctx, "finding the merge requests of branches", func(ctx context.Context, db bun.IDB) error {
		return db.NewSelect().Model(&found).Column("id", "subject_kind", "subject_id", "subject_uid", "source_kind", "source_id", "source_uid", "source_branch", "target_branch", "head_sha").
			Where("state IN (?)", bun.List([]State{Opened, Locked})).
			Where("source_uid = ? AND source_branch IN (?) OR subject_uid = ? AND target_branch IN (?)", project, bun.List(branches), project, bun.List(branches)).
			Order("id").Scan(ctx)
	})
	return found, err
}
