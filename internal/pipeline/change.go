package pipeline

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/uptrace/bun"

	"github.com/forgeplane/forgeplane/internal/database"
)

// User is the user of a change.
type User = database.User

var (
	// ErrNotRetryable says that a job has not run, or was retried before.
	ErrNotRetryable = errors.New("the job cannot be retried")
	// ErrNotPlayable says that a job does not wait for a user.
	ErrNotPlayable = errors.New("the job cannot be played")
	// ErrNotErasable says that a job has not ended, or was erased before.
	ErrNotErasable = errors.New("the job cannot be erased")
	// ErrTransition says that a job cannot have a status now.
	ErrTransition = errors.New("the job cannot change to this status")
)

// Advance moves on all jobs of a pipeline that need not wait any longer.
func (s *Store) Advance(ctx context.Context, id int64) (Pipeline, error) {
	return s.change(ctx, "moving on", id, func(*run) error { return nil })
}

// Cancel cancels all jobs of a pipeline and of its child pipelines that have not ended, apart from manual jobs. After an error it can be repeated.
func (s *Store) Cancel(ctx context.Context, id int64) (Pipeline, error) {
	return s.change(ctx, "canceling", id, func(r *run) error {
		r.cancel()
		return nil
	})
}

// cancelChildren cancels the child pipelines of a pipeline.
func (s *Store) cancelChildren(ctx context.Context, p Pipeline) error {
	children, err := s.children(ctx, p)
	for _, child := range children {
		if _, err := s.Cancel(ctx, child); err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
	}
	return err
}

// Retry runs all jobs of a pipeline again that have failed or were canceled, with the rights of a user.
func (s *Store) Retry(ctx context.Context, id int64, by User) (Pipeline, error) {
	return s.change(ctx, "retrying", id, func(r *run) error {
		for _, j := range slices.Clone(r.jobs) {
			if !j.External && (j.Status == Failed || j.Status == Canceled) {
				r.retry(j, by)
			}
		}
		return nil
	})
}

// CancelJob cancels a job, if it has not ended.
func (s *Store) CancelJob(ctx context.Context, j Job) (Job, error) {
	return s.changeJob(ctx, j, func(r *run, j *Job) (*Job, error) {
		r.become(j, Canceled)
		return j, nil
	})
}

// RetryJob runs a job again at once, with the rights of a user, and returns the new job. The error is ErrNotRetryable if the job has not run.
func (s *Store) RetryJob(ctx context.Context, j Job, by User) (Job, error) {
	return s.changeJob(ctx, j, func(r *run, j *Job) (*Job, error) { return r.again(j, by) })
}

// again replaces a job by a new one that runs at once.
func (r *run) again(j *Job, by User) (*Job, error) {
	if j.External || j.Status != Success && j.Status != Failed && j.Status != Canceled {
		return nil, ErrNotRetryable
	}
	next := r.retry(j, by)
	r.enqueue(next)
	return next, nil
}

// Play starts a job that waits for a user or a time, with the rights of a user and further variables. A manual job that has run is retried. It
// returns the job. The error is ErrNotPlayable for other jobs.
func (s *Store) Play(ctx context.Context, j Job, by User, variables []Variable) (played Job, err error) {
	err = s.db.Atomically(ctx, fmt.Sprintf("playing job %d", j.ID), func(ctx context.Context, db bun.IDB) error {
		played, err = s.changeJob(ctx, j, func(r *run, j *Job) (*Job, error) { return r.play(j, by) })
		if err != nil {
			return err
		}
		return replaceVariables(ctx, db, played, variables)
	})
	return played, err
}

func (r *run) play(j *Job, by User) (*Job, error) {
	switch {
	case j.Status == Manual || j.Status == Scheduled:
		j.User = by
		r.enqueue(j)
		r.awaken()
		return j, nil
	case j.When == "manual" || j.When == "delayed":
		if next, err := r.again(j, by); err == nil {
			return next, nil
		}
	}
	return nil, ErrNotPlayable
}

// Erase removes the log and the artifacts of a job. The error is ErrNotErasable if the job has not ended or was erased before.
func (s *Store) Erase(ctx context.Context, j Job, by User) (Job, error) {
	j.Erased, j.Eraser = s.clock.Now().UTC(), by
	err := s.db.Atomically(ctx, fmt.Sprintf("erasing job %d", j.ID), func(ctx context.Context, db bun.IDB) error {
		if err := removeLog(ctx, db, j.ID); err != nil {
			return err
		}
		if err := removeArtifacts(ctx, db, j.ID); err != nil {
			return err
		}
		result, err := db.NewUpdate().Model(&j).Column("erased_at", "eraser_id", "eraser_uid").WherePK().Where("erased_at IS NULL").
			Where("status IN (?)", bun.List([]Status{Success, Failed, Canceled})).Exec(ctx)
		return database.Changed(result, err, ErrNotErasable)
	})
	return j, err
}

