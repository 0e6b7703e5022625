package pipeline

import (
	"context"
	"fmt"
	"time"

	"github.com/uptrace/bun"
	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/internal/database"
)

// Condition is true of some pipelines.
type Condition = database.Condition

// In is true of pipelines with one of the statuses.
func In(some ...Status) Condition { return database.Among("pipeline.status", some) }

// Of is true of the pipelines of branches and tags with a name.
func Of(ref string) Condition { return database.Where("pipeline.ref = ?", ref) }

// At is true of the pipelines of a commit.
func At(sha string) Condition { return database.Where("pipeline.sha = ?", sha) }

// AtAny is true of the pipelines of one of the commits.
func AtAny(shas []string) Condition { return database.Among("pipeline.sha", shas) }

// From is true of pipelines with a source.
func From(source string) Condition { return database.Where("pipeline.source = ?", source) }

// By is true of the pipelines of one of the users.
func By(users ...types.UID) Condition { return database.Among("pipeline.user_uid", users) }

// Named is true of pipelines with a name.
func Named(name string) Condition { return database.Where("pipeline.name = ?", name) }

// OfMergeRequest is true of the pipelines that are about a merge request.
func OfMergeRequest(id int64) Condition { return database.Where("pipeline.merge_request_id = ?", id) }

// OfSchedule is true of the pipelines of a schedule.
func OfSchedule(id int64) Condition { return database.Where("pipeline.schedule_id = ?", id) }

// Independent is true of pipelines that are not child pipelines.
func Independent() Condition { return database.Where("pipeline.source <> ?", SourceParent) }

// Tagged is true of the pipelines of tags, or of those of branches.
func Tagged(is bool) Condition { return database.Where("pipeline.tag = ?", is) }

// Invalid is true of pipelines with mistakes in their configurations.
func Invalid() Condition { return database.Where("pipeline.yaml_errors <> ''") }

// Newest is true of the newest pipeline of each branch of a project, or of each tag. Child pipelines do not count.
func Newest(project types.UID, tags bool) Condition {
	// A step from each name to the next one in an index: GROUP BY would read all pipelines of the project.
	const among = `FROM pipelines WHERE subject_uid = ?0 AND tag = ?1 AND merge_request_id = 0 AND source <> 'parent_pipeline'`
	return database.Where(`pipeline.id IN (WITH RECURSIVE named(ref) AS (
		SELECT min(ref) `+among+`
		UNION ALL SELECT (SELECT min(ref) `+among+` AND ref > named.ref) FROM named WHERE named.ref IS NOT NULL
	) SELECT (SELECT max(id) `+among+` AND ref = named.ref) FROM named WHERE named.ref IS NOT NULL)`, project, tags)
}

// The times of a pipeline.
const (
	CreatedAt database.TimeColumn = "pipeline.created_at"
	UpdatedAt database.TimeColumn = "pipeline.updated_at"
)

// Order is the sort key of a list of pipelines.
type Order string

// The orders. Equal pipelines are sorted by id.
const (
	ByID     Order = "id"
	ByStatus Order = "status"
	ByRef    Order = "ref"
	ByUpdate Order = "updated_at"
	ByUser   Order = "user_id"
)

// Query selects the pipelines of a project.
type Query struct {
	Project types.UID
	// Conditions are true of all selected pipelines.
	Conditions []Condition
	Order      Order
	Ascending  bool
	// Version changes with the pipelines of the project. Count remembers the number of a version, unless it is empty.
	Version string
}

// List skips some pipelines and returns at most so many of those that follow.
func (s *Store) List(ctx context.Context, of Query, skip, most int) (some []Pipeline, err error) {
	err = s.db.Read(ctx, "listing pipelines", func(ctx context.Context, db bun.IDB) error {
		return of.sorted(of.selected(db)).Model(&some).Offset(int64(skip)).Limit(int64(most)).Scan(ctx)
	})
	return some, err
}

