package pipeline

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/uptrace/bun"

	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/fair"
	"github.com/forgeplane/forgeplane/internal/job"
	"github.com/forgeplane/forgeplane/internal/sweep"
)

// DeployQueue is the name of the queue of jobs that have deployed to an environment. The key of a task is the id of the job.
const DeployQueue = "deployments"

// Deployment is a deployment of a commit to an environment.
type Deployment struct {
	bun.BaseModel `bun:"table:deployments"`

	ID          int64            `bun:"id,pk,autoincrement"`
	In          database.Subject `bun:"embed:subject_"`
	Environment string           `bun:"environment"`
	Tier        string           `bun:"tier"`
	SHA         string           `bun:"sha"`
	JobID       int64            `bun:"job_id"`
	Deployed    time.Time        `bun:"deployed_at"`
}

// DeploymentSubjects are the deployments by their projects, for a sweep.Sweeper.
func (s *Store) DeploymentSubjects() sweep.Inherited { return sweep.Table(s.db, (*Deployment)(nil)) }

// tellDeployments adds a task for each job that has deployed to an environment.
func (s *Store) tellDeployments(ctx context.Context, r *run) error {
	var keys []string
	for j := range r.changed {
		if j.Environment != "" && j.Status == Success && !j.Retried {
			keys = append(keys, strconv.FormatInt(j.ID, 10))
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		if err := s.deployments.Add(ctx, job.Task{Key: key, Tenant: fair.User(r.User.ID)}); err != nil {
			return err
		}
	}
	return nil
}

// Deploy records the deployment of a job that has succeeded, and returns it with the commit of the deployment before it; empty without one. It can be
// repeated. The error is ErrNotFound if the job does not exist any more.
func (s *Store) Deploy(ctx context.Context, id int64) (d Deployment, before string, err error) {
	err = s.db.Atomically(ctx, fmt.Sprintf("recording the deployment of job %d", id), func(ctx context.Context, db bun.IDB) error {
		jobs, err := s.JobsWithIDs(ctx, id)
		if err != nil {
			return err
		}
		if len(jobs) == 0 {
			return ErrNotFound
		}
		j := jobs[0]
		var p Pipeline
		if err := db.NewSelect().Model(&p).Where("id = ?", j.PipelineID).Scan(ctx); err != nil {
			return err
		}
		d = Deployment{In: j.In, Environment: j.Environment, Tier: j.Tier, SHA: p.SHA, JobID: j.ID, Deployed: j.Finished}
		_, err = db.NewInsert().Model(&d).On("CONFLICT (job_id) DO NOTHING").Returning("NULL").Exec(ctx)
		if err != nil {
			return err
		}
		if err := db.NewSelect().Model(&d).Where("job_id = ?", j.ID).Scan(ctx); err != nil {
			return err
		}
		err = db.NewSelect().Model((*Deployment)(nil)).Column("sha").Where("subject_uid = ?", d.In.UID).Where("environment = ?", d.Environment).Where("id < ?", d.ID).
			Order("id DESC").Limit(1).Scan(ctx, &before)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		return err
	})
	return d, before, err
}
