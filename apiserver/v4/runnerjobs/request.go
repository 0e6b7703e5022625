package runnerjobs

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/launch"
	"github.com/forgeplane/forgeplane/apiserver/ref"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/pipeline"
	"github.com/forgeplane/forgeplane/internal/runner"
)

type jobRequest struct {
	Token      string     `param:"token" required:"" example:"glrt-0f7c2b" doc:"Token of the runner."`
	LastUpdate string     `param:"last_update" doc:"The last X-GitLab-Last-Update. If it is still current, the answer can take up to 50 seconds."`
	Info       runnerInfo `param:"info" doc:"Description of the program."`
	SystemID   string     `param:"system_id" doc:"Id of the machine of the runner."`
}

type runnerInfo struct {
	Name         string `param:"name" doc:"Name of the program."`
	Version      string `param:"version" doc:"Version of the program."`
	Revision     string `param:"revision" doc:"Commit of the program."`
	Platform     string `param:"platform" doc:"Operating system."`
	Architecture string `param:"architecture" doc:"Architecture of the processor."`
	Executor     string `param:"executor" doc:"How the runner executes jobs."`
}

func (f *Family) request(ctx context.Context, s auth.Runner, r *jobRequest) (endpoint.Reply[*Job], error) {
	i := r.Info
	err := f.Activity.Runners.Contact(ctx, s.Runner, runner.Program{
		Name: short(i.Name), Version: short(i.Version), Revision: short(i.Revision), Platform: short(i.Platform), Architecture: short(i.Architecture),
		Executor: short(i.Executor), Address: s.Runner.Address,
	})
	if err != nil {
		return endpoint.Reply[*Job]{}, err
	}
	version, err := f.queue.current(ctx)
	if err != nil {
		return endpoint.Reply[*Job]{}, err
	}
	job, version, err := f.next(ctx, s.Runner, r.LastUpdate, version)
	if err != nil {
		return endpoint.Reply[*Job]{}, err
	}
	if job == nil {
		audit.From(ctx).Skip()
		return endpoint.Reply[*Job]{Status: http.StatusNoContent, Header: http.Header{lastUpdateHeader: {version}}}, nil
	}
	// There can be more jobs for the runner. With the version, it would wait for a change of the queue.
	return endpoint.Reply[*Job]{Status: http.StatusCreated, Body: job}, nil
}

// short returns the first 255 bytes of a text, without a part of a character at the end.
func short(text string) string { return strings.ToValidUTF8(text[:min(len(text), 255)], "") }

// next returns the next job for a runner, or nil without one, and the version of the queue. It waits if the runner knows the version. At the end of the wait
// it looks once more, because other changes can concern a job as well, such as those of its project.
func (f *Family) next(ctx context.Context, r runner.Runner, known, version string) (*Job, string, error) {
	if known != version {
		return f.look(ctx, r, version)
	}
	job, found, err := endpoint.Poll(ctx, f.queue.changed, func(ctx context.Context) (job *Job, found bool, err error) {
		now, err := f.queue.current(ctx)
		if err != nil || now == version {
			return nil, false, err
		}
		// The runner can have changed since it asked.
		r, err = f.Activity.Runners.Get(ctx, r.ID)
		if errors.Is(err, runner.ErrNotFound) {
			err = endpoint.Forbidden("").Describe("The runner was deleted.")
		}
		if err != nil {
			return nil, false, err
		}
		job, version, err = f.look(ctx, r, now)
		return job, job != nil, err
	})
	if found || err != nil {
		return job, version, err
	}
	return f.look(ctx, r, version)
}

// batch is the number of pending jobs that are read at once.
const batch = 100

// unknown is the version of a queue with a job that could not be given to a runner because of a failure. The runner then asks again without a wait.
const unknown = "unknown"

// look gives a runner the oldest pending job that it can execute, and returns nil without one. Runners of groups and of the installation prefer the
// projects with the fewest running jobs. It returns the version of the queue, or unknown.
func (f *Family) look(ctx context.Context, r runner.Runner, version string) (*Job, string, error) {
	if r.Paused {
		return nil, version, nil
	}
	places, err := f.Activity.Runners.Places(ctx, r.ID)
	if err != nil {
		return nil, version, err
	}
	of := sets.Set[types.UID]{}
	for _, p := range places {
		of.Insert(p.UID)
	}
	var projects []types.UID
	if r.Type == runner.OfProject {
		projects = append([]types.UID{}, of.UnsortedList()...)
	}
	for after := int64(0); ; {
		pending, err := f.Activity.Pipelines.Pending(ctx, projects, after, batch)
		if err != nil || len(pending) == 0 {
			return nil, version, err
		}
		after = pending[len(pending)-1].ID
		if err := f.sort(ctx, r, pending); err != nil {
			return nil, version, err
		}
		pending = slices.DeleteFunc(pending, func(j pipeline.Job) bool { return !suits(r, j) })
		job, failed, err := f.first(ctx, r, of, pending)
		if failed {
			version = unknown
		}
		if job != nil || err != nil {
			return job, version, err
		}
	}
}

