package activity

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/uptrace/bun"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// subscription is a row: a user is told of what happens to a subject.
type subscription struct {
	bun.BaseModel `bun:"table:subscriptions"`

	UserID      int64     `bun:"user_id,pk"`
	UserUID     types.UID `bun:"user_uid,pk"`
	SubjectKind string    `bun:"subject_kind,pk"`
	SubjectID   int64     `bun:"subject_id,pk"`
	SubjectUID  types.UID `bun:"subject_uid,pk"`
	CreatedAt   time.Time `bun:"created_at"`
}

// subscriber is what is asked for at once: a user's subscriptions of a kind.
type subscriber struct {
	user User
	kind string
}

// insertedAtOnce bounds the length of a statement.
const insertedAtOnce = 500

// Subscribe subscribes a user to a subject, and reports whether that is new.
func (s *Store) Subscribe(ctx context.Context, user User, subject Subject) (changed bool, err error) {
	row := newSubscription(user, subject)
	row.CreatedAt = s.clock.Now()
	return s.changeSubscription(ctx, row, "subscribing user %d to %s", func(ctx context.Context) (sql.Result, error) {
		return s.write.NewInsert().Model(row).On("CONFLICT DO NOTHING").Exec(ctx)
	})
}

// Unsubscribe ends a user's subscription to a subject, and reports whether there was one.
func (s *Store) Unsubscribe(ctx context.Context, user User, subject Subject) (changed bool, err error) {
	row := newSubscription(user, subject)
	return s.changeSubscription(ctx, row, "unsubscribing user %d from %s", func(ctx context.Context) (sql.Result, error) {
		return s.write.NewDelete().Model(row).WherePK().Exec(ctx)
	})
}

func newSubscription(user User, subject Subject) *subscription {
	return &subscription{
		UserID: user.ID, UserUID: user.UID, SubjectKind: subject.Kind, SubjectID: subject.ID, SubjectUID: subject.UID,
	}
}

func (s *Store) changeSubscription(ctx context.Context, row *subscription, attempt string, change func(context.Context) (sql.Result, error)) (bool, error) {
	ctx, cancel := limited(ctx)
	defer cancel()
	// Whether a change that failed was made is not known.
	defer s.subscribed.forget(subscriber{user: User{row.UserID, row.UserUID}, kind: row.SubjectKind})
	result, err := change(ctx)
	var rows int64
	if err == nil {
		rows, err = result.RowsAffected()
	}
	if err != nil {
		return false, failed(ctx, fmt.Sprintf(attempt, row.UserID, Subject{row.SubjectKind, row.SubjectID, row.SubjectUID}), err)
	}
	return rows > 0, nil
}

// Subscribed returns the UIDs of the subjects of a kind that a user is subscribed to. The set is shared: nobody changes it.
//
// It answers from memory: what this store wrote is in it at once, what another process wrote after at most one second.
func (s *Store) Subscribed(ctx context.Context, user User, kind string) (sets.Set[types.UID], error) {
	return s.subscribed.get(ctx, subscriber{user: user, kind: kind})
}

func (s *Store) readSubscribed(ctx context.Context, who subscriber) (sets.Set[types.UID], error) {
	var uids []types.UID
	err := s.read.NewSelect().Model((*subscription)(nil)).Column("subject_uid").Where("user_uid = ?", who.user.UID).
		Where("user_uid <> ''").Where("subject_kind = ?", who.kind).Where("subject_uid <> ''").Scan(ctx, &uids)
	if err != nil {
		return nil, failed(ctx, fmt.Sprintf("reading the %s subscriptions of user %d", who.kind, who.user.ID), err)
	}
	return sets.New(uids...), nil
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
		_, err := tx.NewDelete().Model(&rows).Where("subject_kind = ?", from.Kind).
			Where("subject_id = ?", from.ID).Where("subject_uid = ?", from.UID).Returning("*").Exec(ctx)
		if err != nil {
			return err
		}
		for i := range rows {
			rows[i].SubjectKind, rows[i].SubjectID, rows[i].SubjectUID = to.Kind, to.ID, to.UID
		}
		return insert(ctx, tx, rows)
	})
	if err != nil {
		return failed(ctx, fmt.Sprintf("moving the subscriptions of %s to %s", from, to), err)
	}
	return nil
}

// insert writes subscriptions, each of them once.
func insert(ctx context.Context, tx bun.Tx, rows []subscription) error {
	for some := range slices.Chunk(rows, insertedAtOnce) {
		if _, err := tx.NewInsert().Model(&some).On("CONFLICT DO NOTHING").Exec(ctx); err != nil {
			return err
		}
	}
	return nil
}

// RemoveSubscriptions ends all subscriptions to a subject, as when it is deleted.
func (s *Store) RemoveSubscriptions(ctx context.Context, subject Subject) error {
	ctx, cancel := limited(ctx)
	defer cancel()
	defer s.subscribed.clear()
	_, err := s.write.NewDelete().Model((*subscription)(nil)).
		Where("subject_kind = ?", subject.Kind).Where("subject_id = ?", subject.ID).Where("subject_uid = ?", subject.UID).Exec(ctx)
	if err != nil {
		return failed(ctx, fmt.Sprintf("removing the subscriptions of %s", subject), err)
	}
	return nil
}
