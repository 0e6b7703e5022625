package pipelines

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/entity"
	"github.com/forgeplane/forgeplane/apiserver/item"
	"github.com/forgeplane/forgeplane/apiserver/ref"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/git/refs"
	"github.com/forgeplane/forgeplane/internal/pipeline"
)

// statusTable lists the endpoints of the statuses of commits, which other systems report.
func (f *Family) statusTable() endpoint.Table {
	return endpoint.Table{
		endpoint.Get("/projects/{id}/repository/commits/{sha}/statuses", f.statuses).Needs(auth.ReadPipelines).Asks(auth.ReadCode).Anonymous(endpoint.Served).
			Doc("List the statuses of a commit: those of its jobs, and those that other systems have reported."),
		endpoint.Post("/projects/{id}/statuses/{sha}", f.report).Needs(auth.CreatePipelines).
			Doc("Create or update the status of a commit, as a job of its newest pipeline, or of a new one."),
	}
}

// CommitStatus is the status of a job, or one that another system has reported.
type CommitStatus struct {
	ID           int64               `json:"id"`
	SHA          string              `json:"sha"`
	Ref          string              `json:"ref"`
	Status       pipeline.Status     `json:"status"`
	Name         string              `json:"name"`
	TargetURL    *string             `json:"target_url" doc:"Address of a page about it."`
	Description  *string             `json:"description"`
	CreatedAt    endpoint.Time       `json:"created_at"`
	StartedAt    endpoint.Time       `json:"started_at"`
	FinishedAt   endpoint.Time       `json:"finished_at"`
	AllowFailure bool                `json:"allow_failure"`
	Coverage     *float64            `json:"coverage" doc:"Share of the code that the tests reach, in percent."`
	PipelineID   int64               `json:"pipeline_id"`
	Author       *entity.UserSummary `json:"author" doc:"Null if the user is gone."`
}

type statusesRequest struct {
	endpoint.Paging
	SHA      string `param:"sha" doc:"A branch, tag or commit."`
	Ref      string `param:"ref" doc:"Only statuses of pipelines of the branch or tag with this name."`
	Stage    string `param:"stage" doc:"Only statuses of this stage."`
	Name     string `param:"name" doc:"Only statuses with this name."`
	Pipeline int64  `param:"pipeline_id" doc:"Only statuses of the pipeline with this id."`
	All      bool   `param:"all" default:"false" doc:"Whether to list former statuses with the same names too."`
	OrderBy  string `param:"order_by" values:"id,pipeline_id" default:"id" doc:"Field that orders the list."`
	Sort     string `param:"sort" values:"asc,desc" default:"asc" doc:"Whether the order goes up or down."`
}

func (f *Family) statuses(ctx context.Context, s auth.Project, r *statusesRequest) (none endpoint.List[CommitStatus], err error) {
	if !s.Has(s.Access, auth.ReadCode) { // the answer reveals which branches and commits exist
		return none, endpoint.Forbidden("")
	}
	sha, err := f.commit(ctx, s, r.SHA)
	if err != nil {
		return none, err
	}
	q := pipeline.StatusQuery{
		Project: s.Scope.Project.UID, SHA: sha, Ref: r.Ref, Stage: r.Stage, Name: r.Name, Pipeline: r.Pipeline, Retried: r.All,
		Descending: r.Sort == "desc", ByPipeline: r.OrderBy == "pipeline_id",
	}
	page, err := endpoint.Counted(ctx, r.Paging, endpoint.Source[pipeline.Job]{
		Rows: func(ctx context.Context, skip, most int) ([]pipeline.Job, error) {
			return f.Activity.Pipelines.ListStatuses(ctx, q, skip, most)
		},
		Count: func(ctx context.Context, most int) (int, error) {
			return f.Activity.Pipelines.CountStatuses(ctx, q, most)
		},
	}, func(j pipeline.Job) pipeline.Job { return j })
	if err != nil {
		return none, err
	}
	return endpoint.Each(page, func(rows []pipeline.Job) ([]CommitStatus, error) { return f.showStatuses(ctx, s, sha, rows) })
}

// commit returns the id of a commit. The error is the answer if it does not exist.
func (f *Family) commit(ctx context.Context, s auth.Project, revision string) (string, error) {
	repo, err := f.Repositories.Content(ctx, s.Scope.Project)
	sha := ""
	if err == nil {
		sha, err = refs.Commit(ctx, repo, revision)
	}
	if ref.Missing(err) {
		err = endpoint.NotFound("Commit")
	}
	return sha, err
}

func (f *Family) showStatuses(ctx context.Context, s auth.Project, sha string, some []pipeline.Job) ([]CommitStatus, error) {
	users, of := make([]database.User, len(some)), make([]int64, len(some))
	for i, j := range some {
		users[i], of[i] = j.User, j.PipelineID
	}
	known, err := item.Users(ctx, f.Catalog, f.WebURL, users...)
	if err != nil {
		return nil, err
	}
	found, err := f.Activity.Pipelines.WithIDs(ctx, of...)
	if err != nil {
		return nil, err
	}
	names := map[int64]string{}
	for _, p := range found {
		names[p.ID] = p.Ref
	}
	shown := make([]CommitStatus, len(some))
	for i, j := range some {
		page := j.TargetURL
		if !j.External {
			page = fmt.Sprintf("%s/%s/-/jobs/%d", f.WebURL, s.Scope.Path(), j.ID)
		}
		shown[i] = CommitStatus{
			ID: j.ID, SHA: sha, Ref: names[j.PipelineID], Status: j.Status, Name: j.Name, TargetURL: given(page), Description: given(j.Description),
			CreatedAt: endpoint.Time(j.Created), StartedAt: endpoint.Time(j.Started), FinishedAt: endpoint.Time(j.Finished), AllowFailure: j.AllowFailure,
			Coverage: j.Coverage, PipelineID: j.PipelineID, Author: known[j.User.UID],
		}
	}
	return shown, nil
}

