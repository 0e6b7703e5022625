// Package subscription stores which users subscribe to which objects, such as labels, in a table of the activity database. Other packages
// do not access the table.
package subscription

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/uptrace/bun"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"

	"github.com/forgeplane/forgeplane/internal/database"
)

// KindLabel is the kind of subjects that are labels.
const KindLabel = "label"

//go:embed migrations
var migrations embed.FS

// Migrations returns the migrations of the table, for database.Open.
func Migrations() fs.FS { return migrations }

// subscription is a row: the subscription of a user to a subject.
type subscription struct {
	bun.BaseModel `bun:"table:subscriptions"`

	UserID      int64     `bun:"user_id,pk"`
	UserUID     types.UID `bun:"user_uid,pk"`
	SubjectKind string    `bun:"subject_kind,pk"`
	SubjectID   int64     `bun:"subject_id,pk"`
	SubjectUID  types.UID `bun:"subject_uid,pk"`
	CreatedAt   time.Time `bun:"created_at"`
}

// subscriber is the key of the cache: a user and a kind of subjects.
type subscriber struct {
	user database.User
	kind string
}

// insertedAtOnce is the maximum number of rows in a statement.
const insertedAtOnce = 500

// Store has the subscriptions in a database. It is safe for use by several goroutines.
type Store struct {
	db         *database.DB
	clock      clock.PassiveClock
	subscribed *memory[subscriber, sets.Set[types.UID]]
}

// New returns a store for a database that was opened with Migrations.
func New(db *database.DB, c clock.PassiveClock) *Store {
	s := &Store{db: db, clock: c}
	s.subscribed = newMemory(c, s.read)
	return s
}

// Subscribe subscribes a user to a subject. changed is false if the user was subscribed before.
func (s *Store) Subscribe(ctx context.Context, user database.User, subject database.Subject) (changed bool, err error) {
	row := newRow(user, subject)
	row.CreatedAt = s.clock.Now()
	attempt := fmt.Sprintf("subscribing user %d to %s", user.ID, subject)
	return s.change(ctx, row, attempt, func(ctx context.Context, db bun.IDB) (sql.Result, error) {
		return db.NewInsert().Model(row).On("CONFLICT DO NOTHING").Exec(ctx)
	})
}

// Unsubscribe ends the subscription of a user to a subject. changed is false if there was none.
func (s *Store) Unsubscribe(ctx context.Context, user database.User, subject database.Subject) (changed bool, err error) {
	row := newRow(user, subject)
	attempt := fmt.Sprintf("unsubscribing user %d from %s", user.ID, subject)
	return s.change(ctx, row, attempt, func(ctx context.Context, db bun.IDB) (sql.Result, error) {
		return db.NewDelete().Model(row).WherePK().Exec(ctx)
	})
}

func newRow(user database.User, subject database.Subject) *subscription {
	return &subscription{
		UserID: user.ID, UserUID: user.UID, SubjectKind: subject.Kind, SubjectID: subject.ID, SubjectUID: subject.UID,
	}
}

// change makes a change to one row.
func (s *Store) change(
	ctx context.Context, row *subscription, attempt string, change func(context.Context, bun.IDB) (sql.Result, error),
) (changed bool, err error) {
	// A failed change may have been committed.
	defer s.db.Afterwards(ctx, func() {
		s.subscribed.forget(subscriber{user: database.User{ID: row.UserID, UID: row.UserUID}, kind: row.SubjectKind})
	})
	err = s.db.Write(ctx, attempt, func(ctx context.Context, db bun.IDB) error {
		result, err := change(ctx, db)
		if err != nil {
			return err
		}
		rows, err := result.RowsAffected()
		changed = rows > 0
		return err
	})
	return changed, err
}

// Subscribed returns the UIDs of the subjects of a kind that a user is subscribed to. Callers must not change the set.
//
// The result is cached. It includes writes of this store at once, and writes of other processes after at most one second.
func (s *Store) Subscribed(ctx context.Context, user database.User, kind string) (sets.Set[types.UID], error) {
	return s.subscribed.get(ctx, subscriber{user: user, kind: kind})
}

func (s *Store) read(ctx context.Context, who subscriber) (sets.Set[types.UID], error) {
	var uids []types.UID
	attempt := fmt.Sprintf("reading the %s subscriptions of user %d", who.kind, who.user.ID)
	err := s.db.Read(ctx, attempt, func(ctx context.Context, db bun.IDB) error {
		return db.NewSelect().Model((*subscription)(nil)).Column("subject_uid").Where("user_uid = ?", who.user.UID).
			Where("subject_kind = ?", who.kind).Scan(ctx, &uids)
	})
	if err != nil {
		return nil, err
	}
	return sets.New(uids...), nil
}

// Move moves all subscriptions to one subject to another subject.
func (s *Store) Move(ctx context.Context, from, to database.Subject) error {
	if from == to {
		return nil
	}
	defer s.db.Afterwards(ctx, s.subscribed.clear)
	attempt := fmt.Sprintf("moving the subscriptions of %s to %s", from, to)
	return s.db.Atomically(ctx, attempt, func(ctx context.Context, tx bun.IDB) error {
		var rows []subscription
		// The deleted rows are exactly the moved ones, even with concurrent subscriptions.
		if _, err := tx.NewDelete().Model(&rows).Apply(of(from)).Returning("*").Exec(ctx); err != nil {
			return err
		}
		for some := range slices.Chunk(rows, insertedAtOnce) {
			for i := range some {
				some[i].SubjectKind, some[i].SubjectID, some[i].SubjectUID = to.Kind, to.ID, to.UID
			}
			if _, err := tx.NewInsert().Model(&some).On("CONFLICT DO NOTHING").Exec(ctx); err != nil {
				return err
			}
		}
		return nil
	})
}

// Remove ends all subscriptions to a subject, for example after its deletion.
func (s *Store) Remove(ctx context.Context, subject database.Subject) error {
	defer s.db.Afterwards(ctx, s.subscribed.clear)
	return s.db.Write(ctx, fmt.Sprintf("removing the subscriptions of %s", subject), func(ctx context.Context, db bun.IDB) error {
		_, err := db.NewDelete().Model((*subscription)(nil)).Apply(of(subject)).Exec(ctx)
		return err
	})
}

// of selects the subscriptions to a subject.
func of(subject database.Subject) func(*bun.DeleteQuery) *bun.DeleteQuery {
	return func(q *bun.DeleteQuery) *bun.DeleteQuery {
		return q.Where("subject_kind = ?", subject.Kind).Where("subject_id = ?", subject.ID).Where("subject_uid = ?", subject.UID)
	}
}
