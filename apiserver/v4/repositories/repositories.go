// Package repositories is the family "Repository" of the core interface document: the contents of the repository of a project.
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

// Family serves the contents of repositories.
type Family struct {
	family.Kit
	mergeRequests mergeRequests
}

// New returns the family.
func New(k family.Kit) *Family {
	return &Family{Kit: k, mergeRequests: k.Activity.MergeRequests}
}

// Table lists the endpoints.
func (f *Family) Table() endpoint.Table {
	table := endpoint.Table{
		endpoint.Get("/projects/{id}/repository/tree", f.tree).Also(http.StatusUnprocessableEntity).
			Doc("List the files and directories in a directory of the repository."),
		endpoint.Get("/projects/{id}/repository/blobs/{sha}", f.blob).
			Doc("Get a blob with its content."),
		endpoint.Get("/projects/{id}/repository/blobs/{sha}/raw", f.rawBlob).
			Doc("Get the raw content of a blob."),
		endpoint.Get("/projects/{id}/repository/compare", f.compare).Also(http.StatusInsufficientStorage).
			Doc("Get the commits and changes that only the second of two commits has."),
		endpoint.Get("/projects/{id}/repository/contributors", f.contributors).
			Doc("List the authors of the commits of a branch, with their numbers of commits."),
		endpoint.Get("/projects/{id}/repository/merge_base", f.mergeBase).
			Doc("Get the merge base of commits."),
	}
	table = append(table, f.archiveTable()...)
	for _, e := range table {
		e.Needs(auth.ReadCode).Anonymous(endpoint.Served)
	}
	return append(table, f.changelogTable()...)
}

// repository returns the repository of the request's project.
func (f *Family) repository(ctx context.Context, s auth.Project) (*git.Repository, error) {
	return f.Repositories.Content(ctx, s.Scope.Project)
}

// reading returns the repository of a project and a context for reading it. The repository is not removed before end is called. Otherwise,
// a move to another shard could remove it between two commands of a request.
func (f *Family) reading(ctx context.Context, p *v1alpha1.Project) (repo *git.Repository, in context.Context, end func(), err error) {
	repo, err = f.Repositories.Content(ctx, p)
	if err == nil {
		in, end, err = repo.BeginRead(ctx)
	}
	return repo, in, end, err
}

// commit returns the repository of the request's project and the id of the commit that revision resolves to. An empty revision means the
// default branch.
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

// orNotFound returns otherwise if err says that a ref or object does not exist, and err if not.
func orNotFound(err error, otherwise *endpoint.Error) error {
	if ref.Missing(err) {
		return otherwise
	}
	return err
}
