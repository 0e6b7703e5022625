package subscription

import (
	"context"
	"fmt"

	"github.com/uptrace/bun"

	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/sweep"
)

// Subjects are the rows of a Store, by what they are about, for a sweep.Sweeper.
func (s *Store) Subjects() sweep.Rows { return subjects{s} }

type subjects struct{ *Store }

// After implements sweep.Rows.
func (s subjects) After(ctx context.Context, after database.Subject) ([]database.Subject, error) {
	return sweep.Subjects(ctx, s.db, (*subscription)(nil), after)
}

// FillIn implements sweep.Rows.
func (s subjects) FillIn(ctx context.Context, subject database.Subject, o sweep.Known) error {
	attempt := fmt.Sprintf("filling in the UID of %s", subject)
	return s.rewrite(ctx, attempt, notBefore(o, of(subject)), func(row *subscription) { row.SubjectUID = o.UID })
}

// Users returns the rows of a Store without the UID of a user, by the user who owns them, for a sweep.Sweeper.
func (s *Store) Users() sweep.Rows { return users{s} }

type users struct{ *Store }

// After implements sweep.Rows.
func (s users) After(ctx context.Context, after database.Subject) ([]database.Subject, error) {
	var ids []int64
	err := s.db.Read(ctx, "listing the users whose UIDs are missing", func(ctx context.Context, db bun.IDB) error {
		return db.NewSelect().Model((*subscription)(nil)).Distinct().Column("user_id").Where("user_uid = ''").
			Where("user_id > ?", after.ID).Order("user_id").Limit(sweep.SubjectsAtOnce).Scan(ctx, &ids)
	})
	found := make([]database.Subject, len(ids))
	for i, id := range ids {
		found[i] = database.Subject{Kind: after.Kind, ID: id}
	}
	return found, err
}

// FillIn implements sweep.Rows.
func (s users) FillIn(ctx context.Context, user database.Subject, o sweep.Known) error {
	attempt := fmt.Sprintf("filling in the UID of %s", user)
	return s.rewrite(ctx, attempt, notBefore(o, without(user)), func(row *subscription) { row.UserUID = o.UID })
}

// Remove implements sweep.Rows.
func (s users) Remove(ctx context.Context, user database.Subject) error {
	return s.remove(ctx, fmt.Sprintf("removing the activity of a former %s", user), without(user))
}

// without are the rows of a user without a UID.
func without(user database.Subject) condition {
	return func(q *bun.DeleteQuery) *bun.DeleteQuery {
		return q.Where("user_id = ?", user.ID).Where("user_uid = ''")
	}
}

// notBefore selects rows that were written after an object was created.
func notBefore(o sweep.Known, which condition) condition {
	return func(q *bun.DeleteQuery) *bun.DeleteQuery { return which(q).Where("created_at >= ?", o.Created) }
}
