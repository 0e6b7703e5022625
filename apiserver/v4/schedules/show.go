package schedules

import (
	"context"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/entity"
	"github.com/forgeplane/forgeplane/apiserver/item"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/pipeline"
	"github.com/forgeplane/forgeplane/internal/schedule"
)

// Schedule is a schedule in lists.
type Schedule struct {
	ID           int64               `json:"id"`
	Description  string              `json:"description"`
	Ref          string              `json:"ref"`
	Cron         string              `json:"cron" example:"0 3 * * *"`
	CronTimezone string              `json:"cron_timezone" example:"Europe/Berlin"`
	NextRunAt    endpoint.Time       `json:"next_run_at"`
	Active       bool                `json:"active"`
	CreatedAt    endpoint.Time       `json:"created_at"`
	UpdatedAt    endpoint.Time       `json:"updated_at"`
	Owner        *entity.UserSummary `json:"owner" doc:"The user with whose rights the pipelines run; null if the user is gone."`
}

// Detailed is a schedule alone.
type Detailed struct {
	Schedule
	LastPipeline *LastPipeline `json:"last_pipeline" doc:"The newest pipeline of the schedule."`
	Variables    []Variable    `json:"variables" doc:"The variables that pipelines get. Empty for callers who are neither the owner nor a Maintainer."`
}

// LastPipeline is the newest pipeline of a schedule.
type LastPipeline struct {
	ID     int64           `json:"id"`
	SHA    string          `json:"sha"`
	Ref    string          `json:"ref"`
	Status pipeline.Status `json:"status"`
}

// Variable is a variable of a schedule.
type Variable struct {
	Type  string `json:"variable_type" example:"env_var"`
	Key   string `json:"key"`
	Value string `json:"value"`
}

type listRequest struct {
	endpoint.Paging
	Scope string `param:"scope" values:"active,inactive" doc:"Only schedules that are active, or only others."`
}

func (f *Family) list(ctx context.Context, s auth.Project, r *listRequest) (endpoint.List[Schedule], error) {
	q := schedule.Query{Project: s.Scope.Project.UID}
	if r.Scope != "" {
		active := r.Scope == "active"
		q.Active = &active
	}
	page, err := endpoint.Counted(ctx, r.Paging, endpoint.Source[schedule.Schedule]{
		Rows: func(ctx context.Context, skip, most int) ([]schedule.Schedule, error) {
			return f.Activity.Schedules.List(ctx, q, skip, most)
		},
		Count: func(ctx context.Context, _ int) (int, error) { return f.Activity.Schedules.Count(ctx, q) },
	}, func(of schedule.Schedule) schedule.Schedule { return of })
	if err != nil {
		return endpoint.List[Schedule]{}, err
	}
	return endpoint.Each(page, func(some []schedule.Schedule) ([]Schedule, error) { return f.show(ctx, some) })
}

func (f *Family) show(ctx context.Context, some []schedule.Schedule) ([]Schedule, error) {
	people := make([]database.User, len(some))
	for i, of := range some {
		people[i] = of.Owner
	}
	users, err := item.Users(ctx, f.Catalog, f.WebURL, people...)
	shown := make([]Schedule, len(some))
	for i, of := range some {
		shown[i] = Schedule{
			ID: of.ID, Description: of.Description, Ref: of.Ref, Cron: of.Cron, CronTimezone: of.Zone, NextRunAt: endpoint.Time(of.Next), Active: of.Active,
			CreatedAt: endpoint.Time(of.Created), UpdatedAt: endpoint.Time(of.Updated), Owner: users[of.Owner.UID],
		}
	}
	return shown, err
}

func (f *Family) get(ctx context.Context, s auth.ProjectRecord[found], _ *endpoint.None) (Detailed, error) {
	return f.detail(ctx, s.Subject, s.Record.Schedule)
}

func (f *Family) detail(ctx context.Context, s auth.Subject, of schedule.Schedule) (Detailed, error) {
	shown, err := f.show(ctx, []schedule.Schedule{of})
	if err != nil {
		return Detailed{}, err
	}
	d := Detailed{Schedule: shown[0], Variables: []Variable{}}
	newest, err := f.Activity.Pipelines.List(ctx, pipeline.Query{
		Project: of.In.UID, Order: pipeline.ByID, Conditions: []pipeline.Condition{pipeline.OfSchedule(of.ID)},
	}, 0, 1)
	if err != nil {
		return Detailed{}, err
	}
	for _, p := range newest {
		d.LastPipeline = &LastPipeline{p.ID, p.SHA, p.Ref, p.Status}
	}
	if !administers(s, found{of}) {
		return d, nil
	}
	variables, err := f.Activity.Schedules.Variables(ctx, of.ID)
	for _, v := range variables {
		d.Variables = append(d.Variables, showVariable(v))
	}
	return d, err
}

func showVariable(v schedule.Variable) Variable { return Variable{v.Type, v.Key, v.Value} }
