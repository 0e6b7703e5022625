// Package pipelines is the family of the pipelines of projects and of their jobs.
package pipelines

import (
	"context"
	"errors"
	"net/http"

	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/family"
	"github.com/forgeplane/forgeplane/apiserver/launch"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/pipeline"
)

// Family serves pipelines and jobs.
type Family struct {
	family.Kit
	launcher *launch.Launcher
}

// New returns the family.
func New(k family.Kit) *Family {
	launcher := launch.New(k)
	launcher.Register()
	return &Family{k, launcher}
}

const (
	ofProject = "/projects/{id}/pipelines"
	one       = ofProject + "/{pipeline_id}"
	jobs      = "/projects/{id}/jobs"
	oneJob    = jobs + "/{job_id}"
)

// Table lists the endpoints.
func (f *Family) Table() endpoint.Table {
	return append(append(f.artifactTable(), f.statusTable()...), endpoint.Table{
		endpoint.Get(ofProject, f.list).Needs(auth.ReadPipelines).Anonymous(endpoint.Served).
			Doc("List the pipelines of a project."),
		endpoint.Post("/projects/{id}/pipeline", f.create).Needs(auth.CreatePipelines).
			Doc("Create a pipeline for a branch or tag. The caller must be allowed to push to a protected branch or to merge into it."),
		triggering(endpoint.Post("/projects/{id}/trigger/pipeline", f.trigger)).
			Doc("Create a pipeline for a branch or tag with a trigger token, as its owner."),
		triggering(endpoint.Post("/projects/{id}/ref/{ref}/trigger/pipeline", f.triggerRef)).
			Doc("Create a pipeline for the branch or tag in the path with a trigger token, as its owner."),
		endpoint.Get("/projects/{id}/pipeline_schedules/{pipeline_schedule_id}/pipelines", f.listOfSchedule).Needs(auth.ReadPipelines).Found(f.findSchedule).
			Anonymous(endpoint.Served).Doc("List the pipelines of a schedule, the oldest first."),
		endpoint.Get(ofProject+"/latest", f.latest).Needs(auth.ReadPipelines).Anonymous(endpoint.Served).
			Doc("Get the latest pipeline for the newest commit of a branch or tag."),
		endpoint.Get(one, f.get).Needs(auth.ReadPipelines).Found(f.find).Anonymous(endpoint.Served).
			Doc("Get a pipeline."),
		endpoint.Get(one+"/variables", f.variables).Needs(auth.UpdatePipelines).Asks(auth.AdminPipelines).Found(f.find).
			Doc("List the variables that the request for a pipeline gave. Only for Maintainers and the user of the pipeline."),
		endpoint.Get(one+"/jobs", f.jobsOf).Needs(auth.ReadPipelines).Found(f.find).Anonymous(endpoint.Served).
			Doc("List the jobs of a pipeline."),
		endpoint.Get(one+"/bridges", f.bridgesOf).Needs(auth.ReadPipelines).Found(f.find).Anonymous(endpoint.Served).
			Doc("List the jobs of a pipeline that trigger other pipelines."),
		endpoint.Post(one+"/retry", f.retry).Needs(auth.UpdatePipelines).Found(f.find).
			Doc("Retry the jobs of a pipeline that failed or were canceled."),
		endpoint.Post(one+"/cancel", f.cancel).Needs(auth.UpdatePipelines).Found(f.find).Status(http.StatusOK).
			Doc("Cancel the jobs of a pipeline that have not ended."),
		endpoint.Delete(one, f.remove).Needs(auth.DestroyPipelines).Found(f.find).Conditional().
			Doc("Delete a pipeline with its jobs."),
		endpoint.Get(jobs, f.jobs).Needs(auth.ReadPipelines).Anonymous(endpoint.Served).
			Doc("List the jobs of a project."),
		endpoint.Get(oneJob, f.getJob).Needs(auth.ReadPipelines).Found(f.findJob).Anonymous(endpoint.Served).
			Doc("Get a job."),
		endpoint.Get(oneJob+"/trace", f.trace).Needs(auth.ReadPipelines).Found(f.findJob).Anonymous(endpoint.Served).
			Doc("Get the log of a job."),
		endpoint.Post(oneJob+"/cancel", f.cancelJob).Needs(auth.UpdatePipelines).Found(f.findJob).
			Doc("Cancel a job, if it has not ended."),
		endpoint.Post(oneJob+"/retry", f.retryJob).Needs(auth.UpdatePipelines).Found(f.findJob).
			Doc("Retry a job as a new job."),
		endpoint.Post(oneJob+"/play", f.playJob).Needs(auth.UpdatePipelines).Found(f.findJob).Status(http.StatusOK).
			Doc("Play a manual or delayed job."),
		endpoint.Post(oneJob+"/erase", f.eraseJob).Needs(auth.UpdatePipelines).Asks(auth.AdminPipelines).Found(f.findJob).
			Doc("Erase the log and the artifacts of a job. Only for Maintainers and the user of the job."),
	}...)
}

