package pipeline

import (
	"context"
	"errors"

	"github.com/uptrace/bun"
)

// maxRedundant is the maximum number of pipelines that one push cancels.
const maxRedundant = 100

// CancelRedundant cancels the pipelines of earlier commits of the branch of a pipeline, as far as their workflow:auto_cancel:on_new_commit allows it:
// conservative, the default, cancels a pipeline unless a job that must not be interrupted has started, and interruptible cancels only the interruptible
// jobs. It returns the number of changed pipelines.
func (s *Store) CancelRedundant(ctx context.Context, by Pipeline) (n int, err error) {
	var former []Pipeline
	err = s.db.Read(ctx, "finding redundant pipelines", func(ctx context.Context, db bun.IDB) error {
		return db.NewSelect().Model(&former).Where("subject_uid = ?", by.In.UID).Where("ref = ?", by.Ref).Where("merge_request_id = ?", by.MergeRequest).Where("NOT tag").Where("id < ?", by.ID).
			Where("sha <> ?", by.SHA).Where("on_new_commit <> ?", "none").
			Where("status IN (?)", bun.List([]Status{Created, WaitingForResource, Pending, Running, Manual, Scheduled})).
			Order("id DESC").Limit(maxRedundant).Scan(ctx)
	})
	if err != nil || by.Tag {
		return 0, err
	}
	for _, p := range former {
		canceled := false
		_, err := s.change(ctx, "canceling", p.ID, func(r *run) error {
			canceled = r.interrupt()
			return nil
		})
		if err != nil && !errors.Is(err, ErrNotFound) {
			return n, err
		}
		if canceled {
			n++
		}
	}
	return n, nil
}

// interrupt cancels what a new commit makes redundant.
func (r *run) interrupt() (changed bool) {
	if r.OnNewCommit == "interruptible" {
		for _, j := range r.jobs {
			if j.Interruptible {
				changed = r.become(j, Canceled) || changed
			}
		}
		return changed
	}
	for _, j := range r.jobs {
		if !j.Interruptible && !j.External && !j.Started.IsZero() {
			return false
		}
	}
	return r.cancel()
}
