// Package cilint is the family that checks CI configurations.
package cilint

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"net/http"
	"strings"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/family"
	"github.com/forgeplane/forgeplane/apiserver/ref"
	"github.com/forgeplane/forgeplane/internal/ci"
	"github.com/forgeplane/forgeplane/internal/ci/document"
	"github.com/forgeplane/forgeplane/internal/ci/include"
)

// maxBody is the maximum size of a request in bytes: a configuration of document.MaxBytes, with escapes.
const maxBody = 2 << 20

// checks is the number of checks that a user can request in a project per minute.
const checks = 20

// Family checks CI configurations.
type Family struct {
	family.Kit
}

// New returns the family.
func New(k family.Kit) *Family { return &Family{k} }

// Table lists the endpoints.
func (f *Family) Table() endpoint.Table {
	return endpoint.Table{
		endpoint.Get("/projects/{id}/ci/lint", f.project).Needs(auth.ReadCode).Anonymous(endpoint.Challenged).Limited(checks, "ci_lint").
			Doc("Validate the CI configuration of a project."),
		endpoint.Post("/projects/{id}/ci/lint", f.content).Needs(auth.LintConfiguration).Asks(auth.ReadCode).Status(http.StatusOK).
			Anonymous(endpoint.Hidden).Limited(checks, "ci_lint").MaxBody(maxBody).Doc("Validate a CI configuration in the context of a project."),
	}
}

type contentRequest struct {
	Content     string `param:"content" required:"" example:"test: {script: make test}" doc:"The configuration in YAML."`
	DryRun      bool   `param:"dry_run" default:"false" doc:"Also decide which jobs a pipeline would have."`
	IncludeJobs bool   `param:"include_jobs" default:"false" doc:"Show the jobs: all, or with dry_run those of the pipeline."`
	Ref         string `param:"ref" doc:"With dry_run, the branch or tag of the pipeline; the default branch if it is not given."`
}

func (f *Family) content(ctx context.Context, s auth.Project, r *contentRequest) (none Result, err error) {
	l := &lint{Family: f, subject: s, includeJobs: r.IncludeJobs, dryRun: r.DryRun}
	if err := l.open(ctx, "HEAD"); err != nil && !ref.Missing(err) {
		return none, err
	}
	return l.check(ctx, ci.Names[0], []byte(r.Content), r.Ref)
}

type projectRequest struct {
	ContentRef  string `param:"content_ref" doc:"The branch, tag or commit that has the configuration; the default branch if it is not given."`
	SHA         string `param:"sha" doc:"Deprecated: use content_ref."`
	DryRun      bool   `param:"dry_run" default:"false" doc:"Also decide which jobs a pipeline would have."`
	DryRunRef   string `param:"dry_run_ref" doc:"With dry_run, the branch or tag of the pipeline; the default branch if it is not given."`
	Ref         string `param:"ref" doc:"Deprecated: use dry_run_ref."`
	IncludeJobs bool   `param:"include_jobs" default:"false" doc:"Show the jobs: all, or with dry_run those of the pipeline."`
}

func (f *Family) project(ctx context.Context, s auth.Project, r *projectRequest) (none Result, err error) {
	switch {
	case r.ContentRef != "" && r.SHA != "":
		return none, endpoint.Parameters("content_ref, sha are mutually exclusive")
	case r.DryRunRef != "" && r.Ref != "":
		return none, endpoint.Parameters("dry_run_ref, ref are mutually exclusive")
	}
	l := &lint{Family: f, subject: s, includeJobs: r.IncludeJobs, dryRun: r.DryRun}
	revision := cmp.Or(r.ContentRef, r.SHA)
	err = l.open(ctx, cmp.Or(revision, "HEAD"))
	switch {
	case ref.Missing(err) && revision != "":
		return none, endpoint.NotFound("Commit")
	case ref.Missing(err):
		return none, endpoint.NotFound("Repository")
	case err != nil:
		return none, err
	}
	for _, name := range ci.Names {
		content, err := l.files.Read(ctx, name, document.MaxBytes)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case errors.Is(err, include.ErrTooLarge):
			return l.invalid(document.Problems{{File: name, Text: err.Error()}}), nil
		case err != nil:
			return none, err
		}
		return l.check(ctx, name, content, cmp.Or(r.DryRunRef, r.Ref))
	}
	return l.invalid(document.Problems{missing}), nil
}

// missing is the problem of a project without a configuration.
var missing = document.Problem{Text: "The project has no CI configuration: there is no file " + strings.Join(ci.Names, " or ")}
