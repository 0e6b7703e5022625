// Package branches is the family of the branches in the repository of a project.
package branches

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/family"
	"github.com/forgeplane/forgeplane/apiserver/ref"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/object"
	"github.com/forgeplane/forgeplane/internal/git/refs"
	"github.com/forgeplane/forgeplane/internal/git/update"
	"github.com/forgeplane/forgeplane/internal/pattern"
)

// Family serves the branches of projects.
type Family struct {
	family.Kit
}

// New returns the family.
func New(k family.Kit) *Family { return &Family{k} }

// Table lists the endpoints. None requires signing in first: callers who may not see a project receive 404, even if they want to change
// something.
func (f *Family) Table() endpoint.Table {
	return endpoint.Table{
		endpoint.Get("/projects/{id}/repository/branches", f.list).Needs(auth.ReadCode).
			Anonymous(endpoint.Served).Doc("List the branches of the repository."),
		endpoint.Get("/projects/{id}/repository/branches/{branch}", f.get).Needs(auth.ReadCode).
			Anonymous(endpoint.Served).Doc("Get a branch."),
		endpoint.Post("/projects/{id}/repository/branches", f.create).Needs(auth.PushCode).
			Anonymous(endpoint.Hidden).Doc("Create a branch."),
		endpoint.Delete("/projects/{id}/repository/branches/{branch}", f.remove).Needs(auth.PushCode).
			Anonymous(endpoint.Hidden).Conditional().Doc("Delete a branch."),
		endpoint.Delete("/projects/{id}/repository/merged_branches", f.removeMerged).Needs(auth.PushCode).
			Anonymous(endpoint.Hidden).Status(http.StatusAccepted).
			Doc("Delete all branches that are merged into the default branch, except protected branches."),
	}
}

type listRequest struct {
	ref.Paging
	Search string `param:"search" doc:"Part of a name; ^ before it for how a name begins, $ behind it for how it ends."`
	Regex  string `param:"regex" doc:"A regular expression in the syntax of RE2."`
	Sort   string `param:"sort" values:"name_asc,updated_asc,updated_desc" default:"name_asc" doc:"The order."`
}

// orders has an order for each value of sort.
var orders = map[string]struct {
	by         refs.Order
	descending bool
}{"name_asc": {by: refs.ByName}, "updated_asc": {by: refs.ByDate}, "updated_desc": {by: refs.ByDate, descending: true}}

func (f *Family) list(ctx context.Context, s auth.Project, r *listRequest) (none endpoint.List[Branch], err error) {
	if r.Search != "" && r.Regex != "" {
		return none, endpoint.Parameters("search, regex are mutually exclusive")
	}
	compiled, err := pattern.Compile(r.Regex)
	if err != nil {
		return none, endpoint.Parameters("regex is an invalid regexp")
	}
	repo, err := f.repository(ctx, s)
	if ref.Missing(err) {
		return endpoint.Page(r.Paging.Paging, nil, func(b Branch) Branch { return b }), nil
	} else if err != nil {
		return none, err
	}
	order := orders[r.Sort]
	all, err := refs.Sorted(ctx, repo, ref.Branches, order.by, order.descending)
	if err != nil && !ref.Missing(err) {
		return none, err
	}
	match := ref.Search(r.Search)
	if r.Regex != "" {
		match = func(b refs.Ref) bool { return ctx.Err() == nil && compiled.MatchString(ref.Name(b)) }
	}
	var byName func(a, b string) int
	if order.by == refs.ByName {
		byName = strings.Compare
	}
	page, err := ref.Page(r.Paging, all, match, byName)
	if err := cmp.Or(err, ctx.Err()); err != nil {
		return none, err
	}
	return endpoint.Each(page, func(rows []refs.Ref) ([]Branch, error) { return f.show(ctx, s, repo, rows) })
}

func (f *Family) repository(ctx context.Context, s auth.Project) (*git.Repository, error) {
	return f.Repositories.Content(ctx, s.Scope.Project)
}

// find returns the branch with a name, and its repository.
func (f *Family) find(ctx context.Context, s auth.Project, name string) (repo *git.Repository, b refs.Ref, err error) {
	if object.CheckRefName(ref.Branches+name) != nil {
		return nil, b, endpoint.Message(http.StatusBadRequest, "The branch refname is invalid")
	}
	repo, b, err = ref.Find(ctx, f.Repositories, s.Scope.Project, ref.Branches+name)
	if ref.Missing(err) {
		err = endpoint.NotFound("Branch")
	}
	return repo, b, err
}

type branchRequest struct {
	Branch string `param:"branch" doc:"Name of the branch."`
}

func (f *Family) get(ctx context.Context, s auth.Project, r *branchRequest) (Branch, error) {
	repo, b, err := f.find(ctx, s, r.Branch)
	if err != nil {
		return Branch{}, err
	}
	return f.showOne(ctx, s, repo, b)
}

type createRequest struct {
	Branch string `param:"branch" required:"" blank:"refuse" example:"add-bread" doc:"Name of the new branch."`
	Ref    string `param:"ref" required:"" blank:"refuse" example:"main" doc:"The branch, tag or commit that it begins at."`
}

func (f *Family) create(ctx context.Context, s auth.Project, r *createRequest) (none Branch, err error) {
	made := refs.Ref{Name: ref.Branches + r.Branch, Type: "commit"}
	if !ref.IsBranchName(r.Branch) {
		return none, ref.InvalidBranchName(r.Branch)
	}
	repo, _, err := ref.Find(ctx, f.Repositories, s.Scope.Project, made.Name)
	if err == nil {
		return none, exists()
	}
	if errors.Is(err, refs.ErrNotFound) {
		made.Object, err = refs.Commit(ctx, repo, r.Ref)
	}
	if ref.Missing(err) {
		return none, endpoint.Message(http.StatusBadRequest, "Invalid reference name: %s", r.Ref)
	} else if err != nil {
		return none, err
	}
	var refused *ref.RefusedError
	switch err := f.Refs.Update(ctx, s, repo, update.Ref{Name: made.Name, New: made.Object}); {
	case errors.As(err, &refused):
		return none, refused.Answer()
	case errors.Is(err, refs.ErrMoved):
		return none, exists()
	case errors.Is(err, refs.ErrInTheWay):
		return none, endpoint.Message(http.StatusBadRequest, "Failed to create branch '%s': another branch is in the way", r.Branch)
	case err != nil:
		return none, err
	}
	return f.showOne(ctx, s, repo, made)
}

func exists() error { return endpoint.Message(http.StatusBadRequest, "Branch already exists") }
