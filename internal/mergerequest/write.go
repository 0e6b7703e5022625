package mergerequest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/uptrace/bun"
	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/iid"
)

// Get returns the merge request of a project with an iid. The error is ErrNotFound if there is none.
func (s *Store) Get(ctx context.Context, project types.UID, number int64) (MergeRequest, error) {
	return s.get(ctx, fmt.Sprintf("reading merge request %d", number), "subject_uid = ? AND iid = ?", project, number)
}

// WithID returns the merge request with an id, of any project. The error is ErrNotFound if there is none.
func (s *Store) WithID(ctx context.Context, id int64) (MergeRequest, error) {
	return s.get(ctx, fmt.Sprintf("reading the merge request with the id %d", id), "id = ?", id)
}

func (s *Store) get(ctx context.Context, attempt, where string, args ...any) (MergeRequest, error) {
	var found []MergeRequest
	err := s.db.Read(ctx, attempt, func(ctx context.Context, db bun.IDB) error {
		if err := db.NewSelect().Model(&found).ExcludeColumn("text").Where(where, args...).Scan(ctx); err != nil {
			return err
		}
		if len(found) == 0 {
			return ErrNotFound
		}
		return complete(ctx, db, found)
	})
	if err != nil {
		return MergeRequest{}, err
	}
	return found[0], nil
}

// Update locks a merge request, changes it with change and returns it. change must keep the fields that identify the merge request. A change of the
// target branch removes the approvals, and a merge that waits for a pipeline, as closing does. Update returns ErrNotFound if the merge request does not exist, and a *DuplicateError if another one of the
// same branches is open. If change returns an error, Update returns it and writes nothing.
func (s *Store) Update(ctx context.Context, project types.UID, number int64, change func(*MergeRequest) error) (m MergeRequest, err error) {
	err = s.db.Atomically(ctx, fmt.Sprintf("changing merge request %d", number), func(ctx context.Context, db bun.IDB) error {
		if m, err = s.Get(ctx, project, number); err != nil {
			return err
		}
		if err := s.Touch(ctx, m.ID, s.clock.Now()); err != nil { // others wait from here on
			return err
		}
		if m, err = s.Get(ctx, project, number); err != nil {
			return err
		}
		was := m
		if err := change(&m); err != nil {
			return err
		}
		if m.TargetBranch != was.TargetBranch {
			if err := unapprove(ctx, db, m.ID); err != nil {
				return err
			}
		}
		if m.State == Opened && (was.State != Opened || was.SourceBranch != m.SourceBranch || was.TargetBranch != m.TargetBranch) {
			if err := iid.Lock(ctx, s.db, m.In, Kind); err != nil { // creations and others that open one wait from here on
				return err
			}
			if err := s.unique(ctx, db, m); err != nil {
				return err
			}
		}
		if m.State != Opened || m.TargetBranch != was.TargetBranch {
			m.AutoMerge, m.AutoMergePipeline = nil, 0
		}
		m.derive()
		if _, err := db.NewUpdate().Model(&m).WherePK().Exec(ctx); err != nil {
			return err
		}
		if err := detach(ctx, db, m.ID); err != nil {
			return err
		}
		return attach(ctx, db, &m)
	})
	return m, err
}

// Touch sets the time of the last change of a merge request. The error is ErrNotFound if there is no such merge request.
func (s *Store) Touch(ctx context.Context, id int64, at time.Time) error {
	return s.db.Write(ctx, fmt.Sprintf("changing merge request %d", id), func(ctx context.Context, db bun.IDB) error {
		return found(db.NewUpdate().Model((*MergeRequest)(nil)).Set("updated_at = ?", at.UTC()).Where("id = ?", id).Exec(ctx))
	})
}

// Delete removes a merge request with what is in tables of this package. Its notes, reactions and state events are removed in the same transaction.
// The error is ErrNotFound if there is no such merge request, and ErrLocked while it is being merged.
func (s *Store) Delete(ctx context.Context, id int64) error {
	return s.db.Atomically(ctx, fmt.Sprintf("deleting merge request %d", id), func(ctx context.Context, db bun.IDB) error {
		if err := lock(ctx, db, id); err != nil {
			return err
		}
		err := found(db.NewDelete().Model((*MergeRequest)(nil)).Where("id = ?", id).Where("state <> ?", Locked).Exec(ctx))
		if errors.Is(err, ErrNotFound) {
			err = ErrLocked
		}
		return err
	})
}

// ReplaceMilestone gives the merge requests of a milestone another one, in the transaction that deletes the milestone. They do not count as changed.
func (s *Store) ReplaceMilestone(ctx context.Context, id, by int64) error {
	return s.db.Write(ctx, fmt.Sprintf("replacing milestone %d of its merge requests", id), func(ctx context.Context, db bun.IDB) error {
		_, err := db.NewUpdate().Model((*MergeRequest)(nil)).Set("milestone_id = ?", by).Where("milestone_id = ?", id).Exec(ctx)
		return err
	})
}

// ForgetMilestone removes a milestone from the merge requests that have it, in the transaction that deletes the milestone.
func (s *Store) ForgetMilestone(ctx context.Context, id int64) error {
	return s.db.Write(ctx, fmt.Sprintf("removing milestone %d from its merge requests", id), func(ctx context.Context, db bun.IDB) error {
		_, err := db.NewUpdate().Model((*MergeRequest)(nil)).Set("milestone_id = 0").Where("milestone_id = ?", id).Exec(ctx)
		return err
	})
}

func found(result sql.Result, err error) error { return database.Changed(result, err, ErrNotFound) }
