package mergerequest

import (
	"context"
	"errors"
	"fmt"

	"github.com/uptrace/bun"

	"github.com/forgeplane/forgeplane/internal/database"
)

// ErrNotOpen says that a merge request is not open, or has changed so that it must be checked again before a merge.
var ErrNotOpen = errors.New("the merge request is not open any more, or has changed")

// ErrLocked says that a merge request is being merged.
var ErrLocked = errors.New("the merge request is being merged")

// Plan describes a merge that is about to happen in Git.
type Plan struct {
	// Commit is the future head of the target branch. Squash is the commit that replaces the commits of the source branch, or empty.
	Commit, Squash string
	Merger         database.User
	// RemoveSource is the value of ShouldRemoveSource.
	RemoveSource *bool
}

// Lock records a plan in a merge request that was read before, and locks the merge request. The error is ErrNotOpen if it is not open, has become a
// draft, has another head or target branch, or waits for another pipeline.
func (s *Store) Lock(ctx context.Context, was MergeRequest, p Plan) error {
	err := s.db.Write(ctx, fmt.Sprintf("locking merge request %d", was.ID), func(ctx context.Context, db bun.IDB) error {
		return found(db.NewUpdate().Model((*MergeRequest)(nil)).Set("state = ?", Locked).Set("planned_commit = ?", p.Commit).
			Set("planned_squash = ?", p.Squash).Set("merger_id = ?", p.Merger.ID).Set("merger_uid = ?", p.Merger.UID).
			Set("should_remove_source = ?", p.RemoveSource).Set("updated_at = ?", s.clock.Now().UTC()).
			Where("id = ?", was.ID).Where("state = ?", Opened).Where("NOT draft").Where("head_sha = ?", was.Head).
			Where("target_branch = ?", was.TargetBranch).Where("auto_merge_pipeline = ?", was.AutoMergePipeline).Exec(ctx))
	})
	if errors.Is(err, ErrNotFound) {
		return ErrNotOpen
	}
	return err
}

// Unlock opens a merge request again whose planned commit the target branch will never have. It does nothing if the merge request is not locked
// for that commit. reason is the value of MergeError.
func (s *Store) Unlock(ctx context.Context, id int64, commit, reason string) error {
	return s.db.Write(ctx, fmt.Sprintf("unlocking merge request %d", id), func(ctx context.Context, db bun.IDB) error {
		_, err := db.NewUpdate().Model((*MergeRequest)(nil)).Set("state = ?", Opened).Set("planned_commit = ''").Set("planned_squash = ''").
			Set("merger_id = 0").Set("merger_uid = ''").Set("merge_error = ?", reason).Set("updated_at = ?", s.clock.Now().UTC()).
			Where("id = ?", id).Where("state = ?", Locked).Where("planned_commit = ?", commit).Exec(ctx)
		return err
	})
}

// FinishPushed marks an open merge request that was read before as merged by a push to its target branch, and returns it. v becomes its last version,
// changes is the value of ChangesCount, and commit that of MergeCommit. It reports false if the merge request is not open any more, or has another
// target branch. The error is ErrOutdated if it has another head.
func (s *Store) FinishPushed(
	ctx context.Context, was MergeRequest, v Version, changes, commit string, by database.User,
) (m MergeRequest, merged bool, err error) {
	err = s.db.Atomically(ctx, fmt.Sprintf("marking merge request %d as merged", was.ID), func(ctx context.Context, db bun.IDB) error {
		if err := lock(ctx, db, was.ID); err != nil {
			return err
		}
		if m, err = s.WithID(ctx, was.ID); err != nil {
			return err
		}
		if merged = m.State == Opened && m.TargetBranch == was.TargetBranch; !merged {
			return nil
		}
		if m.Head != was.Head {
			return ErrOutdated
		}
		if v.MergeRequestID = m.ID; v.Head != m.Head || v.Base != m.Base {
			if err := s.AddVersion(ctx, &v, changes); err != nil {
				return err
			}
		}
		at := s.clock.Now().UTC()
		err = found(db.NewUpdate().Model((*MergeRequest)(nil)).Set("state = ?", Merged).Set("merge_commit_sha = ?", commit).
			Set("merge_status = ?", CanBeMerged).Set("merge_error = ''").Set("merger_id = ?", by.ID).Set("merger_uid = ?", by.UID).
			Set("merged_at = ?", at).Set("updated_at = ?", at).Where("id = ?", m.ID).Exec(ctx))
		if err != nil {
			return err
		}
		m, err = s.WithID(ctx, m.ID)
		return err
	})
	return m, merged, err
}

// Finish marks a locked merge request as merged by its plan, and returns it. It reports false if the merge request is not locked.
func (s *Store) Finish(ctx context.Context, id int64) (m MergeRequest, merged bool, err error) {
	err = s.db.Atomically(ctx, fmt.Sprintf("finishing the merge of merge request %d", id), func(ctx context.Context, db bun.IDB) error {
		at := s.clock.Now().UTC()
		err := found(db.NewUpdate().Model((*MergeRequest)(nil)).Set("state = ?", Merged).Set("merge_commit_sha = planned_commit").
			Set("squash_commit_sha = planned_squash").Set("merge_error = ''").Set("merged_at = ?", at).Set("updated_at = ?", at).
			Where("id = ?", id).Where("state = ?", Locked).Exec(ctx))
		if merged = err == nil; err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
		m, err = s.WithID(ctx, id)
		return err
	})
	return m, merged, err
}
