// Package launch creates pipelines: it reads the CI configuration of a commit, and plans the jobs.
package launch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/family"
	"github.com/forgeplane/forgeplane/apiserver/item"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/ci"
	"github.com/forgeplane/forgeplane/internal/ci/commit"
	"github.com/forgeplane/forgeplane/internal/ci/document"
	"github.com/forgeplane/forgeplane/internal/ci/include"
	"github.com/forgeplane/forgeplane/internal/fair"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/object"
	"github.com/forgeplane/forgeplane/internal/git/refs"
	"github.com/forgeplane/forgeplane/internal/job"
	"github.com/forgeplane/forgeplane/internal/mergecheck"
	"github.com/forgeplane/forgeplane/internal/mergerequest"
	"github.com/forgeplane/forgeplane/internal/pipeline"
	"github.com/forgeplane/forgeplane/internal/schedule"
)

// ErrNoConfiguration says that a commit has no CI configuration.
var ErrNoConfiguration = errors.New("Missing CI config file")

// ConfigurationError has the mistakes in a CI configuration.
type ConfigurationError struct{ Problems document.Problems }

func (e *ConfigurationError) Error() string { return e.Problems.Error() }

// The values of CI_PIPELINE_SOURCE.
const (
	SourceAPI      = "api"
	SourcePush     = "push"
	SourceTrigger  = "trigger"
	SourcePipeline = "pipeline"
	SourceSchedule = "schedule"
	SourceParent   = pipeline.SourceParent
	// SourceMergeRequest is the source of pipelines that are about a merge request.
	SourceMergeRequest = "merge_request_event"
)

// Request describes a pipeline to create.
type Request struct {
	// In is the project.
	In catalog.Scope
	// By is the user with whose rights the pipeline runs.
	By auth.Caller
	// Ref is the name of the branch, or of the tag if Tag is set, and SHA the id of its commit.
	Ref string
	Tag bool
	SHA string
	// Before is the former commit of a branch to which something was pushed; empty otherwise.
	Before string
	// Source is the value of CI_PIPELINE_SOURCE.
	Source string
	// Variables replace those of the configuration.
	Variables []pipeline.Variable
	// Configuration takes the place of the file in the repository; nil for that file.
	Configuration []byte
	// UpstreamJob is the id of the job of another pipeline that triggered this one; 0 without one.
	UpstreamJob int64
	// Schedule is the id of the schedule that created this one; 0 without one.
	Schedule int64
	// MergeRequest is the merge request that the pipeline is about, from Ref; nil without one.
	MergeRequest *mergerequest.MergeRequest
	// Origin identifies the event, as in pipeline.Pipeline.
	Origin string
}

// Launcher creates pipelines.
type Launcher struct{ family.Kit }

// New returns a launcher.
func New(k family.Kit) *Launcher { return &Launcher{k} }

// concurrentLaunches and concurrentRuns are the maximum numbers of pipelines that are created for one kind of reason, and moved on, at once in the
// background.
const concurrentLaunches, concurrentRuns = 2, 2

// Register registers the background work of pipelines with the server: it creates them for pushes, schedules and bridges, follows deployments, and
// moves pipelines on.
func (l *Launcher) Register() {
	l.OnWritten("pipelines of pushes", NewPushes(l).Written)
	l.Queue(job.QueueOptions{Name: pipeline.QueueName, Limits: fair.Halves(concurrentRuns), Run: l.Activity.Pipelines.Run})
	l.Queue(job.QueueOptions{Name: schedule.QueueName, Limits: fair.Halves(concurrentLaunches), Run: l.Scheduled})
	l.Queue(job.QueueOptions{Name: pipeline.BridgeQueue, Limits: fair.Halves(concurrentLaunches), Run: l.Bridge})
	l.Queue(job.QueueOptions{Name: pipeline.DeployQueue, Limits: fair.Halves(concurrentLaunches), Run: l.Deployed})
}

// Launch creates a pipeline, moves it on, and returns it as it was created. The error is ErrNoConfiguration, ci.ErrFiltered, a *ConfigurationError,
// pipeline.ErrExists, or a failure.
func (l *Launcher) Launch(ctx context.Context, r Request) (pipeline.Pipeline, error) {
	return l.from(ctx, r, l.launch)
}

// from reads the commit of a request, and creates its pipeline.
func (l *Launcher) from(
	ctx context.Context, r Request, create func(context.Context, Request, *git.Repository, *object.Commit) (pipeline.Pipeline, error),
) (pipeline.Pipeline, error) {
	repo, err := l.Repositories.Content(ctx, r.In.Project)
	if err != nil {
		return pipeline.Pipeline{}, err
	}
	head, err := repo.ReadCommit(ctx, r.SHA)
	if err != nil {
		return pipeline.Pipeline{}, err
	}
	return create(ctx, r, repo, head)
}