func given(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

type reportRequest struct {
	SHA         string                     `param:"sha" doc:"Id of the commit."`
	State       string                     `param:"state" required:"" blank:"refuse" values:"pending,running,success,failed,canceled,skipped" example:"success" doc:"Status."`
	Ref         string                     `param:"ref" doc:"Name of the branch or tag; one that contains the commit if it is not given."`
	Name        string                     `param:"name" doc:"Name that distinguishes the status from others of the commit; default if it is not given."`
	Context     string                     `param:"context" doc:"Same as name."`
	TargetURL   string                     `param:"target_url" doc:"Address of a page about it, with http or https."`
	Description string                     `param:"description" doc:"Short description."`
	Coverage    endpoint.Optional[float64] `param:"coverage" doc:"Share of the code that the tests reach, in percent."`
	Pipeline    int64                      `param:"pipeline_id" doc:"Id of the pipeline of the commit that has the status."`
}

// maxStatusText is the maximum length of a name, a description and an address in bytes.
const maxStatusText = 255

// check returns the answer if a report is malformed.
func (r *reportRequest) check() error {
	wrong := map[string][]string{}
	for name, text := range map[string]string{"name": cmp.Or(r.Name, r.Context), "description": r.Description, "target_url": r.TargetURL} {
		if len(text) > maxStatusText {
			wrong[name] = append(wrong[name], fmt.Sprintf("is too long (maximum is %d characters)", maxStatusText))
		}
	}
	if u, err := url.Parse(r.TargetURL); r.TargetURL != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "") {
		wrong["target_url"] = append(wrong["target_url"], "is blocked: Only allowed schemes are http, https")
	}
	if len(wrong) > 0 {
		return endpoint.Invalid(wrong)
	}
	return nil
}

func (f *Family) report(ctx context.Context, s auth.Project, r *reportRequest) (none CommitStatus, err error) {
	by, err := s.Caller.Person()
	if err != nil {
		return none, err
	}
	if err := r.check(); err != nil {
		return none, err
	}
	sha, err := f.commit(ctx, s, r.SHA)
	if err != nil {
		return none, err
	}
	of := pipeline.Report{
		Name: cmp.Or(r.Name, r.Context, "default"), Status: pipeline.Status(r.State), Description: r.Description, TargetURL: r.TargetURL, By: item.User(by),
	}
	if r.Coverage.Set && !r.Coverage.Null {
		of.Coverage = &r.Coverage.Value
	}
	p, err := f.reported(ctx, s, sha, r)
	if err == nil {
		err = f.admit(ctx, s.Subject, p)
	}
	if err != nil {
		return none, err
	}
	j, err := f.Activity.Pipelines.Report(ctx, &p, of)
	if err != nil {
		return none, answer(err)
	}
	audit.From(ctx).Did("report", audit.Job, fmt.Sprintf("%s/-/jobs/%d", s.Scope.Path(), j.ID), j.ID)
	shown, err := f.showStatuses(ctx, s, sha, []pipeline.Job{j})
	if err != nil {
		return none, err
	}
	return shown[0], nil
}

// reported returns the pipeline for a report: the given one, the newest one of the commit and the branch or tag, or one that does not exist yet.
func (f *Family) reported(ctx context.Context, s auth.Project, sha string, r *reportRequest) (p pipeline.Pipeline, err error) {
	if r.Pipeline != 0 {
		p, err = f.Activity.Pipelines.Get(ctx, s.Scope.Project.UID, r.Pipeline)
		if err == nil && (p.SHA != sha || r.Ref != "" && p.Ref != r.Ref) {
			err = pipeline.ErrNotFound
		}
		if errors.Is(err, pipeline.ErrNotFound) {
			err = endpoint.NotFound("Pipeline")
		}
		return p, err
	}
	is := []pipeline.Condition{pipeline.At(sha), pipeline.Independent()}
	if r.Ref != "" {
		is = append(is, pipeline.Of(r.Ref))
	}
	newest, err := f.Activity.Pipelines.List(ctx, pipeline.Query{Project: s.Scope.Project.UID, Order: pipeline.ByID, Conditions: is}, 0, 1)
	if err != nil || len(newest) > 0 {
		return first(newest), err
	}
	name, tag, err := f.containing(ctx, s, sha, r.Ref)
	if err != nil {
		return p, err
	}
	return pipeline.Pipeline{In: item.Place(s.Scope), Ref: name, Tag: tag, SHA: sha, Source: pipeline.SourceExternal, User: item.User(s.Caller.User)}, nil
}

func first(some []pipeline.Pipeline) pipeline.Pipeline {
	if len(some) == 0 {
		return pipeline.Pipeline{}
	}
	return some[0]
}

// containing returns a branch or tag that contains a commit. An empty name matches every branch and tag. If nothing matches, the error is a 404.
func (f *Family) containing(ctx context.Context, s auth.Project, sha, name string) (found string, tag bool, err error) {
	repo, err := f.Repositories.Content(ctx, s.Scope.Project)
	if err != nil {
		return "", false, err
	}
	all, err := refs.Containing(ctx, repo, sha, ref.Branches, ref.Tags)
	if err != nil {
		return "", false, err
	}
	for _, one := range all {
		short, isTag := strings.CutPrefix(one.Name, ref.Tags)
		if short = strings.TrimPrefix(short, ref.Branches); name == "" || short == name {
			return short, isTag, nil
		}
	}
	return "", false, endpoint.NotFound("References for commit")
}
