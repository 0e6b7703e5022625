package pipeline

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"github.com/uptrace/bun"

	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/fair"
	"github.com/forgeplane/forgeplane/internal/job"
)

// The failure reasons of jobs that trigger pipelines.
const (
	// NoDownstream says that there is no downstream pipeline, for example because of a mistake in its configuration.
	NoDownstream = "downstream_pipeline_creation_failed"
	// NoDownstreamProject says that the project does not exist, or that the user of the job cannot see it.
	NoDownstreamProject = "downstream_bridge_project_not_found"
	// ForbiddenDownstream says that the user of the job cannot run pipelines of the branch.
	ForbiddenDownstream = "insufficient_bridge_permissions"
	// DownstreamFailed says that the downstream pipeline, whose status the job has, has not succeeded.
	DownstreamFailed = "downstream_pipeline_failed"
)

// maxHierarchy is the maximum number of pipelines that come from one.
const maxHierarchy = 1000

// ErrHierarchy says that maxHierarchy pipelines come from one.
var ErrHierarchy = errors.New("too many downstream pipelines come from one pipeline, or projects trigger each other in a circle")

// tellBridges adds tasks for the jobs of a run that trigger a pipeline now, and for the job that has triggered it, once it has ended or runs again.
func (s *Store) tellBridges(ctx context.Context, r *run) error {
	var ids []int64
	for _, j := range r.jobs {
		if j.Bridge && j.Status == Pending {
			ids = append(ids, j.ID)
		}
	}
	if r.UpstreamJob != 0 && (r.Status.Ended() || r.was.Ended()) {
		ids = append(ids, r.UpstreamJob)
	}
	keys := make([]string, len(ids))
	for i, id := range ids {
		keys[i] = strconv.FormatInt(id, 10)
	}
	slices.Sort(keys)
	for _, key := range keys {
		if err := s.bridges.Add(ctx, job.Task{Key: key, Tenant: fair.User(r.User.ID)}); err != nil {
			return err
		}
	}
	return nil
}

// Bridge returns a job that triggers a pipeline, by its id and with its keywords. If the job does not exist, the error is ErrNotFound.
func (s *Store) Bridge(ctx context.Context, id int64) (Job, error) {
	var some []Job
	err := s.db.Read(ctx, "reading a job that triggers a pipeline", func(ctx context.Context, db bun.IDB) error {
		return db.NewSelect().Model(&some).Where("id = ?", id).Where("bridge").Scan(ctx)
	})
	if err == nil && len(some) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return Job{}, err
	}
	return some[0], nil
}

// Begin starts a pending job that triggers a pipeline. The error is ErrTransition if it is not pending any more.
func (s *Store) Begin(ctx context.Context, j Job) (Job, error) {
	return s.changeJob(ctx, j, func(r *run, j *Job) (*Job, error) {
		if !r.become(j, Running) {
			return nil, ErrTransition
		}
		return j, nil
	})
}

// Resume lets a job that has ended wait again for the pipeline that it has triggered. The error is ErrTransition if the job was canceled, or has not
// ended.
func (s *Store) Resume(ctx context.Context, j Job) (Job, error) {
	return s.changeJob(ctx, j, func(r *run, j *Job) (*Job, error) {
		if !r.resume(j) {
			return nil, ErrTransition
		}
		return j, nil
	})
}

// Downstream returns the pipelines that jobs have triggered, by the ids of the jobs. Of several pipelines of a job, it is the newest.
func (s *Store) Downstream(ctx context.Context, jobs ...int64) (map[int64]Pipeline, error) {
	var some []Pipeline
	err := s.db.Read(ctx, "finding downstream pipelines", func(ctx context.Context, db bun.IDB) error {
		return database.Select(db, db.NewSelect().Model(&some), []Condition{database.Among("pipeline.upstream_job_id", jobs)}).Order("pipeline.id").Scan(ctx)
	})
	byJob := make(map[int64]Pipeline, len(some))
	for _, p := range some {
		byJob[p.UpstreamJob] = p
	}
	return byJob, err
}

// children returns the ids of the child pipelines of a pipeline, which are in the same project.
func (s *Store) children(ctx context.Context, p Pipeline) (ids []int64, err error) {
	err = s.db.Read(ctx, "finding child pipelines", func(ctx context.Context, db bun.IDB) error {
		jobs := db.NewSelect().Model((*Job)(nil)).Column("id").Where("job.pipeline_id = ?", p.ID).Where("job.bridge")
		return db.NewSelect().Model((*Pipeline)(nil)).Column("id").Where("pipeline.subject_uid = ?", p.In.UID).Where("pipeline.upstream_job_id IN (?)", jobs).
			Scan(ctx, &ids)
	})
	return ids, err
}

// RootOf returns the id of the pipeline from which the pipeline of a job comes: its own, or that of the first upstream pipeline. The error is
// ErrHierarchy if too many come from it.
func (s *Store) RootOf(ctx context.Context, jobID int64) (root int64, err error) {
	n := 0
	err = s.db.Read(ctx, "finding the first upstream pipeline", func(ctx context.Context, db bun.IDB) error {
		err := db.NewSelect().TableExpr("pipelines AS p").ColumnExpr("coalesce(max(CASE WHEN p.root_id <> 0 THEN p.root_id ELSE p.id END), 0)").
			Join("JOIN pipeline_jobs AS j ON j.pipeline_id = p.id").Where("j.id = ?", jobID).Scan(ctx, &root)
		if err != nil {
			return err
		}
		return db.NewSelect().TableExpr("pipelines").ColumnExpr("count(*)").Where("root_id = ?", root).Scan(ctx, &n)
	})
	if err == nil && n >= maxHierarchy {
		err = ErrHierarchy
	}
	return root, err
}
