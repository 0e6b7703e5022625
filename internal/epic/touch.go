package epic

import (
	"context"
	"fmt"
	"time"

	"github.com/uptrace/bun"
)

// Touch sets the time of the last change of an epic, for changes of what belongs to it, such as notes. The error is ErrNotFound if there is no such
// epic.
func (s *Store) Touch(ctx context.Context, id int64, at time.Time) error {
	return s.db.Write(ctx, fmt.Sprintf("changing epic %d", id), func(ctx context.Context, db bun.IDB) error {
		changed, err := db.NewUpdate().Model((*Epic)(nil)).Set("updated_at = ?", at.UTC()).Where("id = ?", id).Exec(ctx)
		if err != nil {
			return err
		}
		if rows, err := changed.RowsAffected(); err != nil || rows > 0 {
			return err
		}
		return ErrNotFound
	})
}