// first gives a runner the first of some pending jobs that it can execute, and returns nil without one. The jobs that are about to be given to other
// runners come last. failed says that a job could not be given because of a failure.
func (f *Family) first(ctx context.Context, r runner.Runner, places sets.Set[types.UID], pending []pipeline.Job) (job *Job, failed bool, err error) {
	for _, wait := range []bool{false, true} {
		var busy []pipeline.Job
		for _, j := range pending {
			job, tried, err := f.try(ctx, r, places, j, wait)
			switch {
			case ctx.Err() != nil:
				return nil, failed, ctx.Err()
			case err != nil: // the jobs of other projects can run
				log.FromContext(ctx).Error(err, "Failed to give a job to a runner", "job", j.ID, "runner", r.ID)
				failed = true
			case job != nil:
				return job, failed, nil
			case !tried:
				busy = append(busy, j)
			}
		}
		pending = busy
	}
	return nil, failed, nil
}

// try gives a pending job to a runner, unless another attempt to give it to one is under way and wait is not set. It returns nil if the runner cannot
// have the job.
func (f *Family) try(ctx context.Context, r runner.Runner, places sets.Set[types.UID], j pipeline.Job, wait bool) (job *Job, tried bool, err error) {
	end, err := f.attempts.begin(ctx, j.ID, wait)
	if end == nil {
		return nil, false, err
	}
	defer end()
	job, err = f.take(ctx, r, places, j)
	return job, true, err
}

// sort moves the jobs of projects with fewer running jobs to the front, for a runner that several projects share.
func (f *Family) sort(ctx context.Context, r runner.Runner, pending []pipeline.Job) error {
	if r.Type == runner.OfProject {
		return nil
	}
	projects := sets.Set[types.UID]{}
	for _, j := range pending {
		projects.Insert(j.In.UID)
	}
	if len(projects) == 1 {
		return nil
	}
	running, err := f.Activity.Pipelines.Running(ctx, projects.UnsortedList())
	slices.SortStableFunc(pending, func(a, b pipeline.Job) int { return running[a.In.UID] - running[b.In.UID] })
	return err
}

// suits reports whether a runner has the tags of a job.
func suits(r runner.Runner, j pipeline.Job) bool {
	if len(j.Tags) == 0 {
		return r.RunUntagged
	}
	return !slices.ContainsFunc(j.Tags, func(tag string) bool { return !slices.Contains(r.Tags, tag) })
}

// take gives a pending job to a runner. It returns nil if the runner cannot have the job, or another one was faster.
func (f *Family) take(ctx context.Context, r runner.Runner, places sets.Set[types.UID], j pipeline.Job) (*Job, error) {
	scope, err := f.project(ctx, r, places, j)
	if err != nil || scope.Project == nil {
		return nil, err
	}
	e := launch.Execution{In: scope, Token: pipeline.NewToken(), Runner: r}
	if e.Pipeline, err = f.Activity.Pipelines.Get(ctx, j.In.UID, j.PipelineID); err == nil {
		e.Job, err = f.Activity.Pipelines.WithSpec(ctx, j.In.UID, j.ID)
	}
	switch {
	case errors.Is(err, pipeline.ErrNotFound), err == nil && (e.Job.Status != pipeline.Pending || r.Protected && !e.Pipeline.Protected):
		return nil, nil
	case err != nil:
		return nil, err
	}
	if e.By, err = f.Guard.Known(ctx, j.User); gone(err) {
		return nil, f.fail(ctx, j, "user_blocked")
	} else if err != nil {
		return nil, err
	}
	shown, err := f.show(ctx, e)
	if ref.Missing(err) {
		return nil, f.fail(ctx, j, "unmet_prerequisites")
	} else if err != nil {
		return nil, err
	}
	taken, err := f.Activity.Pipelines.Take(ctx, j, r.ID, e.Token)
	if lost(err) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	did(ctx, "start", taken)
	shown.Info.Queued = taken.Started.Sub(taken.Queued).Seconds()
	return shown, nil
}

// project returns the project of a job, or an empty scope if a runner does not execute the jobs of the project.
func (f *Family) project(ctx context.Context, r runner.Runner, places sets.Set[types.UID], j pipeline.Job) (catalog.Scope, error) {
	scope, err := f.Guard.Project(ctx, fmt.Sprint(j.In.ID))
	switch {
	case errors.Is(err, catalog.ErrNotFound), err == nil && (scope.Project.UID != j.In.UID || scope.Project.Spec.Archived):
		return catalog.Scope{}, nil
	case err != nil:
		return catalog.Scope{}, err
	case r.Type == runner.OfGroup:
		for _, g := range scope.Groups {
			if places.Has(g.UID) {
				return scope, nil
			}
		}
		return catalog.Scope{}, nil
	}
	return scope, nil
}

// fail ends a pending job that cannot run.
func (f *Family) fail(ctx context.Context, j pipeline.Job, reason string) error {
	_, err := f.Activity.Pipelines.Fail(ctx, j, pipeline.Failure{Reason: reason})
	if lost(err) {
		return nil
	}
	return err
}

// lost reports whether a job has changed meanwhile.
func lost(err error) bool {
	return errors.Is(err, pipeline.ErrTransition) || errors.Is(err, pipeline.ErrNotRetryable) || errors.Is(err, pipeline.ErrNotFound)
}

// gone reports whether the user of a job is gone or blocked.
func gone(err error) bool {
	return errors.Is(err, catalog.ErrNotFound) || errors.As(err, new(*endpoint.Error))
}
