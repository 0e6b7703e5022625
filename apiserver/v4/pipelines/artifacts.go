package pipelines

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	urlpath "path"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/internal/artifact"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/blob"
	"github.com/forgeplane/forgeplane/internal/pipeline"
)

// errNoArtifacts is the answer if a job has no artifacts, or none any more. The text differs from that for an unknown job by one letter.
var errNoArtifacts = endpoint.Message(http.StatusNotFound, "404 Not Found")

// artifactTable lists the endpoints of "Job artifacts" of the second interface document.
func (f *Family) artifactTable() endpoint.Table {
	return endpoint.Table{
		f.reads(endpoint.Get(oneJob+"/artifacts", f.archive).Found(f.findJob)).
			Doc("Get the archive with the artifacts of a job."),
		f.reads(endpoint.Get(oneJob+"/artifacts/{artifact_path...}", f.file).Found(f.findJob)).
			Doc("Get a file out of the archive of a job."),
		f.reads(endpoint.Get(jobs+"/artifacts/{ref_name...}/download", f.latestArchive)).
			Doc("Get the archive of a job in the latest successful pipeline of a branch or tag."),
		f.reads(endpoint.Get(jobs+"/artifacts/{ref_name...}/raw/{artifact_path...}", f.latestFile)).
			Doc("Get a file out of the archive of a job in the latest successful pipeline of a branch or tag."),
		endpoint.Post(oneJob+"/artifacts/keep", f.keepArtifacts).Needs(auth.UpdatePipelines).Found(f.findJob).Status(http.StatusOK).
			Doc("Keep the artifacts of a job, so that they do not expire."),
		endpoint.Delete(oneJob+"/artifacts", f.removeArtifacts).Needs(auth.AdminPipelines).Found(f.findJob).
			Doc("Delete the artifacts of a job."),
		endpoint.Delete("/projects/{id}/artifacts", f.expireArtifacts).Needs(auth.AdminPipelines).Status(http.StatusAccepted).
			Doc("Delete all artifacts of a project, except those that the project keeps, in the background."),
	}
}

// reads makes an endpoint send artifacts, also to jobs.
func (f *Family) reads(e *endpoint.Endpoint) *endpoint.Endpoint {
	return e.Needs(auth.ReadPipelines).Asks(auth.UpdatePipelines, auth.AdminPipelines).Anonymous(endpoint.Served).
		Takes(endpoint.AccessToken, endpoint.JobToken).Carries(endpoint.JobToken, "job_token").Download()
}

type withJobToken struct {
	JobToken string `param:"job_token" doc:"Token of a running job, in the place of an access token."`
}

type archiveRequest struct{ withJobToken }

type fileRequest struct {
	withJobToken
	Path endpoint.Path `param:"artifact_path" doc:"Path of the file in the archive."`
}

type latestArchiveRequest struct {
	withJobToken
	Ref string `param:"ref_name" example:"main" doc:"Name of a branch or tag."`
	Job string `param:"job" required:"" example:"build" doc:"Name of the job."`
}

type latestFileRequest struct {
	latestArchiveRequest
	Path endpoint.Path `param:"artifact_path" doc:"Path of the file in the archive."`
}

func (f *Family) archive(ctx context.Context, s auth.ProjectRecord[foundJob], _ *archiveRequest) (endpoint.Content, error) {
	return f.sendArchive(ctx, s.Subject, s.Record.Job)
}

func (f *Family) latestArchive(ctx context.Context, s auth.Project, r *latestArchiveRequest) (endpoint.Content, error) {
	j, err := f.Activity.Pipelines.LatestJob(ctx, s.Scope.Project.UID, r.Ref, r.Job)
	if err != nil {
		return endpoint.Content{}, answer(err)
	}
	return f.sendArchive(ctx, s.Subject, j)
}

func (f *Family) sendArchive(ctx context.Context, s auth.Subject, of pipeline.Job) (endpoint.Content, error) {
	a, err := f.archiveOf(ctx, s, of)
	if err != nil {
		return endpoint.Content{}, err
	}
	header := endpoint.Attachment(a.Name)
	header.Set("Content-Transfer-Encoding", "binary")
	return endpoint.Content{Type: "application/zip", Header: header, Size: a.Size, Write: func(to io.Writer) error {
		return unstored(f.Artifacts.Write(ctx, a, to))
	}}, nil
}

func (f *Family) file(ctx context.Context, s auth.ProjectRecord[foundJob], r *fileRequest) (endpoint.Content, error) {
	sent, err := f.sendFile(ctx, s.Subject, s.Record.Job, string(r.Path))
	if kind := mime.TypeByExtension(urlpath.Ext(string(r.Path))); err == nil && kind != "" {
		sent.Type = kind
	}
	return sent, err
}

func (f *Family) latestFile(ctx context.Context, s auth.Project, r *latestFileRequest) (endpoint.Content, error) {
	j, err := f.Activity.Pipelines.LatestJob(ctx, s.Scope.Project.UID, r.Ref, r.Job)
	if err != nil {
		return endpoint.Content{}, answer(err)
	}
	return f.sendFile(ctx, s.Subject, j, string(r.Path))
}

