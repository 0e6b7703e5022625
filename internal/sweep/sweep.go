// Package sweep removes the rows of deleted objects from the activity database.
package sweep

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"github.com/uptrace/bun"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/forgeplane/forgeplane/internal/database"
)

const (
	// interval is the time between two looks of a Sweeper.
	interval = time.Hour
	// grace is the time for which an object must be missing, because objects that are deleted by mistake are often restored.
	grace = 24 * time.Hour
	// SubjectsAtOnce is the maximum number of subjects in a query, and maxSwept the maximum number of subjects whose rows a look removes.
	SubjectsAtOnce, maxSwept = 500, 1000
	// maxMissing is the maximum number of missing objects in memory.
	maxMissing = 100_000
)

// Having returns the UIDs of the objects of a kind that have a REST id, whether or not they are in force.
type Having func(ctx context.Context, id int64) ([]types.UID, error)

// Rows are the rows of a table.
type Rows interface {
	// After returns SubjectsAtOnce subjects of rows beyond one, of its kind and in the order of their ids and UIDs, and fewer at the end.
	After(ctx context.Context, after database.Subject) ([]database.Subject, error)
	// Remove removes the rows of a subject.
	Remove(ctx context.Context, subject database.Subject) error
}

// Objects are the objects of a kind to which rows belong.
type Objects struct {
	Kind   string
	Having Having
	Rows   Rows
}

// Sweeper removes the rows of objects that have been gone for a day. When a label is deleted over REST, its subscriptions are removed at
// once. The Sweeper removes those of labels that are deleted in other ways, and all uses of deleted tokens. No request returns such
// rows, so they only take up space.
type Sweeper struct {
	objects []Objects
	expire  func(context.Context) error
	clock   clock.WithTicker
	log     logr.Logger
	missing map[database.Subject]time.Time
}

// New returns a sweeper that has not seen any object yet. expire removes rows that are only too old. The sweeper ignores rows of kinds that
// are not in objects.
func New(objects []Objects, expire func(context.Context) error, c clock.WithTicker, log logr.Logger) *Sweeper {
	return &Sweeper{objects: objects, expire: expire, clock: c, log: log, missing: map[database.Subject]time.Time{}}
}

// NeedLeaderElection is true: one of several replicas suffices.
func (*Sweeper) NeedLeaderElection() bool { return true }

// Start looks at once, and every hour until ctx ends.
func (s *Sweeper) Start(ctx context.Context) error {
	ticker := s.clock.NewTicker(interval)
	defer ticker.Stop()
	for {
		if err := errors.Join(s.Look(ctx), s.expire(ctx)); err != nil && ctx.Err() == nil {
			s.log.Error(err, "Failed to remove the activity of deleted objects")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
	}
}

// look is one look at all rows.
type look struct {
	*Sweeper
	missing map[database.Subject]time.Time
	swept   int
}

// Look removes the rows of objects that have been missing for long enough, and remembers the others that are missing. After an error with one
// object it goes on with the next.
func (s *Sweeper) Look(ctx context.Context) error {
	l := &look{Sweeper: s, missing: map[database.Subject]time.Time{}}
	var errs []error
	for _, o := range s.objects {
		errs = append(errs, l.all(ctx, o))
	}
	s.missing = l.missing
	return errors.Join(errs...)
}

// all looks at the rows of a table. It returns the first error with a subject only, because many subjects can have the same.
func (l *look) all(ctx context.Context, o Objects) (first error) {
	for after, more := (database.Subject{Kind: o.Kind}), true; more; {
		subjects, err := o.Rows.After(ctx, after)
		if err != nil {
			return errors.Join(first, err)
		}
		for _, after = range subjects {
			if err := l.at(ctx, o, after); err != nil && first == nil {
				first = err
			}
		}
		more = len(subjects) == SubjectsAtOnce
	}
	return first
}

// at looks at the rows of one subject.
func (l *look) at(ctx context.Context, o Objects, subject database.Subject) error {
	since, missing := l.Sweeper.missing[subject]
	known, err := o.Having(ctx, subject.ID)
	switch {
	case err != nil:
		if missing {
			l.remember(subject, since)
		}
		return err
	case slices.Contains(known, subject.UID):
		return nil
	case !missing:
		since = l.clock.Now()
	}
	if l.clock.Since(since) < grace || l.swept == maxSwept {
		l.remember(subject, since)
		return nil
	}
	l.swept++
	if err := o.Rows.Remove(ctx, subject); err != nil {
		l.remember(subject, since)
		return err
	}
	return nil
}

// remember remembers a missing object, if there is room.
func (l *look) remember(subject database.Subject, since time.Time) {
	if len(l.missing) < maxMissing {
		l.missing[subject] = since
	}
}

// Subjects is Rows.After for a table with the columns subject_kind, subject_id and subject_uid, which a pointer to its row names.
func Subjects(ctx context.Context, d *database.DB, row any, after database.Subject) ([]database.Subject, error) {
	var ids []int64
	var uids []types.UID
	attempt := fmt.Sprintf("listing the activity of each %s", after.Kind)
	err := d.Read(ctx, attempt, func(ctx context.Context, db bun.IDB) error {
		return db.NewSelect().Model(row).Distinct().Column("subject_id", "subject_uid").Where("subject_kind = ?", after.Kind).
			Where("(subject_id, subject_uid) > (?, ?)", after.ID, after.UID).
			Order("subject_id", "subject_uid").Limit(SubjectsAtOnce).Scan(ctx, &ids, &uids)
	})
	subjects := make([]database.Subject, len(ids))
	for i := range ids {
		subjects[i] = database.Subject{Kind: after.Kind, ID: ids[i], UID: uids[i]}
	}
	return subjects, err
}
