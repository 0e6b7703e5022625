package mergerequest

import (
	"context"
	"errors"
	"fmt"

	"github.com/uptrace/bun"

	"github.com/forgeplane/forgeplane/internal/database"
)

// AutoMerge is a merge that begins when the pipeline of the head has succeeded.
type AutoMerge struct {
	// User is the user who merges.
	User database.User `json:"user"`
	// CommitMessage and SquashMessage are empty for the default messages. Squash and RemoveSource are nil if the merge request decides.
	CommitMessage string `json:"commit_message,omitempty"`
	SquashMessage string `json:"squash_message,omitempty"`
	Squash        *bool  `json:"squash,omitempty"`
	RemoveSource  *bool  `json:"remove_source,omitempty"`
}

// Wait records a merge that waits for a pipeline, in a merge request that was read before. The error is ErrNotOpen if that is not open any more, or has
// another head or target branch.
func (s *Store) Wait(ctx context.Context, was MergeRequest, pipeline int64, a AutoMerge) error {
	m := MergeRequest{ID: was.ID, AutoMerge: &a, AutoMergePipeline: pipeline, Updated: s.clock.Now().UTC()}
	err := s.db.Write(ctx, fmt.Sprintf("letting merge request %d wait for a pipeline", was.ID), func(ctx context.Context, db bun.IDB) error {
		return found(db.NewUpdate().Model(&m).Column("auto_merge", "auto_merge_pipeline", "merge_error", "updated_at").WherePK().
			Where("state = ?", Opened).Where("head_sha = ?", was.Head).Where("target_branch = ?", was.TargetBranch).Exec(ctx))
	})
	if errors.Is(err, ErrNotFound) {
		return ErrNotOpen
	}
	return err
}

// StopWaiting forgets the merge of an open merge request that waits for a pipeline, and reports whether there was one. reason is the value of MergeError.
func (s *Store) StopWaiting(ctx context.Context, id int64, reason string) (stopped bool, err error) {
	err = s.db.Write(ctx, fmt.Sprintf("letting merge request %d not wait for a pipeline", id), func(ctx context.Context, db bun.IDB) error {
		err := found(stopWaiting(db, id).Set("merge_error = ?", reason).Set("updated_at = ?", s.clock.Now().UTC()).
			Where("state = ?", Opened).Where("auto_merge_pipeline <> 0").Exec(ctx))
		if stopped = err == nil; errors.Is(err, ErrNotFound) {
			return nil
		}
		return err
	})
	return stopped, err
}

func stopWaiting(db bun.IDB, id int64) *bun.UpdateQuery {
	return db.NewUpdate().Model((*MergeRequest)(nil)).Set("auto_merge = NULL").Set("auto_merge_pipeline = 0").Where("id = ?", id)
}

// Waiting returns the open merge requests whose merges wait for a pipeline.
func (s *Store) Waiting(ctx context.Context, pipeline int64) (some []MergeRequest, err error) {
	var ids []int64
	err = s.db.Read(ctx, fmt.Sprintf("finding the merge requests that wait for pipeline %d", pipeline), func(ctx context.Context, db bun.IDB) error {
		return db.NewSelect().Model((*MergeRequest)(nil)).Column("id").Where("auto_merge_pipeline = ?", pipeline).Where("state = ?", Opened).Order("id").Scan(ctx, &ids)
	})
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	return s.WithIDs(ctx, ids...)
}
