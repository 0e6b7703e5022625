package pipeline

import (
	"context"
	"fmt"

	"github.com/uptrace/bun"
	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/internal/ci/config"
)

// SourceExternal is the source of pipelines that have only external jobs.
const SourceExternal = "external"

// external is the stage of external jobs, which is the last one.
const (
	external      = "external"
	externalIndex = 1_000_000
)

// Report is the status of an external job, which another system reports for a commit.
type Report struct {
	// Name identifies the job within its pipeline.
	Name   string
	Status Status
	// Description, TargetURL and Coverage are as in Job.
	Description, TargetURL string
	Coverage               *float64
	By                     User
}

// Report records a report in a pipeline and returns the external job: the one with its name if that has not ended, or a new job, which
// takes the place of the one that has ended. A pipeline without an id is created before. The error is ErrNotFound if there is no such pipeline.
func (s *Store) Report(ctx context.Context, p *Pipeline, of Report) (reported Job, err error) {
	err = s.db.Atomically(ctx, fmt.Sprintf("recording a report about %s", p.SHA), func(ctx context.Context, db bun.IDB) error {
		if p.ID == 0 {
			if err := s.Create(ctx, p, nil, nil); err != nil {
				return err
			}
		}
		r, err := s.load(ctx, db, p.ID)
		if err != nil {
			return err
		}
		j := r.report(of)
		if j.ID == 0 {
			if _, err := db.NewInsert().Model(j).Returning("id").Exec(ctx); err != nil {
				return err
			}
		} else {
			r.changed[j] = true
		}
		r.conclude()
		reported = *j
		return s.write(ctx, db, r)
	})
	return reported, err
}

// report applies a report in memory.
func (r *run) report(of Report) *Job {
	at := len(r.jobs)
	for i, j := range r.jobs {
		if j.External && j.Name == of.Name {
			at = i
		}
	}
	if at == len(r.jobs) || r.jobs[at].Status.Ended() {
		j := &Job{
			In: r.In, PipelineID: r.ID, Position: at, Name: of.Name, Stage: external, StageIndex: externalIndex, External: true, Status: Created, When: "on_success",
			Needs: []Need{}, Tags: []string{}, Spec: &config.Job{}, Created: r.now,
		}
		if at == len(r.jobs) {
			r.jobs = append(r.jobs, j)
		} else {
			former := r.jobs[at]
			former.Retried, r.changed[former] = true, true
			j.Position, r.jobs[at] = former.Position, j
		}
	}
	j := r.jobs[at]
	j.User, j.Description, j.TargetURL = of.By, of.Description, of.TargetURL
	if of.Coverage != nil {
		j.Coverage = of.Coverage
	}
	if j.Status != of.Status {
		j.Status = of.Status
		switch {
		case of.Status == Pending:
			j.Queued = r.now
		case of.Status == Running:
			j.Started = r.now
		case of.Status.Ended():
			j.Finished = r.now
		}
	}
	return j
}

// StatusQuery selects the jobs of a commit of a project, of all kinds. Empty fields select all.
type StatusQuery struct {
	Project          types.UID
	SHA              string
	Ref, Stage, Name string
	Pipeline         int64
	// Retried also selects jobs that were retried.
	Retried bool
	// Descending reverses the order. Jobs are in the order of their ids, or with ByPipeline first in the order of their pipelines.
	Descending, ByPipeline bool
}

// ListStatuses skips some jobs and returns at most so many of those that follow.
func (s *Store) ListStatuses(ctx context.Context, of StatusQuery, skip, most int) (some []Job, err error) {
	err = s.db.Read(ctx, "listing the statuses of a commit", func(ctx context.Context, db bun.IDB) error {
		direction := " ASC"
		if of.Descending {
			direction = " DESC"
		}
		q := light(of.selected(db)).Model(&some)
		if of.ByPipeline {
			q = q.OrderExpr("job.pipeline_id" + direction)
		}
		return q.OrderExpr("job.id" + direction).Offset(int64(skip)).Limit(int64(most)).Scan(ctx)
	})
	return some, err
}

// CountStatuses returns the number of jobs. It stops counting at most.
func (s *Store) CountStatuses(ctx context.Context, of StatusQuery, most int) (n int, err error) {
	err = s.db.Read(ctx, "counting the statuses of a commit", func(ctx context.Context, db bun.IDB) error {
		return db.NewSelect().TableExpr("(?) AS selected", of.selected(db).Column("id").Limit(int64(most))).ColumnExpr("count(*)").Scan(ctx, &n)
	})
	return n, err
}

func (of StatusQuery) selected(db bun.IDB) *bun.SelectQuery {
	pipelines := db.NewSelect().TableExpr("pipelines").ColumnExpr("id").Where("subject_uid = ?", of.Project).Where("sha = ?", of.SHA)
	if of.Ref != "" {
		pipelines = pipelines.Where("ref = ?", of.Ref)
	}
	if of.Pipeline != 0 {
		pipelines = pipelines.Where("id = ?", of.Pipeline)
	}
	q := db.NewSelect().Model((*Job)(nil)).Where("job.pipeline_id IN (?)", pipelines)
	if of.Stage != "" {
		q = q.Where("job.stage = ?", of.Stage)
	}
	if of.Name != "" {
		q = q.Where("job.name = ?", of.Name)
	}
	if !of.Retried {
		q = q.Where("NOT job.retried")
	}
	return q
}
