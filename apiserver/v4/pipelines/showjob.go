package pipelines

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/commit"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/entity"
	"github.com/forgeplane/forgeplane/apiserver/item"
	"github.com/forgeplane/forgeplane/apiserver/ref"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/pipeline"
	"github.com/forgeplane/forgeplane/internal/runner"
)

// common has the fields of all jobs.
type common struct {
	ID             int64               `json:"id"`
	Status         pipeline.Status     `json:"status"`
	Stage          string              `json:"stage"`
	Name           string              `json:"name"`
	Ref            string              `json:"ref"`
	Tag            bool                `json:"tag"`
	Coverage       *float64            `json:"coverage" doc:"Always null."`
	AllowFailure   bool                `json:"allow_failure"`
	CreatedAt      endpoint.Time       `json:"created_at"`
	StartedAt      endpoint.Time       `json:"started_at"`
	FinishedAt     endpoint.Time       `json:"finished_at"`
	ErasedAt       endpoint.Time       `json:"erased_at"`
	Duration       *float64            `json:"duration" doc:"Seconds that the job took, or has been running."`
	QueuedDuration *float64            `json:"queued_duration" doc:"Seconds that the job waited for a runner, or has been waiting."`
	User           *entity.UserSummary `json:"user" doc:"Null if the user is gone."`
	Commit         *commit.Commit      `json:"commit" doc:"Null if the commit is gone."`
	Pipeline       Pipeline            `json:"pipeline"`
	FailureReason  *string             `json:"failure_reason" example:"script_failure" doc:"Null unless the job has failed."`
	WebURL         string              `json:"web_url"`
}

// Job is "Job (result of keeping artifacts)" of the second interface document.
type Job struct {
	common
	Project           JobProject    `json:"project"`
	DownloadURL       *string       `json:"download_url" doc:"Address of the archive in the REST API; null without one."`
	Artifacts         []Artifact    `json:"artifacts"`
	ArtifactsFile     *ArtifactFile `json:"artifacts_file,omitempty" doc:"The archive."`
	ArtifactsExpireAt endpoint.Time `json:"artifacts_expire_at" doc:"Null if the artifacts do not expire, and without artifacts."`
	Runner            *JobRunner    `json:"runner" doc:"Null until a runner has the job."`
	Archived          bool          `json:"archived" doc:"Always false."`
	TagList           []string      `json:"tag_list" doc:"The tags that a runner must have."`
}

// Artifact is a file that a job keeps.
type Artifact struct {
	FileType   string `json:"file_type" example:"archive"`
	Size       int64  `json:"size" doc:"In bytes."`
	Filename   string `json:"filename" example:"artifacts.zip"`
	FileFormat string `json:"file_format" example:"zip"`
}

// ArtifactFile is the archive of a job.
type ArtifactFile struct {
	Filename string `json:"filename" example:"artifacts.zip"`
	Size     int64  `json:"size" doc:"In bytes."`
}

// showArtifacts adds the artifacts of a job. archive is the address of its archive, if it has one.
func (j *Job) showArtifacts(all []pipeline.Artifact, archive string) {
	j.Artifacts = make([]Artifact, len(all))
	for i, a := range all {
		j.Artifacts[i] = Artifact{a.Type, a.Size, a.Name, a.Format}
		if a.Type == pipeline.Archive {
			j.ArtifactsFile, j.DownloadURL = &ArtifactFile{a.Name, a.Size}, &archive
		}
		j.ArtifactsExpireAt = endpoint.Time(a.Expires)
	}
}

// JobRunner is the runner of a job.
type JobRunner struct {
	ID          int64       `json:"id"`
	Description string      `json:"description"`
	Active      bool        `json:"active"`
	Paused      bool        `json:"paused"`
	Shared      bool        `json:"is_shared"`
	Type        runner.Type `json:"runner_type"`
	Name        *string     `json:"name" doc:"Always null."`
}

// JobProject says what the job token of a job is for.
type JobProject struct {
	ScopeEnabled bool `json:"ci_job_token_scope_enabled" doc:"Always false."`
}

// Bridge is a job that triggers a pipeline.
type Bridge struct {
	common
	Downstream *Pipeline `json:"downstream_pipeline" doc:"The triggered pipeline, if there is one and the caller can see it."`
}

func (f *Family) showJob(ctx context.Context, s auth.Subject, j pipeline.Job) (Job, error) {
	shown, err := f.showJobs(ctx, s, []pipeline.Job{j})
	if err != nil {
		return Job{}, err
	}
	return shown[0], nil
}

func (f *Family) showJobs(ctx context.Context, s auth.Subject, some []pipeline.Job) ([]Job, error) {
	all, err := f.common(ctx, s, some)
	if err != nil {
		return nil, err
	}
	stored, err := f.artifacts(ctx, s, some...)
	if err != nil {
		return nil, err
	}
	runners, err := f.runners(ctx, some)
	shown := make([]Job, len(all))
	for i, c := range all {
		shown[i] = Job{common: c, TagList: append([]string{}, some[i].Tags...), Runner: runners[some[i].RunnerID]}
		shown[i].showArtifacts(stored[c.ID], fmt.Sprintf("%s/api/v4/projects/%d/jobs/%d/artifacts", f.WebURL, s.Scope.Project.RESTID(), c.ID))
	}
	return shown, err
}

