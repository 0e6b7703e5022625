package activity

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
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

// Known is an object as far as rows have to know of it.
type Known struct {
	UID types.UID
	// Created is when it was made.
	Created time.Time
}

// Having returns the objects of a kind that have a REST id, be they in force or not.
type Having func(ctx context.Context, id int64) ([]Known, error)

// Sweeper removes what a database holds of objects that have been gone for a day. When a label is deleted over REST, its
// subscriptions are removed at once. Those of one that is deleted in another way, and the uses of a trigger token in any case, are
// left to the Sweeper: nobody sees them, and they are only in the way. It also gives rows that were written before there were UIDs
// those of the objects that they are of.
type Sweeper struct {
	store   *Store
	kinds   map[string]Having
	clock   clock.WithTicker
	log     logr.Logger
	missing map[Subject]time.Time
}

// NewSweeper returns a sweeper that has seen nothing yet. Of kinds of subjects that are not among those of kinds it leaves
// everything.
func NewSweeper(s *Store, kinds map[string]Having, c clock.WithTicker, log logr.Logger) *Sweeper {
	return &Sweeper{store: s, kinds: kinds, clock: c, log: log, missing: map[Subject]time.Time{}}
}

// NeedLeaderElection is true: one of several replicas suffices.
func (*Sweeper) NeedLeaderElection() bool { return true }

// Start looks at once, and every hour until ctx ends.
func (s *Sweeper) Start(ctx context.Context) error {
	ticker := s.clock.NewTicker(sweepInterval)
	defer ticker.Stop()
	for {
		if err := errors.Join(s.look(ctx), s.store.ForgetServers(ctx)); err != nil && ctx.Err() == nil {
			s.log.Error(err, "Looking for activity of objects that are gone")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
	}
}

// look removes the rows of objects that have been missing for long enough, and remembers the others that are missing.
func (s *Sweeper) look(ctx context.Context) error {
	missing, swept := map[Subject]time.Time{}, 0
	// gone removes the rows of a subject that is missing, when it is time to.
	gone := func(subject Subject, remove func(context.Context) error) error {
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
		return remove(ctx)
	}
	if err := s.fillInUsers(ctx, gone); err != nil {
		return err
	}
	for kind, having := range s.kinds {
		for _, table := range []any{(*subscription)(nil), (*use)(nil)} {
			err := s.store.eachSubject(ctx, table, kind, func(subject Subject) error {
				known, err := having(ctx, subject.ID)
				if err != nil || slices.ContainsFunc(known, func(o Known) bool { return o.UID == subject.UID }) {
					return err
				}
				if subject.UID == "" && len(known) == 1 {
					if err := s.store.fillIn(ctx, subject, known[0]); err != nil {
						return err
					}
				}
				return gone(subject, func(ctx context.Context) error { return s.store.remove(ctx, subject) })
			})
			if err != nil {
				return err
			}
		}
	}
	s.missing = missing
	return nil
}

// fillInUsers gives the rows of users their UIDs where they are missing. What is left is of users who are gone.
func (s *Sweeper) fillInUsers(ctx context.Context, gone func(Subject, func(context.Context) error) error) error {
	having := s.kinds[KindUser]
	if having == nil {
		return nil
	}
	for after, more := int64(0), true; more; {
		ids, err := s.store.usersToFillIn(ctx, after)
		if err != nil {
			return err
		}
		for _, after = range ids {
			known, err := having(ctx, after)
			if err == nil && len(known) == 1 {
				err = s.store.fillInUser(ctx, after, known[0])
			}
			if err == nil {
				err = gone(Subject{Kind: KindUser, ID: after}, func(ctx context.Context) error { return s.store.removeOfUser(ctx, after) })
			}
			if err != nil {
				return err
			}
		}
		more = len(ids) == subjectsAtOnce
	}
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
	for after, more := (Subject{Kind: kind}), true; more; {
		subjects, err := s.subjects(ctx, table, after)
		if err != nil {
			return err
		}
		for _, after = range subjects {
			if err := do(after); err != nil {
				return err
			}
		}
		more = len(subjects) == subjectsAtOnce
	}
	return nil
}

func (s *Store) subjects(ctx context.Context, table any, after Subject) ([]Subject, error) {
	ctx, cancel := limited(ctx)
	defer cancel()
	var ids []int64
	var uids []types.UID
	err := s.read.NewSelect().Model(table).Distinct().Column("subject_id", "subject_uid").Where("subject_kind = ?", after.Kind).
		Where("(subject_id, subject_uid) > (?, ?)", after.ID, after.UID).
		Order("subject_id", "subject_uid").Limit(subjectsAtOnce).Scan(ctx, &ids, &uids)
	if err != nil {
		return nil, failed(ctx, fmt.Sprintf("listing what there is of each %s", after.Kind), err)
	}
	subjects := make([]Subject, len(ids))
	for i := range ids {
		subjects[i] = Subject{after.Kind, ids[i], uids[i]}
	}
	return subjects, nil
}
