package pipeline

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/uptrace/bun"
	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/internal/credential"
	"github.com/forgeplane/forgeplane/internal/database"
)

// TokenPrefix begins the tokens of jobs.
const TokenPrefix = "glcbt-"

// NewToken returns a new token for a job.
func NewToken() string { return credential.NewToken(TokenPrefix) }

// Pending returns the jobs that wait for a runner and have a greater id than after, the oldest first, and at most so many. projects is nil for the
// jobs of all projects. The jobs have only the columns that the choice of a job needs, because each runner reads many of them.
func (s *Store) Pending(ctx context.Context, projects []types.UID, after int64, most int) (some []Job, err error) {
	err = s.db.Read(ctx, "listing pending jobs", func(ctx context.Context, db bun.IDB) error {
		q := db.NewSelect().Model(&some).Column("id", "subject_kind", "subject_id", "subject_uid", "pipeline_id", "position", "name", "status", "tags", "user_id",
			"user_uid", "queued_at").Where("job.status = ?", Pending).Where("NOT job.bridge").Where("NOT job.external").Where("job.id > ?", after)
		if projects != nil {
			q = database.Select(db, q, []Condition{database.Among("job.subject_uid", projects)})
		}
		return q.Order("job.id").Limit(int64(most)).Scan(ctx)
	})
	return some, err
}

// Running returns the number of running jobs of each of some projects.
func (s *Store) Running(ctx context.Context, projects []types.UID) (map[types.UID]int, error) {
	var rows []struct {
		UID types.UID `bun:"uid"`
		N   int       `bun:"n"`
	}
	err := s.db.Read(ctx, "counting running jobs", func(ctx context.Context, db bun.IDB) error {
		q := db.NewSelect().Model((*Job)(nil)).ColumnExpr("job.subject_uid AS uid, count(*) AS n").Where("job.status = ?", Running).Where("NOT job.external")
		return database.Select(db, q, []Condition{database.Among("job.subject_uid", projects)}).Group("job.subject_uid").Scan(ctx, &rows)
	})
	counts := make(map[types.UID]int, len(rows))
	for _, r := range rows {
		counts[r.UID] = r.N
	}
	return counts, err
}

// Queue returns a text that changes when a job begins to wait for a runner. It does not end with a space, which would be lost in a header.
func (s *Store) Queue(ctx context.Context) (version string, err error) {
	err = s.db.Read(ctx, "reading the queue of jobs", func(ctx context.Context, db bun.IDB) error {
		return db.NewSelect().Model((*Job)(nil)).ColumnExpr("count(*) || ' ' || coalesce(CAST(max(job.queued_at) AS TEXT), '-')").Where("job.status = ?", Pending).Where("NOT job.bridge").Scan(ctx, &version)
	})
	return version, err
}

// Take gives a pending job to a runner, with the token of the job. The error is ErrTransition if the job is not pending any more.
func (s *Store) Take(ctx context.Context, j Job, runnerID int64, token string) (taken Job, err error) {
	err = s.db.Atomically(ctx, fmt.Sprintf("giving job %d to a runner", j.ID), func(ctx context.Context, db bun.IDB) error {
		if err := lock(ctx, db, j.PipelineID); err != nil {
			return err
		}
		// In a running pipeline, nothing follows from one more running job: the other jobs need not be read, which can be a thousand.
		running, err := db.NewSelect().Model((*Pipeline)(nil)).Where("id = ?", j.PipelineID).Where("status = ?", Running).Where("started_at IS NOT NULL").Exists(ctx)
		if err != nil {
			return err
		}
		if running {
			taken = j
			return taken.start(ctx, db, runnerID, token, s.clock.Now().UTC())
		}
		taken, err = s.changeJob(ctx, j, func(r *run, j *Job) (*Job, error) {
			if !r.become(j, Running) {
				return nil, ErrTransition
			}
			j.RunnerID, j.TokenDigest, j.Contacted = runnerID, credential.Digest(token), r.now
			return j, nil
		})
		return err
	})
	return taken, err
}

// start gives a pending job to a runner, and changes nothing else in its pipeline.
func (j *Job) start(ctx context.Context, db bun.IDB, runnerID int64, token string, now time.Time) error {
	j.Status, j.Started, j.Contacted = Running, now, now
	j.RunnerID, j.TokenDigest = runnerID, credential.Digest(token)
	result, err := db.NewUpdate().Model(j).Column("status", "started_at", "contacted_at", "runner_id", "token_digest").WherePK().
		Where("status = ?", Pending).Where("NOT retried").Exec(ctx)
	return database.Changed(result, err, ErrTransition)
}

// ByDigest returns the job whose token has a digest, without its keywords. The job can have any status. If it does not exist, the error is ErrNotFound.
func (s *Store) ByDigest(ctx context.Context, digest string) (Job, error) {
	var found []Job
	err := s.db.Read(ctx, "finding a job by its token", func(ctx context.Context, db bun.IDB) error {
		return light(db.NewSelect().Model(&found)).Where("token_digest = ?", digest).Scan(ctx)
	})
	if err == nil && len(found) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return Job{}, err
	}
	return found[0], nil
}

// Failure describes why a job has failed.
type Failure struct {
	// Reason is a failure reason, such as script_failure.
	Reason string
	// ExitCode is the exit code of the script; nil if it is unknown.
	ExitCode *int
}

// Succeed ends a running job. The error is ErrTransition if the job is not running any more.
func (s *Store) Succeed(ctx context.Context, j Job) (Job, error) {
	return s.changeJob(ctx, j, func(r *run, j *Job) (*Job, error) {
		if !r.become(j, Success) {
			return nil, ErrTransition
		}
		return j, nil
	})
}

// Fail ends a running job, or one that waits for a runner, and runs it again as its keywords demand. The error is ErrTransition if the job has
// ended.
func (s *Store) Fail(ctx context.Context, of Job, f Failure) (failed Job, err error) {
	err = s.db.Atomically(ctx, fmt.Sprintf("failing job %d", of.ID), func(ctx context.Context, db bun.IDB) error {
		full, err := s.WithSpec(ctx, of.In.UID, of.ID)
		if err != nil {
			return err
		}
		attempts, err := db.NewSelect().Model((*Job)(nil)).Where("pipeline_id = ?", of.PipelineID).Where("position = ?", of.Position).Count(ctx)
		if err != nil {
			return err
		}
		failed, err = s.changeJob(ctx, of, func(r *run, j *Job) (*Job, error) {
			if !r.fail(j, f.Reason) {
				return nil, ErrTransition
			}
			if f.ExitCode != nil && !j.AllowFailure && slices.Contains(full.Spec.AllowFailure.ExitCodes, *f.ExitCode) {
				j.AllowFailure, j.Excused = true, true
			}
			if f.retries(full, int(attempts)) {
				r.enqueue(r.retry(j, j.User))
			}
			return j, nil
		})
		return err
	})
	return failed, err
}

// retries reports whether the keywords of a job demand another attempt after a failure.
func (f Failure) retries(j Job, attempts int) bool {
	again := j.Spec.Retry
	if attempts > again.Max {
		return false
	}
	if f.ExitCode != nil && slices.Contains(again.ExitCodes, *f.ExitCode) {
		return true
	}
	if len(again.When) == 0 {
		return len(again.ExitCodes) == 0
	}
	return slices.Contains(again.When, "always") || slices.Contains(again.When, f.Reason)
}