// runners returns the runners of jobs by their ids, as far as they exist.
func (f *Family) runners(ctx context.Context, some []pipeline.Job) (map[int64]*JobRunner, error) {
	var ids []int64
	for _, j := range some {
		if j.RunnerID != 0 {
			ids = append(ids, j.RunnerID)
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	found, err := f.Activity.Runners.List(ctx, []runner.Condition{runner.WithIDs(ids...)}, 0, len(ids))
	shown := make(map[int64]*JobRunner, len(found))
	for _, r := range found {
		shown[r.ID] = &JobRunner{ID: r.ID, Description: r.Description, Active: !r.Paused, Paused: r.Paused, Shared: r.Type == runner.OfInstance, Type: r.Type}
	}
	return shown, err
}

func (f *Family) showBridges(ctx context.Context, s auth.Subject, some []pipeline.Job) ([]Bridge, error) {
	all, err := f.common(ctx, s, some)
	if err != nil {
		return nil, err
	}
	ids := make([]int64, len(some))
	for i, j := range some {
		ids[i] = j.ID
	}
	made, err := f.Activity.Pipelines.Downstream(ctx, ids...)
	if err != nil {
		return nil, err
	}
	shown := make([]Bridge, len(all))
	for i, c := range all {
		shown[i] = Bridge{common: c}
		if p, exists := made[some[i].ID]; exists {
			if shown[i].Downstream, err = f.showDownstream(ctx, s, p); err != nil {
				return nil, err
			}
		}
	}
	return shown, nil
}

// showDownstream shows a triggered pipeline, or returns nil if the caller cannot see it.
func (f *Family) showDownstream(ctx context.Context, s auth.Subject, p pipeline.Pipeline) (*Pipeline, error) {
	in, err := f.Guard.Project(ctx, fmt.Sprint(p.In.ID))
	var access auth.Access
	if err == nil {
		access, err = f.Guard.Visible(ctx, s.Caller, in)
	}
	if errors.Is(err, catalog.ErrNotFound) || err == nil && (in.Project.UID != p.In.UID || !s.Has(access, auth.ReadPipelines)) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	shown := f.show(in, p)
	return &shown, nil
}

// common shows the fields of all jobs.
func (f *Family) common(ctx context.Context, s auth.Subject, some []pipeline.Job) ([]common, error) {
	pipelines, err := f.Activity.Pipelines.OfJobs(ctx, s.Scope.Project.UID, some...)
	if err != nil {
		return nil, err
	}
	people := make([]database.User, len(some))
	for i, j := range some {
		people[i] = j.User
	}
	users, err := item.Users(ctx, f.Catalog, f.WebURL, people...)
	if err != nil {
		return nil, err
	}
	commits, err := f.commits(ctx, s, pipelines)
	if err != nil {
		return nil, err
	}
	shown := make([]common, len(some))
	for i, j := range some {
		of := pipelines[j.PipelineID]
		shown[i] = common{
			ID: j.ID, Status: j.Status, Stage: j.Stage, Name: j.Name, Ref: of.Ref, Tag: of.Tag, AllowFailure: j.AllowFailure, CreatedAt: endpoint.Time(j.Created),
			StartedAt: endpoint.Time(j.Started), FinishedAt: endpoint.Time(j.Finished), ErasedAt: endpoint.Time(j.Erased),
			Duration: f.between(j.Started, j.Finished), QueuedDuration: f.between(j.Queued, j.Started), User: users[j.User.UID], Commit: commits[of.SHA],
			Pipeline: f.show(s.Scope, of), FailureReason: given(j.FailureReason), WebURL: fmt.Sprintf("%s/%s/-/jobs/%d", f.WebURL, s.Scope.Path(), j.ID),
		}
		if j.Started.IsZero() && j.Status.Ended() {
			shown[i].QueuedDuration = nil // it never ran
		}
	}
	return shown, nil
}

// between returns the seconds between two times, or since the first one if the second is zero; nil without the first.
func (f *Family) between(from, to time.Time) *float64 {
	if from.IsZero() {
		return nil
	}
	if to.IsZero() {
		to = f.Clock.Now()
	}
	length := to.Sub(from).Seconds()
	return &length
}

// commits returns the commits of pipelines by their ids, as far as they exist.
func (f *Family) commits(ctx context.Context, s auth.Subject, of map[int64]pipeline.Pipeline) (map[string]*commit.Commit, error) {
	repo, err := f.Repositories.Content(ctx, s.Scope.Project)
	if ref.Missing(err) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	shown := map[string]*commit.Commit{}
	for _, p := range of {
		if shown[p.SHA] == nil {
			if shown[p.SHA], err = ref.Commit(ctx, repo, p.SHA, f.WebURL+"/"+s.Scope.Path()); err != nil {
				return nil, err
			}
		}
	}
	return shown, nil
}
