package issue

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/uptrace/bun"
	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/search"
)

// Update locks an issue, changes it with change and returns it. change must keep the fields that identify the issue. Update returns ErrNotFound if
// the issue does not exist. If change returns an error, Update returns it and writes nothing.
func (s *Store) Update(ctx context.Context, project types.UID, number int64, change func(*Issue) error) (i Issue, err error) {
	err = s.db.Atomically(ctx, fmt.Sprintf("changing issue %d", number), func(ctx context.Context, db bun.IDB) error {
		if i, err = s.Get(ctx, project, number); err != nil {
			return err
		}
		if err := s.Touch(ctx, i.ID, s.clock.Now()); err != nil { // others wait from here on
			return err
		}
		if i, err = s.Get(ctx, project, number); err != nil {
			return err
		}
		if err := change(&i); err != nil {
			return err
		}
		i.Text = search.Fold(i.Title, i.Description)
		if _, err := db.NewUpdate().Model(&i).WherePK().Exec(ctx); err != nil {
			return err
		}
		for _, row := range []any{(*label)(nil), (*assignee)(nil)} {
			if _, err := db.NewDelete().Model(row).Where("issue_id = ?", i.ID).Exec(ctx); err != nil {
				return err
			}
		}
		return attach(ctx, db, &i)
	})
	return i, err
}

// Close closes an issue, and reports whether it was open.
func (i *Issue) Close(by database.User, at time.Time) bool {
	if i.State != Opened {
		return false
	}
	i.State, i.Closer, i.ClosedAt = Closed, by, at.UTC()
	return true
}

// Touch sets the time of the last change of an issue. The error is ErrNotFound if there is no such issue.
func (s *Store) Touch(ctx context.Context, id int64, at time.Time) error {
	return s.db.Write(ctx, fmt.Sprintf("changing issue %d", id), func(ctx context.Context, db bun.IDB) error {
		return found(db.NewUpdate().Model((*Issue)(nil)).Set("updated_at = ?", at.UTC()).Where("id = ?", id).Exec(ctx))
	})
}

// Delete removes an issue with its labels and assignees. Its notes, reactions and state events are removed in the same transaction. The error is
// ErrNotFound if there is no such issue.
func (s *Store) Delete(ctx context.Context, id int64) error {
	return s.db.Write(ctx, fmt.Sprintf("deleting issue %d", id), func(ctx context.Context, db bun.IDB) error {
		return found(db.NewDelete().Model((*Issue)(nil)).Where("id = ?", id).Exec(ctx))
	})
}

func found(result sql.Result, err error) error { return database.Changed(result, err, ErrNotFound) }
