package runnerjobs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"

	"k8s.io/utils/ptr"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/pipeline"
)

type updateRequest struct {
	Token         string                   `param:"token" doc:"The job token. It can also be in the header JOB-TOKEN."`
	State         string                   `param:"state" values:"running,success,failed" default:"running" doc:"State of the job."`
	FailureReason string                   `param:"failure_reason" example:"script_failure" doc:"Why the job has failed."`
	ExitCode      endpoint.Optional[int64] `param:"exit_code" doc:"Exit code of the script."`
	Output        output                   `param:"output" doc:"The log as a whole."`
}

type output struct {
	Checksum string `param:"checksum" doc:"CRC-32 of the log."`
	Bytesize int64  `param:"bytesize" doc:"Size of the log in bytes."`
}

type none = endpoint.Reply[endpoint.None]

func (f *Family) update(ctx context.Context, s auth.Job, r *updateRequest) (none, error) {
	if s.Job.Status != pipeline.Running {
		return none{}, ended(s)
	}
	if r.State == "running" {
		audit.From(ctx).Skip()
		return none{}, f.Activity.Pipelines.Contact(ctx, s.Job.ID)
	}
	complete, err := f.complete(ctx, s.Job, r.Output)
	if err != nil || !complete {
		return none{Status: http.StatusPreconditionFailed}, err
	}
	err = f.end(ctx, s.Job, r)
	if lost(err) {
		err = endpoint.Forbidden("Job is not running")
	}
	if err == nil {
		did(ctx, "end", s.Job)
	}
	return none{}, err
}

// complete reports whether the log of a job is the one that its runner has written. A log with other bytes is removed, because the runner sends what is
// missing: nothing can be replaced in a log.
func (f *Family) complete(ctx context.Context, j pipeline.Job, o output) (bool, error) {
	if o.Bytesize == 0 {
		return true, nil
	}
	size, sum, err := f.Activity.Pipelines.LogChecksum(ctx, j.ID)
	if err != nil || size < o.Bytesize {
		return false, err
	}
	if o.Checksum == "" || o.Checksum == fmt.Sprintf("crc32:%08x", sum) {
		return true, nil
	}
	return false, f.Activity.Pipelines.ForgetLog(ctx, j.ID)
}

// end records the result of a job.
func (f *Family) end(ctx context.Context, j pipeline.Job, r *updateRequest) error {
	if r.State == "success" {
		_, err := f.Activity.Pipelines.Succeed(ctx, j)
		return err
	}
	failure := pipeline.Failure{Reason: "unknown_failure"}
	if slices.Contains(failureReasons, r.FailureReason) {
		failure.Reason = r.FailureReason
	}
	if r.ExitCode.Set && !r.ExitCode.Null {
		failure.ExitCode = ptr.To(int(r.ExitCode.Value))
	}
	_, err := f.Activity.Pipelines.Fail(ctx, j, failure)
	return err
}

// paceHeader and pace say the number of seconds after which a runner sends the next part of a log.
const paceHeader, pace = "X-Gitlab-Trace-Update-Interval", "3"

type traceRequest struct {
	Part endpoint.File `body:"text/plain,application/octet-stream" range:""`
}

func (f *Family) trace(ctx context.Context, s auth.Job, r *traceRequest) (none, error) {
	if s.Job.Status != pipeline.Running {
		return none{}, ended(s)
	}
	content, err := io.ReadAll(r.Part.Open())
	if err != nil {
		return none{}, fmt.Errorf("reading a part of a log: %w", err)
	}
	size, err := f.Activity.Pipelines.AppendLog(ctx, s.Job.ID, r.Part.Offset, content)
	switch {
	case errors.Is(err, pipeline.ErrLogPosition):
		return none{}, endpoint.RangeNotSatisfiable(size)
	case errors.Is(err, pipeline.ErrLogSize):
		return none{}, f.exceed(ctx, s)
	}
	audit.From(ctx).Skip() // a log is not a change
	header := endpoint.Stored(size)
	header.Set(statusHeader, string(s.Job.Status))
	header.Set(paceHeader, pace)
	return none{Header: header}, err
}

// exceed fails a job whose log is too large.
func (f *Family) exceed(ctx context.Context, s auth.Job) error {
	if err := f.fail(ctx, s.Job, "trace_size_exceeded"); err != nil {
		return err
	}
	s.Job.Status = pipeline.Failed
	return ended(s)
}