// maxTriggered is the maximum number of pipelines that are triggered from one address in a minute.
const maxTriggered = 300

// triggering makes an endpoint take trigger tokens and job tokens.
func triggering(e *endpoint.Endpoint) *endpoint.Endpoint {
	return e.LimitedBy(endpoint.ByAddress, maxTriggered, "trigger").Needs(auth.CreatePipelines).Takes(endpoint.TriggerToken, endpoint.JobToken).Carries(endpoint.TriggerToken, "token")
}

// found is a pipeline as the record of a request.
type found struct{ pipeline.Pipeline }

// Parameter implements auth.Kept.
func (found) Parameter() string { return "Id of the pipeline, not its internal id (iid)." }

// Owner implements auth.Kept: the user of the pipeline.
func (p found) Owner() types.UID { return p.User.UID }

// foundJob is a job as the record of a request, with its pipeline.
type foundJob struct {
	pipeline.Job
	of pipeline.Pipeline
}

// Parameter implements auth.Kept.
func (foundJob) Parameter() string { return "Id of the job." }

// Owner implements auth.Kept: the user of the job.
func (j foundJob) Owner() types.UID { return j.User.UID }

func (f *Family) find(ctx context.Context, s auth.Subject, id int64) (found, error) {
	p, err := f.Activity.Pipelines.Get(ctx, s.Scope.Project.UID, id)
	return found{p}, answer(err)
}

func (f *Family) findJob(ctx context.Context, s auth.Subject, id int64) (foundJob, error) {
	j, err := f.Activity.Pipelines.GetJob(ctx, s.Scope.Project.UID, id)
	if err == nil && j.External {
		err = pipeline.ErrNotFound
	}
	if err != nil {
		return foundJob{}, answer(err)
	}
	p, err := f.Activity.Pipelines.Get(ctx, s.Scope.Project.UID, j.PipelineID)
	return foundJob{j, p}, answer(err)
}

// answer converts an error of the store that callers can know.
func answer(err error) error {
	switch {
	case errors.Is(err, pipeline.ErrNotFound):
		return endpoint.NotFound("")
	case errors.Is(err, pipeline.ErrNotRetryable):
		return endpoint.Forbidden("Job is not retryable")
	case errors.Is(err, pipeline.ErrNotPlayable):
		return endpoint.BadRequest("Unplayable Job")
	case errors.Is(err, pipeline.ErrNotErasable):
		return endpoint.Forbidden("Job is not erasable!")
	default:
		return err
	}
}

// admit returns 403 if the caller cannot change the jobs of a pipeline: the project is archived, or its branch is protected from the caller.
func (f *Family) admit(ctx context.Context, s auth.Subject, p pipeline.Pipeline) error {
	if s.Scope.Project.Spec.Archived {
		return endpoint.Forbidden("")
	}
	may, err := f.launcher.MayRun(ctx, s, p.Branch(), p.Tag)
	if err == nil && !may {
		err = endpoint.Forbidden("")
	}
	return err
}

// administers reports whether the caller is a Maintainer or the user of a pipeline or job.
func administers(s auth.Subject, user database.User) bool {
	return s.Has(s.Access, auth.AdminPipelines) || s.Caller.User != nil && s.Caller.User.UID == user.UID
}
