package pipeline

import (
	"context"
	"errors"
	"time"

	"github.com/go-logr/logr"
	"github.com/uptrace/bun"
	"k8s.io/utils/clock"

	"github.com/forgeplane/forgeplane/internal/database"
)

const (
	// silence is the time after which a running job fails if its runner sends nothing. A runner that is alive sends something every 30 seconds.
	silence = 10 * time.Minute
	// maxPending is the time after which a job fails that no runner takes.
	maxPending = 24 * time.Hour
	// abandonedAtOnce is the maximum number of jobs that fail in one go.
	abandonedAtOnce = 100
	// watchInterval is the time between two looks for abandoned jobs.
	watchInterval = time.Minute
)

// The failure reasons of abandoned jobs.
const (
	RunnerIsGone = "runner_system_failure"
	NoRunner     = "stuck_or_timeout_failure"
)

// FailAbandoned fails jobs whose runners have stopped to send anything, and jobs that no runner has taken for a day. They run again if their keywords
// demand it. It returns their number.
func (s *Store) FailAbandoned(ctx context.Context) (n int, err error) {
	now := s.clock.Now()
	for reason, of := range map[string]Condition{
		RunnerIsGone: database.Where("job.status = ? AND job.contacted_at < ?", Running, database.Time(now.Add(-silence))),
		NoRunner:     database.Where("job.status = ? AND NOT job.external AND job.queued_at < ?", Pending, database.Time(now.Add(-maxPending))),
	} {
		var some []Job
		err := s.db.Read(ctx, "finding abandoned jobs", func(ctx context.Context, db bun.IDB) error {
			return database.Select(db, light(db.NewSelect().Model(&some)), []Condition{of}).Order("job.id").Limit(abandonedAtOnce).Scan(ctx)
		})
		if err != nil {
			return n, err
		}
		for _, j := range some {
			switch _, err := s.Fail(ctx, j, Failure{Reason: reason}); {
			case errors.Is(err, ErrTransition), errors.Is(err, ErrNotRetryable), errors.Is(err, ErrNotFound): // it has changed meanwhile
			case err != nil:
				return n, err
			default:
				n++
			}
		}
	}
	return n, nil
}

// Watch fails abandoned jobs, in the leading manager.
type Watch struct {
	store *Store
	clock clock.WithTicker
	log   logr.Logger
}

// NewWatch returns a watch for the jobs of a store.
func NewWatch(s *Store, c clock.WithTicker, log logr.Logger) *Watch { return &Watch{s, c, log} }

// NeedLeaderElection is true: one watch suffices.
func (*Watch) NeedLeaderElection() bool { return true }

// Start watches until ctx ends.
func (w *Watch) Start(ctx context.Context) error {
	tick := w.clock.NewTicker(watchInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C():
		}
		if n, err := w.store.FailAbandoned(ctx); err != nil && ctx.Err() == nil {
			w.log.Error(err, "Failed to end abandoned jobs")
		} else if n > 0 {
			w.log.Info("Failed abandoned jobs", "jobs", n)
		}
	}
}
