package pipeline

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/uptrace/bun"
	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/iid"
	"github.com/forgeplane/forgeplane/internal/job"
	"github.com/forgeplane/forgeplane/internal/sweep"
)

// resource is held by a job. Each resource group of a project has one, so that its jobs run one after the other.
type resource struct {
	bun.BaseModel `bun:"table:pipeline_resources"`

	ID    int64            `bun:"id,pk,autoincrement"`
	In    database.Subject `bun:"embed:subject_"`
	Group string           `bun:"name"`
	JobID int64            `bun:"job_id"`
}

// ResourceSubjects are the resources by their projects, for a sweep.Sweeper.
func (s *Store) ResourceSubjects() sweep.Inherited { return sweep.Table(s.db, (*resource)(nil)) }

// assignResources takes the resources from jobs that have ended, and starts jobs that have waited for a resource.
func (s *Store) assignResources(ctx context.Context, db bun.IDB, r *run) error {
	groups := map[string][]*Job{}
	for j := range r.changed {
		if j.ResourceGroup != "" && j.Status.Ended() {
			groups[j.ResourceGroup] = append(groups[j.ResourceGroup], j)
		}
	}
	for _, j := range r.jobs {
		if j.Status == WaitingForResource {
			groups[j.ResourceGroup] = append(groups[j.ResourceGroup], j)
		}
	}
	if len(groups) == 0 {
		return nil
	}
	// A pipeline must not begin to wait while another one looks for those that wait.
	if err := iid.Lock(ctx, s.db, r.In, Kind); err != nil {
		return err
	}
	for _, group := range slices.Sorted(maps.Keys(groups)) {
		if err := s.assign(ctx, db, r, group, groups[group]); err != nil {
			return err
		}
	}
	r.conclude()
	return nil
}

// assign is assignResources for the jobs of a group that have ended or wait.
func (s *Store) assign(ctx context.Context, db bun.IDB, r *run, group string, jobs []*Job) error {
	ended := false
	for _, j := range jobs {
		if j.Status.Ended() {
			ended = true
			if _, err := db.NewDelete().Model((*resource)(nil)).Where("job_id = ?", j.ID).Exec(ctx); err != nil {
				return err
			}
		}
	}
	for _, j := range jobs {
		if j.Status != WaitingForResource {
			continue
		}
		if j.ID == 0 { // a retry: its row does not exist yet
			r.offers = append(r.offers, r.task())
			continue
		}
		taken, err := s.take(ctx, db, group, j)
		if err != nil {
			return err
		}
		if taken {
			r.become(j, Pending)
			return nil
		}
	}
	if !ended {
		return nil
	}
	next, err := offer(ctx, db, r.In.UID, group, r.ID)
	r.offers = append(r.offers, next...)
	return err
}

// take gives a job the resource of its group, if that is free and no job of another pipeline has waited longer.
func (s *Store) take(ctx context.Context, db bun.IDB, group string, j *Job) (taken bool, err error) {
	older, err := waiting(db, j.In.UID, group, j.PipelineID).Where("id < ?", j.ID).Exists(ctx)
	if err != nil || older {
		return false, err
	}
	err = found(db.NewInsert().Model(&resource{In: j.In, Group: group, JobID: j.ID}).On("CONFLICT (subject_uid, name) DO NOTHING").Exec(ctx))
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// waiting selects the jobs that wait for the resource of a group, without those of a pipeline.
func waiting(db bun.IDB, project types.UID, group string, without int64) *bun.SelectQuery {
	return db.NewSelect().Model((*Job)(nil)).Where("subject_uid = ?", project).Where("resource_group = ?", group).
		Where("status = ?", WaitingForResource).Where("pipeline_id <> ?", without)
}

// offer returns the task of the pipeline whose job has waited longest for the resource of a group. It leaves out the pipeline with the id without.
func offer(ctx context.Context, db bun.IDB, project types.UID, group string, without int64) (next []job.Task, err error) {
	var some []Pipeline
	first := waiting(db, project, group, without).ColumnExpr("min(id)")
	err = db.NewSelect().Model(&some).Where("id = (SELECT pipeline_id FROM pipeline_jobs WHERE id = (?))", first).Scan(ctx)
	for _, p := range some {
		next = append(next, p.task())
	}
	return next, err
}

// accept adds the tasks of offers, each once and in the order of their keys, because others that add the same tasks wait.
func (s *Store) accept(ctx context.Context, offers []job.Task) error {
	byKey := map[string]job.Task{}
	for _, t := range offers {
		byKey[t.Key] = t
	}
	for _, key := range slices.Sorted(maps.Keys(byKey)) {
		if err := s.tasks.Add(ctx, byKey[key]); err != nil {
			return err
		}
	}
	return nil
}
