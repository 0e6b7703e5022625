package activity

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
)

const (
	// sweepInterval is the time between two looks of a Sweeper.
	sweepInterval = time.Hour
	// sweepGrace is for how long an object is to be missing: one that is deleted by mistake is often brought back.
	sweepGrace = 24 * time.Hour
	// maxSwept is of how many objects a look removes the rows, and subjectsAtOnce of how many a query tells.
	maxSwept, subjectsAtOnce = 1000, 500
	// maxMissing is how many missing objects are remembered.
	maxMissing = 100_000
)

// Exists reports whether there is an object with a REST id.
type Exists func(ctx context.Context, id int64) (bool, error)

// Sweeper removes what a database holds of objects that have been gone for a day. When a label is deleted over REST, its
// subscriptions are removed at once. Those of one that is deleted in another way, and the uses of a trigger token in any case, are
// left to the Sweeper: nobody sees them, and they are only in the way.
type Sweeper struct {
	store   *Store
	kinds   map[string]Exists
	clock   clock.WithTicker
	log     logr.Logger
	missing map[Subject]time.Time
}

// NewSweeper returns a sweeper that has seen nothing yet. Of kinds of subjects that are not among those of kinds it leaves
// everything.
func NewSweeper(s *Store, kinds map[string]Exists, c clock.WithTicker, log logr.Logger) *Sweeper {
	return &Sweeper{store: s, kinds: kinds, clock: c, log: log, missing: map[Subject]time.Time{}}
}

// NeedLeaderElection is true: one of several replicas suffices.
func (*Sweeper) NeedLeaderElection() bool { return true }

// Start looks every hour until ctx ends.
func (s *Sweeper) Start(ctx context.Context) error {
	ticker := s.clock.NewTicker(sweepInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
		if err := errors.Join(s.look(ctx), s.store.ForgetServers(ctx)); err != nil && ctx.Err() == nil {
			s.log.Error(err, "Looking for activity of objects that are gone")
		}
	}
}

// look removes the rows of objects that have been missing for long enough, and remembers the others that are missing.
func (s *Sweeper) look(ctx context.Context) error {
	missing, swept := map[Subject]time.Time{}, 0
	for kind, exists := range s.kinds {
		for _, table := range []any{(*subscription)(nil), (*use)(nil)} {
			err := s.store.eachSubject(ctx, table, kind, func(subject Subject) error {
				is, err := exists(ctx, subject.ID)
				if is || err != nil {
					return err
				}
				since, known := s.missing[subject]
				if !known {
					since = s.clock.Now()
				}
				if s.clock.Since(since) < sweepGrace || swept == maxSwept {
					if len(missing) < maxMissing {
						missing[subject] = since
					}
					return nil
				}
				swept++
				return s.store.remove(ctx, subject)
			})
			if err != nil {
				return err
			}
		}
	}
	s.missing = missing
	return nil
}

// remove removes all rows of a subject.
func (s *Store) remove(ctx context.Context, subject Subject) error {
	if err := s.RemoveSubscriptions(ctx, subject); err != nil {
		return err
	}
	return s.RemoveUses(ctx, subject)
}

// eachSubject calls do with each subject of a kind that a table has rows of.
func (s *Store) eachSubject(ctx context.Context, table any, kind string, do func(Subject) error) error {
	for after, more := int64(0), true; more; {
		ids, err := s.subjects(ctx, table, kind, after)
		if err != nil {
			return err
		}
		for _, after = range ids {
			if err := do(Subject{Kind: kind, ID: after}); err != nil {
				return err
			}
		}
		more = len(ids) == subjectsAtOnce
	}
	return nil
}

func (s *Store) subjects(ctx context.Context, table any, kind string, after int64) (ids []int64, err error) {
	ctx, cancel := limited(ctx)
	defer cancel()
	err = s.read.NewSelect().Model(table).Distinct().Column("subject_id").
		Where("subject_kind = ?", kind).Where("subject_id > ?", after).Order("subject_id").Limit(subjectsAtOnce).Scan(ctx, &ids)
	if err != nil {
		return nil, failed(ctx, fmt.Sprintf("listing what there is of each %s", kind), err)
	}
	return ids, nil
}
