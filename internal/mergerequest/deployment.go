package mergerequest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/uptrace/bun"
	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/internal/database"
)

// Production is the tier of production environments. FirstDeployed considers only these.
const Production = "production"

// Deployment is a deployment to an environment.
type Deployment struct {
	Environment, Tier string
	// JobID is the id of the job that has deployed.
	JobID int64
	At    time.Time
}

// Deployed records that a deployment has brought the merged merge requests of a project whose merge commits are among some commits. It can be repeated.
func (s *Store) Deployed(ctx context.Context, project types.UID, d Deployment, commits []string) error {
	const statement = `INSERT INTO merge_request_deployments (merge_request_id, job_id, environment, tier, deployed_at)
SELECT id, ?, ?, ?, ? FROM merge_requests WHERE subject_uid = ? AND state = ? AND merge_commit_sha IN (?) ON CONFLICT DO NOTHING`
	return s.db.Atomically(ctx, fmt.Sprintf("recording deployment %d", d.JobID), func(ctx context.Context, db bun.IDB) error {
		for some := range slices.Chunk(commits, commitBatch) {
			_, err := db.NewRaw(statement, d.JobID, d.Environment, d.Tier, database.Time(d.At), project, Merged, bun.List(some)).Exec(ctx)
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// DeployedTo is true of merge requests that were deployed to an environment, or to any if it is empty, at one of these times. A zero time does not limit.
func DeployedTo(environment string, since, until time.Time) Condition {
	query, args := "EXISTS (SELECT 1 FROM merge_request_deployments AS d WHERE d.merge_request_id = merge_request.id", []any{}
	add := func(more string, arg any) { query, args = query+more, append(args, arg) }
	if environment != "" {
		add(" AND d.environment = ?", environment)
	}
	if !since.IsZero() {
		add(" AND d.deployed_at >= ?", database.Time(since))
	}
	if !until.IsZero() {
		add(" AND d.deployed_at <= ?", database.Time(until))
	}
	return database.Where(query+")", args...)
}

// FirstDeployed returns the time of the first deployment of a merge request to production; zero without one.
func (s *Store) FirstDeployed(ctx context.Context, id int64) (time.Time, error) {
	var first []time.Time
	err := s.db.Read(ctx, fmt.Sprintf("reading the deployments of merge request %d", id), func(ctx context.Context, db bun.IDB) error {
		return db.NewSelect().TableExpr("merge_request_deployments").Column("deployed_at").Where("merge_request_id = ?", id).Where("tier = ?", Production).
			Order("deployed_at").Limit(1).Scan(ctx, &first)
	})
	if err != nil || len(first) == 0 {
		return time.Time{}, err
	}
	return first[0], nil
}