// changeJob locks the pipeline of a job, changes the job with do, moves the pipeline on, and returns the job that do returns. A job that was
// retried does not change any more: the error is ErrNotRetryable then.
func (s *Store) changeJob(ctx context.Context, of Job, do func(r *run, j *Job) (*Job, error)) (Job, error) {
	var changed *Job
	_, err := s.change(ctx, fmt.Sprintf("changing job %d of", of.ID), of.PipelineID, func(r *run) (err error) {
		i := slices.IndexFunc(r.jobs, func(j *Job) bool { return j.ID == of.ID })
		if i < 0 {
			return ErrNotRetryable
		}
		changed, err = do(r, r.jobs[i])
		return err
	})
	if err != nil {
		return Job{}, err
	}
	return *changed, nil
}

// change locks a pipeline, changes it with do, moves it on, writes what has changed, and returns it. If that cancels the pipeline, it also cancels the child
// pipelines. The error is ErrNotFound if there is no such pipeline. If do returns an error, nothing is written.
func (s *Store) change(ctx context.Context, doing string, id int64, do func(*run) error) (p Pipeline, err error) {
	canceled := false
	err = s.db.Atomically(ctx, fmt.Sprintf("%s pipeline %d", doing, id), func(ctx context.Context, db bun.IDB) error {
		// Two changes must not begin with the same statuses: the first statement locks the row.
		r, err := s.load(ctx, db, id)
		if err != nil {
			return err
		}
		if err := do(r); err != nil {
			return err
		}
		r.advance()
		if err := s.assignResources(ctx, db, r); err != nil {
			return err
		}
		p, canceled = r.Pipeline, r.canceled
		return s.write(ctx, db, r)
	})
	if err == nil && canceled {
		err = s.cancelChildren(ctx, p)
	}
	return p, err
}

// load locks a pipeline and returns it with its jobs.
func (s *Store) load(ctx context.Context, db bun.IDB, id int64) (*run, error) {
	if err := lock(ctx, db, id); err != nil {
		return nil, err
	}
	var p Pipeline
	if err := db.NewSelect().Model(&p).Where("id = ?", id).Scan(ctx); err != nil {
		return nil, err
	}
	var jobs []*Job
	err := light(db.NewSelect().Model(&jobs)).Where("pipeline_id = ?", id).Where("NOT retried").Order("position").Scan(ctx)
	return newRun(p, jobs, s.clock.Now().UTC()), err
}

// lock makes other changes of a pipeline wait until the transaction ends.
func lock(ctx context.Context, db bun.IDB, id int64) error {
	return found(db.NewUpdate().Model((*Pipeline)(nil)).Set("status = status").Where("id = ?", id).Exec(ctx))
}

// write writes the changes of a run.
func (s *Store) write(ctx context.Context, db bun.IDB, r *run) error {
	if _, err := db.NewUpdate().Model(&r.Pipeline).Column("status", "updated_at", "started_at", "finished_at").WherePK().Exec(ctx); err != nil {
		return err
	}
	for j := range r.changed {
		if j.ID == 0 {
			continue // a retry
		}
		_, err := db.NewUpdate().Model(j).WherePK().Column("status", "failure_reason", "retried", "user_id", "user_uid", "queued_at", "started_at",
			"finished_at", "scheduled_at", "runner_id", "token_digest", "contacted_at", "allow_failure", "excused", "description", "target_url", "coverage").Exec(ctx)
		if err != nil {
			return err
		}
	}
	if err := r.insertRetries(ctx, db); err != nil {
		return err
	}
	if err := s.tellBridges(ctx, r); err != nil {
		return err
	}
	if r.Awaited && r.Status.Ended() {
		if err := s.ends.Add(ctx, r.task()); err != nil {
			return err
		}
	}
	if err := s.tellDeployments(ctx, r); err != nil {
		return err
	}
	if at := r.due(); !at.IsZero() {
		if err := s.tasks.AddAfter(ctx, r.task(), at.Sub(r.now)); err != nil {
			return err
		}
	}
	return s.accept(ctx, r.offers)
}

// insertRetries inserts the retries, with the keywords and the variables of the jobs that they replace.
func (r *run) insertRetries(ctx context.Context, db bun.IDB) error {
	for former, next := range r.retries {
		var of Job
		var variables []Variable
		if err := db.NewSelect().Model(&of).Column("spec").Where("id = ?", former.ID).Scan(ctx); err != nil {
			return err
		}
		next.Spec = of.Spec
		_, err := db.NewInsert().Model(next).Returning("id").Exec(ctx)
		next.Spec = nil
		if err != nil {
			return err
		}
		if err := db.NewSelect().Model(&variables).Where("pipeline_id = ?", former.PipelineID).Where("job_id = ?", former.ID).Scan(ctx); err != nil {
			return err
		}
		if err := (&Pipeline{ID: next.PipelineID}).addVariables(ctx, db, next.ID, variables); err != nil {
			return err
		}
	}
	return nil
}

// due returns the time at which the next delayed job starts; zero without one.
func (r *run) due() (first time.Time) {
	for _, j := range r.jobs {
		if j.Status == Scheduled && (first.IsZero() || j.Scheduled.Before(first)) {
			first = j.Scheduled
		}
	}
	return first
}

// light reads everything of jobs except for their keywords.
func light(q *bun.SelectQuery) *bun.SelectQuery { return q.ExcludeColumn("spec") }

func found(result sql.Result, err error) error { return database.Changed(result, err, ErrNotFound) }