// launchOrFail launches a pipeline. If the configuration has mistakes, it creates a pipeline that has failed with them, and returns the
// *ConfigurationError.
func (l *Launcher) launchOrFail(ctx context.Context, r Request, repo *git.Repository, head *object.Commit) (pipeline.Pipeline, error) {
	row, err := l.launch(ctx, r, repo, head)
	var mistakes *ConfigurationError
	if !errors.As(err, &mistakes) {
		return row, err
	}
	row.Status, row.Errors = pipeline.Failed, mistakes.Error()
	if failed := l.Activity.Pipelines.Create(ctx, &row, nil, nil); failed != nil && !errors.Is(failed, pipeline.ErrExists) {
		return row, failed
	}
	return row, err
}

func (l *Launcher) launch(ctx context.Context, r Request, repo *git.Repository, head *object.Commit) (pipeline.Pipeline, error) {
	p := r.row()
	if r.UpstreamJob != 0 {
		var err error
		if p.Root, err = l.Activity.Pipelines.RootOf(ctx, r.UpstreamJob); err != nil {
			return p, err
		}
	}
	plan, err := l.plan(ctx, r, repo, head)
	if err != nil {
		return p, err
	}
	if p.Protected, err = l.protected(ctx, r); err != nil {
		return p, err
	}
	p.Name, p.OnNewCommit, p.OnJobFailure = plan.Name, plan.AutoCancel.OnNewCommit, plan.AutoCancel.OnJobFailure
	jobs, err := rows(plan)
	if err != nil {
		return p, err
	}
	if err := l.Activity.Pipelines.Create(ctx, &p, jobs, r.Variables); err != nil {
		return p, err
	}
	_, err = l.Activity.Pipelines.Advance(ctx, p.ID)
	return p, err
}

// row returns the pipeline of a request.
func (r *Request) row() pipeline.Pipeline {
	p := pipeline.Pipeline{
		In: item.Place(r.In), Ref: r.Ref, Tag: r.Tag, SHA: r.SHA, Before: r.Before, Source: r.Source, UpstreamJob: r.UpstreamJob, Schedule: r.Schedule, Origin: r.Origin, User: item.User(r.By.User),
	}
	if m := r.MergeRequest; m != nil {
		p.Ref, p.SourceBranch, p.MergeRequest = mergecheck.Head(m.IID), r.Ref, m.ID
	}
	return p
}

// before returns the commit with which rules compare; empty for none.
func (r *Request) before() string {
	if r.MergeRequest != nil {
		return r.MergeRequest.Base
	}
	return r.Before
}

// childName is the name of the configuration of a child pipeline in messages.
const childName = "child pipeline"

// plan reads the configuration and plans the jobs.
func (l *Launcher) plan(ctx context.Context, r Request, repo *git.Repository, head *object.Commit) (*ci.Plan, error) {
	def, err := refs.ReadHead(ctx, repo)
	if err != nil {
		return nil, err
	}
	files := commit.New(repo, r.In.Path(), r.SHA, r.before())
	p := &ci.Pipeline{Ref: r.Ref, Tag: r.Tag, Source: r.Source, Project: r.In.Path(), Files: files, Projects: Projects{l.Kit, r.By}}
	if p.Variables, p.Masked, err = l.variables(ctx, r); err != nil {
		return nil, err
	}
	more, err := l.more(ctx, r, head)
	if err != nil {
		return nil, err
	}
	p.Predefined = append(Predefined(p, r.In.RESTID(), def.Branch), more...)
	name, content := childName, r.Configuration
	if content == nil {
		if name, content, err = read(ctx, files); err != nil {
			return nil, err
		}
	}
	loaded, err := p.Load(ctx, name, content)
	if err != nil {
		return nil, err
	}
	if len(loaded.Problems) > 0 {
		return nil, &ConfigurationError{loaded.Problems}
	}
	plan, err := p.Plan(ctx, loaded.Config)
	var problems document.Problems
	if errors.As(err, &problems) {
		err = &ConfigurationError{problems}
	}
	return plan, err
}

// read returns the configuration of a commit.
func read(ctx context.Context, files include.Files) (name string, content []byte, err error) {
	for _, name := range ci.Names {
		content, err := files.Read(ctx, name, document.MaxBytes)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case errors.Is(err, include.ErrTooLarge):
			return "", nil, &ConfigurationError{document.Problems{{File: name, Text: err.Error()}}}
		case err != nil:
			return "", nil, fmt.Errorf("reading the CI configuration: %w", err)
		}
		return name, content, nil
	}
	return "", nil, ErrNoConfiguration
}