// sendFile sends a file out of the archive of a job, as plain text. Browsers save it: it comes from users, and must not run as a page of the forge.
func (f *Family) sendFile(ctx context.Context, s auth.Subject, of pipeline.Job, name string) (endpoint.Content, error) {
	a, err := f.archiveOf(ctx, s, of)
	if err != nil {
		return endpoint.Content{}, err
	}
	found, err := f.Artifacts.Find(ctx, a, name)
	var unreadable artifact.Unreadable
	switch {
	case errors.Is(err, artifact.ErrNoFile):
		return endpoint.Content{}, endpoint.NotFound("").Describe("The archive has no file %q.", name)
	case errors.As(err, &unreadable):
		return endpoint.Content{}, endpoint.Unprocessable(unreadable.Error())
	case err != nil:
		return endpoint.Content{}, unstored(err)
	}
	return endpoint.Content{Type: "text/plain; charset=utf-8", Header: endpoint.Attachment(urlpath.Base(name)), Size: found.Size, Write: func(to io.Writer) error {
		return unstored(found.Write(ctx, to))
	}}, nil
}

// archiveOf returns the archive of a job, if the caller can read it.
func (f *Family) archiveOf(ctx context.Context, s auth.Subject, of pipeline.Job) (pipeline.Artifact, error) {
	stored, err := f.artifacts(ctx, s, of)
	if err != nil {
		return pipeline.Artifact{}, err
	}
	for _, a := range stored[of.ID] {
		switch {
		case a.Type != pipeline.Archive:
		case !mayDownload(s, a):
			return pipeline.Artifact{}, endpoint.Forbidden("")
		default:
			return a, nil
		}
	}
	return pipeline.Artifact{}, errNoArtifacts
}

// artifacts returns the artifacts of jobs that have not expired, by the ids of the jobs.
func (f *Family) artifacts(ctx context.Context, s auth.Subject, jobs ...pipeline.Job) (map[int64][]pipeline.Artifact, error) {
	ids := make([]int64, len(jobs))
	for i, j := range jobs {
		ids[i] = j.ID
	}
	stored, err := f.Activity.Pipelines.Artifacts(ctx, ids...)
	if err != nil {
		return nil, err
	}
	current := make(map[int64][]pipeline.Artifact, len(stored))
	for id, all := range stored {
		for _, a := range all {
			if !a.Expired(f.Clock.Now(), s.Scope.Project.Spec.Pipelines.KeepsLatestArtifacts()) {
				current[id] = append(current[id], a)
			}
		}
	}
	return current, nil
}

// mayDownload reports whether the access of an artifact allows the caller to download it. The endpoint must ask for both abilities.
func mayDownload(s auth.Subject, a pipeline.Artifact) bool {
	switch a.Access {
	case "all":
		return true
	case "developer":
		return s.Has(s.Access, auth.UpdatePipelines)
	case "maintainer":
		return s.Has(s.Access, auth.AdminPipelines)
	default:
		return false
	}
}

// unstored converts the error for content that was removed meanwhile.
func unstored(err error) error {
	if errors.Is(err, blob.ErrNotFound) {
		return errNoArtifacts
	}
	return err
}

func (f *Family) keepArtifacts(ctx context.Context, s auth.ProjectRecord[foundJob], _ *endpoint.None) (Job, error) {
	if stored, err := f.artifacts(ctx, s.Subject, s.Record.Job); err != nil {
		return Job{}, err
	} else if len(stored[s.Record.ID]) == 0 {
		return Job{}, errNoArtifacts
	}
	if err := f.Activity.Pipelines.KeepArtifacts(ctx, s.Record.ID); err != nil {
		return Job{}, err
	}
	audit.From(ctx).Did("keep", audit.Artifacts, fmt.Sprintf("%s/-/jobs/%d", s.Scope.Path(), s.Record.ID), s.Record.ID)
	return f.showJob(ctx, s.Subject, s.Record.Job)
}

func (f *Family) removeArtifacts(ctx context.Context, s auth.ProjectRecord[foundJob], _ *endpoint.None) (endpoint.None, error) {
	if err := f.Activity.Pipelines.RemoveArtifacts(ctx, s.Record.ID); err != nil {
		return endpoint.None{}, err
	}
	audit.From(ctx).Did("delete", audit.Artifacts, fmt.Sprintf("%s/-/jobs/%d", s.Scope.Path(), s.Record.ID), s.Record.ID)
	return endpoint.None{}, nil
}

// Accepted is the answer to a change that goes on later.
type Accepted struct {
	Message string `json:"message" example:"202 Accepted"`
}

func (f *Family) expireArtifacts(ctx context.Context, s auth.Project, _ *endpoint.None) (Accepted, error) {
	p := s.Scope.Project
	if err := f.Activity.Pipelines.ExpireArtifacts(ctx, p.UID, p.Spec.Pipelines.KeepsLatestArtifacts()); err != nil {
		return Accepted{}, err
	}
	audit.From(ctx).Did("expire", audit.Artifacts, s.Scope.Path(), p.RESTID())
	return Accepted{"202 Accepted"}, nil
}
