package activity

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/uptrace/bun"
	"k8s.io/apimachinery/pkg/util/sets"
)

// subscription is a row: a user is told of what happens to a subject.
type subscription struct {
	bun.BaseModel `bun:"table:subscriptions"`

	UserID      int64     `bun:"user_id,pk"`
	SubjectKind string    `bun:"subject_kind,pk"`
	SubjectID   int64     `bun:"subject_id,pk"`
	CreatedAt   time.Time `bun:"created_at"`
}

// subscriber is what is asked for at once: a user's subscriptions of a kind.
type subscriber struct {
	userID int64
	kind   string
}

// insertedAtOnce bounds the length of a statement.
const insertedAtOnce = 500

// Subscribe subscribes a user to a subject, and reports whether that is new.
func (s *Store) Subscribe(ctx context.Context, userID int64, subject Subject) (changed bool, err error) {
	row := &subscription{UserID: userID, SubjectKind: subject.Kind, SubjectID: subject.ID, CreatedAt: s.clock.Now()}
	return s.changeSubscription(ctx, row, "subscribing user %d to %s", func(ctx context.Context) (sql.Result, error) {
		return s.write.NewInsert().Model(row).On("CONFLICT DO NOTHING").Exec(ctx)
	})
}

// Unsubscribe ends a user's subscription to a subject, and reports whether there was one.
func (s *Store) Unsubscribe(ctx context.Context, userID int64, subject Subject) (changed bool, err error) {
	row := &subscription{UserID: userID, SubjectKind: subject.Kind, SubjectID: subject.ID}
	return s.changeSubscription(ctx, row, "unsubscribing user %d from %s", func(ctx context.Context) (sql.Result, error) {
		return s.write.NewDelete().Model(row).WherePK().Exec(ctx)
	})
}

func (s *Store) changeSubscription(ctx context.Context, row *subscription, attempt string, change func(context.Context) (sql.Result, error)) (bool, error) {
	ctx, cancel := limited(ctx)
	defer cancel()
	// Whether a change that failed was made is not known.
	defer s.subscribed.forget(subscriber{userID: row.UserID, kind: row.SubjectKind})
	result, err := change(ctx)
	var rows int64
	if err == nil {
		rows, err = result.RowsAffected()
	}
	if err != nil {
		return false, failed(ctx, fmt.Sprintf(attempt, row.UserID, Subject{Kind: row.SubjectKind, ID: row.SubjectID}), err)
	}
	return rows > 0, nil
}

// Subscribed returns the ids of the subjects of a kind that a user is subscribed to. The set is shared: nobody changes it.
//
// It answers from memory: what this store wrote is in it at once, what another process wrote after at most one second.
func (s *Store) Subscribed(ctx context.Context, userID int64, kind string) (sets.Set[int64], error) {
	return s.subscribed.get(ctx, subscriber{userID: userID, kind: kind})
}

func (s *Store) readSubscribed(ctx context.Context, who subscriber) (sets.Set[int64], error) {
	var ids []int64
	err := s.read.NewSelect().Model((*subscription)(nil)).Column("subject_id").
		Where("user_id = ?", who.userID).Where("subject_kind = ?", who.kind).Scan(ctx, &ids)
	if err != nil {
		return nil, failed(ctx, fmt.Sprintf("reading the %s subscriptions of user %d", who.kind, who.userID), err)
	}
	return sets.New(ids...), nil
}

// MoveSubscriptions subscribes to one subject whoever is subscribed to another, and ends the latter subscriptions.
func (s *Store) MoveSubscriptions(ctx context.Context, from, to Subject) error {
	if from == to {
		return nil
	}
	ctx, cancel := limited(ctx)
	defer cancel()
	defer s.subscribed.clear()
	err := s.write.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
		// What is deleted is what is moved, whoever subscribes meanwhile.
		var rows []subscription
		_, err := tx.NewDelete().Model(&rows).Where("subject_kind = ?", from.Kind).Where("subject_id = ?", from.ID).Returning("*").Exec(ctx)
		if err != nil {
			return err
		}
		for i := range rows {
			rows[i].SubjectKind, rows[i].SubjectID = to.Kind, to.ID
		}
		for some := range slices.Chunk(rows, insertedAtOnce) {
			if _, err := tx.NewInsert().Model(&some).On("CONFLICT DO NOTHING").Exec(ctx); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return failed(ctx, fmt.Sprintf("moving the subscriptions of %s to %s", from, to), err)
	}
	return nil
}

// RemoveSubscriptions ends all subscriptions to a subject, as when it is deleted.
func (s *Store) RemoveSubscriptions(ctx context.Context, subject Subject) error {
	ctx, cancel := limited(ctx)
	defer cancel()
	defer s.subscribed.clear()
	_, err := s.write.NewDelete().Model((*subscription)(nil)).
		Where("subject_kind = ?", subject.Kind).Where("subject_id = ?", subject.ID).Exec(ctx)
	if err != nil {
		return failed(ctx, fmt.Sprintf("removing the subscriptions of %s", subject), err)
	}
	return nil
}
