package pipeline

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"

	"github.com/uptrace/bun"

	"github.com/forgeplane/forgeplane/internal/fair"
	"github.com/forgeplane/forgeplane/internal/iid"
	"github.com/forgeplane/forgeplane/internal/job"
)

// Create adds a pipeline with its jobs, which are in the order of their stages, and with the variables of the request. It completes all of them.
// The pipeline has the status Created, unless it has one that has ended. Advance moves it on, and the queue does if the caller does not. The error
// is ErrExists if another pipeline has the same Origin.
func (s *Store) Create(ctx context.Context, p *Pipeline, jobs []*Job, variables []Variable) error {
	p.Created = s.clock.Now().UTC()
	p.Updated = p.Created
	if p.Status.Ended() {
		p.Finished = p.Created
	} else {
		p.Status = Created
	}
	return s.db.Atomically(ctx, fmt.Sprintf("creating a pipeline in %s", p.In), func(ctx context.Context, db bun.IDB) (err error) {
		if p.IID, err = iid.Next(ctx, s.db, p.In, Kind); err != nil {
			return err
		}
		former, err := p.awaitLike(ctx, db)
		if err != nil {
			return err
		}
		_, err = db.NewInsert().Model(p).On("CONFLICT (origin) DO NOTHING").Returning("id").Exec(ctx)
		if errors.Is(err, sql.ErrNoRows) || err == nil && p.ID == 0 {
			return ErrExists
		}
		if err != nil {
			return err
		}
		if err := p.addVariables(ctx, db, 0, variables); err != nil {
			return err
		}
		for _, other := range former {
			if err := s.ends.Add(ctx, other.task()); err != nil {
				return err
			}
		}
		if len(jobs) == 0 {
			return s.tellBridges(ctx, newRun(*p, nil, p.Created))
		}
		for i, j := range jobs {
			j.In, j.PipelineID, j.Position, j.Status, j.User, j.Created = p.In, p.ID, i, Created, p.User, p.Created
		}
		if _, err := db.NewInsert().Model(&jobs).Returning("id").Exec(ctx); err != nil {
			return err
		}
		return s.tasks.Add(ctx, p.task())
	})
}

// addVariables adds variables with different keys to a pipeline, or to one of its jobs.
func (p *Pipeline) addVariables(ctx context.Context, db bun.IDB, jobID int64, variables []Variable) error {
	if len(variables) == 0 {
		return nil
	}
	rows := make([]Variable, len(variables))
	for i, v := range variables {
		rows[i] = Variable{PipelineID: p.ID, JobID: jobID, Key: v.Key, Value: v.Value, Type: v.Type}
	}
	_, err := db.NewInsert().Model(&rows).Exec(ctx)
	return err
}

// replaceVariables gives a job variables with different keys, if there are any, in place of those that it has.
func replaceVariables(ctx context.Context, db bun.IDB, j Job, variables []Variable) error {
	if len(variables) == 0 {
		return nil
	}
	if _, err := db.NewDelete().Model((*Variable)(nil)).Where("pipeline_id = ?", j.PipelineID).Where("job_id = ?", j.ID).Exec(ctx); err != nil {
		return err
	}
	return (&Pipeline{ID: j.PipelineID}).addVariables(ctx, db, j.ID, variables)
}

// task returns the task that moves the pipeline on. It uses the share of the user of the pipeline.
func (p *Pipeline) task() job.Task {
	return job.Task{Key: strconv.FormatInt(p.ID, 10), Tenant: fair.User(p.User.ID)}
}

// Run runs a task of the queue.
func (s *Store) Run(ctx context.Context, a job.Attempt, _ func(string)) error {
	id, err := strconv.ParseInt(a.Key, 10, 64)
	if err != nil {
		return fmt.Errorf("reading the id of a pipeline: %w", err)
	}
	if _, err = s.Advance(ctx, id); errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}

// Delete removes a pipeline with its jobs and variables. The error is ErrNotFound if there is no such pipeline.
func (s *Store) Delete(ctx context.Context, id int64) error {
	return s.db.Atomically(ctx, fmt.Sprintf("deleting pipeline %d", id), func(ctx context.Context, db bun.IDB) error {
		if err := lock(ctx, db, id); err != nil {
			return err
		}
		var p Pipeline
		if err := db.NewSelect().Model(&p).Where("id = ?", id).Scan(ctx); err != nil {
			return err
		}
		var groups []string
		err := db.NewSelect().Model((*Job)(nil)).Distinct().Column("resource_group").Where("pipeline_id = ?", id).Where("resource_group <> ''").
			Order("resource_group").Scan(ctx, &groups)
		if err == nil && len(groups) > 0 {
			err = iid.Lock(ctx, s.db, p.In, Kind) // as for assignResources
		}
		if err != nil {
			return err
		}
		if _, err := db.NewDelete().Model((*Pipeline)(nil)).Where("id = ?", id).Exec(ctx); err != nil {
			return err
		}
		if p.Awaited {
			if err := s.ends.Add(ctx, p.task()); err != nil {
				return err
			}
		}
		var offers []job.Task
		for _, group := range groups {
			next, err := offer(ctx, db, p.In.UID, group, id)
			if err != nil {
				return err
			}
			offers = append(offers, next...)
		}
		return s.accept(ctx, offers)
	})
}
