package runnerjobs

import (
	"context"
	"errors"
	"io"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/launch"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/ci/config"
	"github.com/forgeplane/forgeplane/internal/pipeline"
)

// Artifact says which files a runner uploads when a job ends.
type Artifact struct {
	Name      string   `json:"name"`
	Untracked bool     `json:"untracked"`
	Paths     []string `json:"paths"`
	Exclude   []string `json:"exclude"`
	When      string   `json:"when" example:"on_success"`
	Type      string   `json:"artifact_type" example:"archive"`
	Format    string   `json:"artifact_format" example:"zip"`
	ExpireIn  string   `json:"expire_in" doc:"Always empty: the configuration of the job decides."`
}

// Dependency is a job whose archive a runner downloads before it executes another job.
type Dependency struct {
	ID    int64           `json:"id"`
	Token string          `json:"token" doc:"The token of the job that is executed."`
	Name  string          `json:"name"`
	File  *DependencyFile `json:"artifacts_file"`
}

// DependencyFile describes an archive.
type DependencyFile struct {
	Filename string `json:"filename"`
	Size     int64  `json:"size"`
}

// raw are the reports that runners upload as they are. They pack the others with gzip.
var raw = []string{
	"accessibility", "api_fuzzing", "browser_performance", "cluster_image_scanning", "codequality", "container_scanning", "coverage_fuzzing", "dast",
	"dependency_scanning", "load_performance", "requirements", "sast", "secret_detection", "terraform",
}

// reportNames are the names of the files of some reports. The others are named after their type.
var reportNames = map[string]string{
	"accessibility": "gl-accessibility.json", "annotations": "gl-annotations.json", "browser_performance": "browser-performance.json",
	"cobertura": "cobertura-coverage.xml", "codequality": "gl-code-quality-report.json", "coverage_fuzzing": "gl-coverage-fuzzing.json",
	"cyclonedx": "gl-sbom.cdx.json", "dotenv": ".env", "jacoco": "jacoco-coverage.xml", "junit": "junit.xml", "load_performance": "load-performance.json",
	"metrics": "metrics.txt", "repository_xray": "gl-repository-xray.json", "requirements": "requirements.json", "terraform": "tfplan.json",
}

// artifacts returns the artifacts that a job uploads.
func artifacts(spec *config.Artifacts) []Artifact {
	all := []Artifact{}
	if spec == nil {
		return all
	}
	if len(spec.Paths) > 0 || spec.Untracked {
		all = append(all, Artifact{
			Name: spec.Name, Untracked: spec.Untracked, Paths: append([]string{}, spec.Paths...), Exclude: append([]string{}, spec.Exclude...), When: spec.When,
			Type: pipeline.Archive, Format: "zip",
		})
	}
	for _, r := range spec.Reports {
		kind := r.Type
		if r.CoverageFormat != "" {
			kind = r.CoverageFormat
		}
		report := Artifact{Name: reportNames[kind], Paths: append([]string{}, r.Paths...), Exclude: []string{}, When: "always", Type: kind, Format: "gzip"}
		if report.Name == "" {
			report.Name = "gl-" + strings.ReplaceAll(kind, "_", "-") + "-report.json"
		}
		if slices.Contains(raw, kind) {
			report.Format = "raw"
		}
		all = append(all, report)
	}
	return all
}

// dependencies completes a job with the archives and the outputs of the jobs before it, and returns the archives.
func (f *Family) dependencies(ctx context.Context, e *launch.Execution) ([]Dependency, error) {
	all := []Dependency{}
	before, err := f.Activity.Pipelines.Providers(ctx, e.Job)
	if err != nil || len(before) == 0 {
		return all, err
	}
	if e.Outputs, err = f.Activity.Pipelines.Outputs(ctx, before...); err != nil {
		return nil, err
	}
	ids := make([]int64, len(before))
	for i, j := range before {
		ids[i] = j.ID
	}
	stored, err := f.Activity.Pipelines.Artifacts(ctx, ids...)
	if err != nil {
		return nil, err
	}
	keep := e.In.Project.Spec.Pipelines.KeepsLatestArtifacts()
	for _, j := range before {
		for _, a := range stored[j.ID] {
			if a.Type == pipeline.Archive && !a.Expired(f.Clock.Now(), keep) {
				all = append(all, Dependency{j.ID, e.Token, j.Name, &DependencyFile{a.Name, a.Size}})
			}
		}
	}
	return all, nil
}

