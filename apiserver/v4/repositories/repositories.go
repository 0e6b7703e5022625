// Package repositories is the family "Repository" of the core interface document: what is in the repository of a project.
package repositories

import (
	"context"
	"net/http"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/family"
	"github.com/forgeplane/forgeplane/apiserver/ref"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/refs"
)

// Family serves what is in repositories.
type Family struct {
	family.Kit
	mergeRequests MergeRequests
}

// New returns the family. m are the merge requests of projects.
func New(k family.Kit, m MergeRequests) *Family {
	return &Family{Kit: k, mergeRequests: m}
}

// Table lists the endpoints.
func (f *Family) Table() endpoint.Table {
	table := endpoint.Table{
		endpoint.Get("/projects/{id}/repository/tree", f.tree).Also(http.StatusUnprocessableEntity).
			Doc("List the files and directories in a directory of the repository, or all below it."),
		endpoint.Get("/projects/{id}/repository/blobs/{sha}", f.blob).
			Doc("Get the content of a file by the id of its blob."),
		endpoint.Get("/projects/{id}/repository/blobs/{sha}/raw", f.rawBlob).
			Doc("Get the content of a file as it is, by the id of its blob."),
		endpoint.Get("/projects/{id}/repository/compare", f.compare).Also(http.StatusInsufficientStorage).
			Doc("Compare two commits: the commits and changes that the second has and the first does not have."),
		endpoint.Get("/projects/{id}/repository/contributors", f.contributors).
			Doc("List the authors of the commits of a branch, and how many each has."),
		endpoint.Get("/projects/{id}/repository/merge_base", f.mergeBase).
			Doc("Get the best common ancestor of commits."),
	}
	table = append(table, f.archiveTable()...)
	for _, e := range table {
		e.Needs(auth.ReadCode).Anonymous(endpoint.Served)
	}
	return append(table, f.changelogTable()...)
}

// repository returns the one of the project that a request is about.
func (f *Family) repository(ctx context.Context, s auth.Project) (*git.Repository, error) {
	return f.Repositories.Content(ctx, s.Scope.Project)
}

// reading returns the repository of a project, which is not removed before end is called, and a context for reading it. Without that, a move to
// another shard could remove the copy that a request began with between two of its commands.
func (f *Family) reading(ctx context.Context, p *v1alpha1.Project) (repo *git.Repository, in context.Context, end func(), err error) {
	repo, err = f.Repositories.Content(ctx, p)
	if err == nil {
		in, end, err = repo.BeginRead(ctx)
	}
	return repo, in, end, err
}

// commit returns the repository of the request's project, and the id of the commit that a revision names in it; that of the
// default branch where it names none.
func (f *Family) commit(ctx context.Context, s auth.Project, revision string) (*git.Repository, string, error) {
	repo, err := f.repository(ctx, s)
	if err != nil {
		return nil, "", err
	}
	if revision == "" {
		revision = "HEAD"
	}
	id, err := refs.Commit(ctx, repo, revision)
	return repo, id, err
}

// orNotFound is err, or otherwise where err says that something is missing.
func orNotFound(err error, otherwise *endpoint.Error) error {
	if ref.Missing(err) {
		return otherwise
	}
	return err
}
