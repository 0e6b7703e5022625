package pipeline

import (
	"context"
	"fmt"

	"github.com/uptrace/bun"
)

// Output is a variable that a job hands to later jobs of its pipeline.
type Output struct {
	JobID int64  `bun:"job_id,pk"`
	Key   string `bun:"key,pk"`
	Value string `bun:"value"`

	bun.BaseModel `bun:"table:pipeline_outputs"`
}

// SetOutputs records the outputs of a job, unless it has some. Their keys must differ.
func (s *Store) SetOutputs(ctx context.Context, job int64, all []Output) error {
	for i := range all {
		all[i].JobID = job
	}
	return s.db.Atomically(ctx, fmt.Sprintf("recording the outputs of job %d", job), func(ctx context.Context, db bun.IDB) error {
		has, err := db.NewSelect().Model((*Output)(nil)).Where("job_id = ?", job).Exists(ctx)
		if err != nil || has || len(all) == 0 {
			return err
		}
		_, err = db.NewInsert().Model(&all).Exec(ctx)
		return err
	})
}

// Outputs returns the outputs of jobs, in the order of the jobs.
func (s *Store) Outputs(ctx context.Context, jobs ...Job) (all []Output, err error) {
	if len(jobs) == 0 {
		return nil, nil
	}
	var some []Output
	ids := make([]int64, len(jobs))
	for i, j := range jobs {
		ids[i] = j.ID
	}
	err = s.db.Read(ctx, "reading the outputs of jobs", func(ctx context.Context, db bun.IDB) error {
		return db.NewSelect().Model(&some).Where("job_id IN (?)", bun.List(ids)).Order("job_id", "key").Scan(ctx)
	})
	of := map[int64][]Output{}
	for _, o := range some {
		of[o.JobID] = append(of[o.JobID], o)
	}
	for _, id := range ids {
		all = append(all, of[id]...)
	}
	return all, err
}
