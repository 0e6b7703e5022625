package pipeline

import (
	"context"
	"fmt"
	"slices"

	"github.com/uptrace/bun"
	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/internal/database"
)

// JobQuery selects jobs of a project, the newest first.
type JobQuery struct {
	Project types.UID
	// Pipeline is 0 for the jobs of all pipelines.
	Pipeline int64
	// Bridges selects the jobs that trigger pipelines, instead of the others.
	Bridges bool
	// Statuses is empty for all statuses.
	Statuses []Status
	// Retried also selects jobs that were retried.
	Retried bool
	// Before selects jobs with smaller ids; 0 for all.
	Before int64
	// Version changes with the jobs of the project. CountJobs remembers the number of a version, unless it is empty.
	Version string
}

// ListJobs skips some jobs and returns at most so many of those that follow.
func (s *Store) ListJobs(ctx context.Context, of JobQuery, skip, most int) (some []Job, err error) {
	err = s.db.Read(ctx, "listing jobs", func(ctx context.Context, db bun.IDB) error {
		return light(of.selected(db)).Model(&some).OrderExpr("job.id DESC").Offset(int64(skip)).Limit(int64(most)).Scan(ctx)
	})
	return some, err
}

// CountJobs returns the number of jobs. It stops counting at most.
func (s *Store) CountJobs(ctx context.Context, of JobQuery, most int) (n int, err error) {
	err = s.db.Read(ctx, "counting jobs", func(ctx context.Context, db bun.IDB) error {
		n, err = s.counts.Find(ctx, db, of.selected(db).Column("id").Limit(int64(most)), of.Version)
		return err
	})
	return n, err
}

// selected selects the jobs of a query, in no order.
func (of JobQuery) selected(db bun.IDB) *bun.SelectQuery {
	q := db.NewSelect().Model((*Job)(nil)).Where("job.subject_uid = ?", of.Project).Where("job.bridge = ?", of.Bridges).Where("NOT job.external")
	if of.Pipeline != 0 {
		q.Where("job.pipeline_id = ?", of.Pipeline)
	}
	if len(of.Statuses) > 0 {
		q.Where("job.status IN (?)", bun.List(of.Statuses))
	}
	if !of.Retried {
		q.Where("NOT job.retried")
	}
	if of.Before != 0 {
		q.Where("job.id < ?", of.Before)
	}
	return q
}

// Current returns the jobs of a pipeline that were not retried and trigger no pipeline, in the order of their positions.
func (s *Store) Current(ctx context.Context, p Pipeline) (all []Job, err error) {
	err = s.db.Read(ctx, fmt.Sprintf("listing the jobs of pipeline %d", p.ID), func(ctx context.Context, db bun.IDB) error {
		return light(JobQuery{Project: p.In.UID, Pipeline: p.ID}.selected(db)).Model(&all).Order("job.position").Scan(ctx)
	})
	return all, err
}

// Providers returns the jobs of the same pipeline whose artifacts and outputs a job with keywords gets: those that its dependencies or needs name, or all
// of the earlier stages.
func (s *Store) Providers(ctx context.Context, j Job) (all []Job, err error) {
	err = s.db.Read(ctx, fmt.Sprintf("listing the jobs before job %d with artifacts", j.ID), func(ctx context.Context, db bun.IDB) error {
		q := light(JobQuery{Project: j.In.UID, Pipeline: j.PipelineID}.selected(db))
		if !j.HasNeeds && j.Spec.Dependencies == nil {
			q.Where("job.stage_index < ?", j.StageIndex)
		}
		return q.Model(&all).
			Where("EXISTS (SELECT 1 FROM pipeline_artifacts AS a WHERE a.job_id = job.id) OR EXISTS (SELECT 1 FROM pipeline_outputs AS o WHERE o.job_id = job.id)").
			Order("job.position").Scan(ctx)
	})
	return slices.DeleteFunc(all, func(other Job) bool { return !j.gets(other) }), err
}

// gets reports whether a job gets the artifacts of another one of the same pipeline.
func (j *Job) gets(other Job) bool {
	switch {
	case other.ID == j.ID:
		return false
	case j.Spec.Dependencies != nil:
		return slices.Contains(j.Spec.Dependencies, other.Name)
	case j.HasNeeds:
		return slices.Contains(j.Needs, Need{Job: other.Name, Artifacts: true})
	default:
		return other.StageIndex < j.StageIndex
	}
}

// JobsWithIDs returns jobs by their ids, in no order and without their keywords. It leaves out those that do not exist.
func (s *Store) JobsWithIDs(ctx context.Context, ids ...int64) (some []Job, err error) {
	if len(ids) == 0 {
		return nil, nil
	}
	err = s.db.Read(ctx, "reading jobs", func(ctx context.Context, db bun.IDB) error {
		return light(db.NewSelect().Model(&some)).Where("id IN (?)", bun.List(ids)).Scan(ctx)
	})
	return some, err
}

// GetJob returns the job of a project with an id, without its keywords. If the job does not exist, the error is ErrNotFound.
func (s *Store) GetJob(ctx context.Context, project types.UID, id int64) (j Job, err error) {
	return s.getJob(ctx, project, id, light)
}

// WithSpec is GetJob with the keywords.
func (s *Store) WithSpec(ctx context.Context, project types.UID, id int64) (j Job, err error) {
	return s.getJob(ctx, project, id, func(q *bun.SelectQuery) *bun.SelectQuery { return q })
}

func (s *Store) getJob(ctx context.Context, project types.UID, id int64, columns func(*bun.SelectQuery) *bun.SelectQuery) (j Job, err error) {
	var found []Job
	err = s.db.Read(ctx, fmt.Sprintf("reading job %d", id), func(ctx context.Context, db bun.IDB) error {
		return columns(db.NewSelect().Model(&found)).Where("subject_uid = ?", project).Where("id = ?", id).Scan(ctx)
	})
	if err == nil && len(found) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return Job{}, err
	}
	return found[0], nil
}

// OfJobs returns the pipelines of jobs by their ids.
func (s *Store) OfJobs(ctx context.Context, project types.UID, jobs ...Job) (map[int64]Pipeline, error) {
	ids := make([]int64, len(jobs))
	for i, j := range jobs {
		ids[i] = j.PipelineID
	}
	found, err := s.List(ctx, Query{Project: project, Order: ByID, Conditions: []Condition{database.Among("pipeline.id", ids)}}, 0, len(ids))
	byID := make(map[int64]Pipeline, len(found))
	for _, p := range found {
		byID[p.ID] = p
	}
	return byID, err
}