// Count returns the number of pipelines. It stops counting at most.
func (s *Store) Count(ctx context.Context, of Query, most int) (n int, err error) {
	err = s.db.Read(ctx, "counting pipelines", func(ctx context.Context, db bun.IDB) error {
		n, err = s.counts.Find(ctx, db, of.selected(db).Column("id").Limit(int64(most)), of.Version)
		return err
	})
	return n, err
}

// selected selects the pipelines of a query, in no order.
func (of Query) selected(db bun.IDB) *bun.SelectQuery {
	return database.Select(db, db.NewSelect().Model((*Pipeline)(nil)).Where("pipeline.subject_uid = ?", of.Project), of.Conditions)
}

// sorted sorts pipelines. Equal ones are sorted by id, in the same direction.
func (of Query) sorted(q *bun.SelectQuery) *bun.SelectQuery {
	direction := " DESC"
	if of.Ascending {
		direction = " ASC"
	}
	if of.Order != ByID {
		q = q.OrderExpr("pipeline." + string(of.Order) + direction)
	}
	return q.OrderExpr("pipeline.id" + direction)
}

// Get returns the pipeline of a project with an id. If the pipeline does not exist, the error is ErrNotFound.
func (s *Store) Get(ctx context.Context, project types.UID, id int64) (Pipeline, error) {
	found, err := s.List(ctx, Query{Project: project, Order: ByID, Conditions: []Condition{database.Where("pipeline.id = ?", id)}}, 0, 1)
	if err == nil && len(found) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return Pipeline{}, err
	}
	return found[0], nil
}

// WithIDs returns pipelines by their ids, in no order. It leaves out those that do not exist.
func (s *Store) WithIDs(ctx context.Context, ids ...int64) (some []Pipeline, err error) {
	if len(ids) == 0 {
		return nil, nil
	}
	err = s.db.Read(ctx, "reading pipelines", func(ctx context.Context, db bun.IDB) error {
		return db.NewSelect().Model(&some).Where("id IN (?)", bun.List(ids)).Scan(ctx)
	})
	return some, err
}

// Variables returns the variables that a request gave to a pipeline, in the order of their keys.
func (s *Store) Variables(ctx context.Context, id int64) (all []Variable, err error) {
	err = s.db.Read(ctx, fmt.Sprintf("reading the variables of pipeline %d", id), func(ctx context.Context, db bun.IDB) error {
		return db.NewSelect().Model(&all).Where("pipeline_id = ?", id).Where("job_id = 0").Order("key").Scan(ctx)
	})
	return all, err
}

// VariablesOf returns the variables that requests gave to a job: those of its pipeline, and then those of the job itself, both by their keys.
func (s *Store) VariablesOf(ctx context.Context, j Job) (all []Variable, err error) {
	err = s.db.Read(ctx, fmt.Sprintf("reading the variables of job %d", j.ID), func(ctx context.Context, db bun.IDB) error {
		return db.NewSelect().Model(&all).Where("pipeline_id = ?", j.PipelineID).Where("job_id IN (0, ?)", j.ID).Order("job_id", "key").Scan(ctx)
	})
	return all, err
}

// Summary has what the jobs of a pipeline say of it.
type Summary struct {
	// Duration is the time during which at least one job was running.
	Duration time.Duration
	// Warnings says that a job has failed that is allowed to fail.
	Warnings bool
}

// Summarize returns the summary of a pipeline.
func (s *Store) Summarize(ctx context.Context, id int64) (sum Summary, err error) {
	var jobs []*Job
	err = s.db.Read(ctx, fmt.Sprintf("summarizing the jobs of pipeline %d", id), func(ctx context.Context, db bun.IDB) error {
		return db.NewSelect().Model(&jobs).Column("status", "allow_failure", "started_at", "finished_at").
			Where("pipeline_id = ?", id).Where("NOT retried").Order("started_at").Scan(ctx)
	})
	var until time.Time
	for _, j := range jobs {
		sum.Warnings = sum.Warnings || j.outcome() == warning
		from := j.Started
		if from.IsZero() || !j.Finished.After(until) {
			continue
		}
		if from.Before(until) {
			from = until
		}
		sum.Duration, until = sum.Duration+j.Finished.Sub(from), j.Finished
	}
	return sum, err
}
