// Package runnerjobs is the part of the runner protocol about jobs: runners ask for jobs, send their logs and report their results.
package runnerjobs

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/family"
	"github.com/forgeplane/forgeplane/apiserver/launch"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/pipeline"
)

// Family serves runners.
type Family struct {
	family.Kit
	launcher *launch.Launcher
	queue    *queue
	attempts *attempts
}

// New returns the family.
func New(k family.Kit) *Family {
	q := &queue{versions: []versioned{k.Activity.Pipelines.Queue, k.Activity.Runners.Version}, clock: k.Clock}
	return &Family{k, launch.New(k), q, &attempts{of: map[int64]chan struct{}{}}}
}

const (
	// wait is the longest time for which a runner waits for a job in one request.
	wait = 50 * time.Second
	// maxPart is the maximum size of a part of a log in bytes.
	maxPart = 4 << 20

	oneJob = "/jobs/{job_id}"
)

// Table lists the endpoints.
func (f *Family) Table() endpoint.Table {
	return endpoint.Table{
		endpoint.Post("/jobs/request", f.request).Takes(endpoint.RunnerToken).Carries(endpoint.RunnerToken, "token").Anybody().Polls(wait).
			Answers(
				endpoint.Answer{Status: http.StatusCreated, Doc: "The runner must execute the job."},
				endpoint.Answer{Status: http.StatusNoContent, Doc: "There is no job for the runner.", Headers: lastUpdate, Empty: true},
			).Doc("Get a job to execute. Only for runners."),
		endpoint.Put(oneJob, f.update).Takes(endpoint.JobToken).Carries(endpoint.JobToken, "token").Anybody().
			Answers(
				endpoint.Answer{Status: http.StatusOK, Doc: "The job has the state.", Empty: true},
				endpoint.Answer{Status: http.StatusPreconditionFailed, Doc: "The log is not complete: the runner must send the rest and report the state again.", Empty: true},
			).Doc("Update the state of a job. Only for the runner that executes it."),
		endpoint.Patch(oneJob+"/trace", f.trace).Takes(endpoint.JobToken).Anybody().MaxBody(maxPart).Status(http.StatusAccepted).
			Answers(endpoint.Answer{Status: http.StatusAccepted, Doc: "The part of the log is stored.", Headers: map[string]string{
				"Range": "The part of the log that is stored, as in 0-99.", statusHeader: "The status of the job; the runner stops when it is canceled.",
				paceHeader: "The seconds after which the runner should send the next part.",
			}}).
			Doc("Update the log of a job: append to it. Only for the runner that executes it."),
		endpoint.Post(oneJob+"/artifacts", f.upload).Takes(endpoint.JobToken).Carries(endpoint.JobToken, "token").Anybody().Uploads(maxArtifact, maxArtifact).
			Answers(endpoint.Answer{Status: http.StatusCreated, Doc: "The artifact is stored.", Empty: true}).
			Doc("Create an artifact of a job. Only for the runner that executes it."),
		endpoint.Get(oneJob+"/artifacts", f.download).Takes(endpoint.JobToken).Carries(endpoint.JobToken, "token").Anybody().
			Doc("Get the archive of an earlier job of the same pipeline. Only for a runner that executes a job."),
	}
}

const (
	lastUpdateHeader = "X-Gitlab-Last-Update"
	statusHeader     = "Job-Status"
)

var lastUpdate = map[string]string{lastUpdateHeader: "A text that the runner can send as last_update, to wait for a change."}

// did records a change of a job for the audit.
func did(ctx context.Context, verb string, j pipeline.Job) {
	audit.From(ctx).Did(verb, audit.Job, fmt.Sprintf("projects/%d/jobs/%d", j.In.ID, j.ID), j.ID)
}

// ended returns 403 for a job that is not running any more. A runner stops executing it then.
func ended(s auth.Job) error {
	e := endpoint.Forbidden("Job is not running")
	e.Header = http.Header{statusHeader: {string(s.Job.Status)}}
	return e
}