type uploadRequest struct {
	Token    string        `param:"token" doc:"The job token, only in the query. It can also be in the header JOB-TOKEN."`
	File     endpoint.File `param:"file" required:"" doc:"The content, with its file name."`
	Type     string        `param:"artifact_type" default:"archive" doc:"Type of the artifact, such as archive, metadata or junit."`
	Format   string        `param:"artifact_format" values:"zip,gzip,raw" default:"zip" doc:"Format of the content."`
	ExpireIn string        `param:"expire_in" doc:"Has no effect: the configuration of the job decides."`
}

const (
	// maxArtifact is the maximum size of an artifact in bytes.
	maxArtifact = 1 << 30
	// defaultExpiry is the time for which artifacts are kept whose job does not say how long.
	defaultExpiry = 30 * 24 * time.Hour
)

func (f *Family) upload(ctx context.Context, s auth.Job, r *uploadRequest) (none, error) {
	if err := f.mayTransfer(ctx, s); err != nil {
		return none{}, err
	}
	full, err := f.Activity.Pipelines.WithSpec(ctx, s.Job.In.UID, s.Job.ID)
	if err != nil {
		return none{}, err
	}
	spec := full.Spec.Artifacts
	if spec == nil || r.Type != "metadata" && !slices.ContainsFunc(artifacts(spec), func(a Artifact) bool { return a.Type == r.Type }) {
		return none{}, endpoint.BadRequest("The configuration of the job has no artifacts of the type " + r.Type)
	}
	if r.Type == dotenv {
		if err := f.keepOutputs(ctx, s.Job.ID, r); err != nil {
			return none{}, err
		}
	}
	added := pipeline.Artifact{
		JobID: s.Job.ID, Type: r.Type, Format: r.Format, Name: path.Base(r.File.Name), Access: spec.Access, Size: r.File.Size, Expires: expiry(spec, f.Clock.Now()),
	}
	switch err := f.Artifacts.Add(ctx, &added, r.File.Open()); {
	case errors.Is(err, pipeline.ErrArtifactExists):
		return none{}, endpoint.BadRequest("The job has another artifact of the type " + r.Type + " already")
	case errors.Is(err, pipeline.ErrNotFound):
		return none{}, endpoint.Forbidden("Job is not running")
	case err != nil:
		return none{}, err
	}
	audit.From(ctx).Skip() // like the log, it is a part of the job
	return none{Status: http.StatusCreated}, nil
}

// mayTransfer returns the answer to a runner that must not transfer artifacts, because the job has ended or its user is blocked; otherwise nil. The runner can
// still send the rest of the log, and end the job.
func (f *Family) mayTransfer(ctx context.Context, s auth.Job) error {
	if s.Job.Status != pipeline.Running {
		return ended(s)
	}
	_, err := f.Guard.Known(ctx, s.Job.User)
	if gone(err) {
		return endpoint.Forbidden("").Describe("The user of the job is blocked or was deleted.")
	}
	return err
}

// expiry returns the time at which the artifacts of a job expire; zero for never.
func expiry(spec *config.Artifacts, now time.Time) time.Time {
	switch {
	case spec.ExpireIn < 0:
		return time.Time{}
	case spec.ExpireIn == 0:
		return now.Add(defaultExpiry).UTC()
	default:
		return now.Add(spec.ExpireIn).UTC()
	}
}

type downloadRequest struct {
	Token  string `param:"token" doc:"The job token. It can also be in the header JOB-TOKEN."`
	Direct bool   `param:"direct_download" default:"false" doc:"Has no effect: the content is always in the answer."`
}

// download sends the archive of a job to a runner that executes a later job of the same pipeline.
func (f *Family) download(ctx context.Context, s auth.OtherJob, _ *downloadRequest) (endpoint.Content, error) {
	if err := f.mayTransfer(ctx, auth.Job{Subject: s.Subject, Job: s.Job}); err != nil {
		return endpoint.Content{}, err
	}
	other, err := f.Activity.Pipelines.GetJob(ctx, s.Job.In.UID, s.ID)
	if err == nil && other.PipelineID != s.Job.PipelineID {
		err = pipeline.ErrNotFound
	}
	if errors.Is(err, pipeline.ErrNotFound) {
		return endpoint.Content{}, endpoint.NotFound("")
	} else if err != nil {
		return endpoint.Content{}, err
	}
	stored, err := f.Activity.Pipelines.Artifacts(ctx, other.ID)
	if err != nil {
		return endpoint.Content{}, err
	}
	for _, a := range stored[other.ID] {
		if a.Type == pipeline.Archive {
			return endpoint.Content{
				Type: "application/zip", Size: a.Size, Header: endpoint.Attachment(a.Name),
				Write: func(to io.Writer) error { return f.Artifacts.Write(ctx, a, to) },
			}, nil
		}
	}
	return endpoint.Content{}, endpoint.NotFound("")
}
