package schedule

import (
	"context"
	"fmt"

	"github.com/uptrace/bun"

	"github.com/forgeplane/forgeplane/internal/database"
)

// Variables returns the variables of a schedule in the order of their keys.
func (s *Store) Variables(ctx context.Context, id int64) (all []Variable, err error) {
	err = s.db.Read(ctx, fmt.Sprintf("reading the variables of schedule %d", id), func(ctx context.Context, db bun.IDB) error {
		return db.NewSelect().Model(&all).Where("schedule_id = ?", id).Order("key").Scan(ctx)
	})
	return all, err
}

// AddVariable adds a variable to a schedule. The error is ErrExists if it has the key, or ErrTooMany.
func (s *Store) AddVariable(ctx context.Context, v Variable) error {
	return s.db.Atomically(ctx, fmt.Sprintf("adding a variable to schedule %d", v.ScheduleID), func(ctx context.Context, db bun.IDB) error {
		n, err := db.NewSelect().Model((*Variable)(nil)).Where("schedule_id = ?", v.ScheduleID).Count(ctx)
		if err != nil {
			return err
		}
		if n >= MaxVariables {
			return ErrTooMany
		}
		result, err := db.NewInsert().Model(&v).On("CONFLICT (schedule_id, key) DO NOTHING").Exec(ctx)
		return database.Changed(result, err, ErrExists)
	})
}

// ChangeVariable replaces the value and the type of a variable. If the schedule has no variable with the key, the error is ErrNotFound.
func (s *Store) ChangeVariable(ctx context.Context, v Variable) error {
	return s.db.Write(ctx, fmt.Sprintf("changing a variable of schedule %d", v.ScheduleID), func(ctx context.Context, db bun.IDB) error {
		return found(db.NewUpdate().Model(&v).Column("value", "type").WherePK().Exec(ctx))
	})
}

// RemoveVariable removes a variable. If the schedule has no variable with the key, the error is ErrNotFound.
func (s *Store) RemoveVariable(ctx context.Context, id int64, key string) error {
	return s.db.Write(ctx, fmt.Sprintf("removing a variable of schedule %d", id), func(ctx context.Context, db bun.IDB) error {
		return found(db.NewDelete().Model((*Variable)(nil)).Where("schedule_id = ?", id).Where("key = ?", key).Exec(ctx))
	})
}
