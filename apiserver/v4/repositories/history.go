package repositories

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/commit"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/ref"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/history"
)

// Contributor is "Contributor" of the core interface document.
type Contributor struct {
	Name      string `json:"name"`
	Email     string `json:"email"`
	Commits   int    `json:"commits"`
	Additions int    `json:"additions" doc:"Always 0."`
	Deletions int    `json:"deletions" doc:"Always 0."`
}

type contributorsRequest struct {
	endpoint.Paging
	Ref     string `param:"ref" doc:"A branch, tag or commit; the default branch if it is not given."`
	OrderBy string `param:"order_by" values:"name,email,commits" default:"commits" doc:"Field that orders the list."`
	Sort    string `param:"sort" values:"asc,desc" default:"asc" doc:"Direction of the order."`
}

func (f *Family) contributors(ctx context.Context, s auth.Project, r *contributorsRequest) (none endpoint.List[Contributor], err error) {
	repo, id, err := f.commit(ctx, s, r.Ref)
	if err != nil {
		return none, orNotFound(err, endpoint.Message(http.StatusNotFound, "404 Not Found"))
	}
	all, err := history.Contributors(ctx, repo, id)
	if err != nil {
		return none, err
	}
	order := map[string]func(a, b history.Contributor) int{
		"name": func(a, b history.Contributor) int {
			return strings.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name))
		},
		"email":   func(a, b history.Contributor) int { return strings.Compare(a.Email, b.Email) },
		"commits": func(a, b history.Contributor) int { return cmp.Compare(a.Commits, b.Commits) },
	}[r.OrderBy]
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b history.Contributor) int {
		if r.Sort == "desc" {
			a, b = b, a
		}
		return order(a, b)
	})
	return endpoint.Page(r.Paging, all, func(c history.Contributor) Contributor {
		return Contributor{Name: c.Name, Email: c.Email, Commits: c.Commits}
	}), nil
}

// maxRefs is the maximum number of refs in a request for a merge base.
const maxRefs = 100

type mergeBaseRequest struct {
	Refs []string `param:"refs" required:"" comma:"" doc:"Two or more branches, tags or commits."`
}

func (f *Family) mergeBase(ctx context.Context, s auth.Project, r *mergeBaseRequest) (none commit.Commit, err error) {
	switch n := len(r.Refs); {
	case n < 2:
		return none, endpoint.Message(http.StatusBadRequest, "Provide at least 2 refs")
	case n > maxRefs:
		return none, endpoint.Parameters("refs does not have a valid value")
	}
	var repo *git.Repository
	var ids, unknown []string
	for _, name := range r.Refs {
		in, id, err := f.commit(ctx, s, name)
		switch {
		case ref.Missing(err) || name == "":
			unknown = append(unknown, name)
		case err != nil:
			return none, err
		}
		repo, ids = in, append(ids, id)
	}
	if len(unknown) > 0 {
		noun := map[bool]string{true: "ref", false: "refs"}[len(unknown) == 1]
		return none, endpoint.Message(http.StatusBadRequest, "Could not find %s: %s", noun, strings.Join(unknown, ", "))
	}
	base, err := history.CommonAncestor(ctx, repo, ids[0], ids[1:]...)
	if err != nil {
		return none, err
	}
	if base == "" {
		return none, endpoint.NotFound("Merge Base")
	}
	found, err := repo.ReadCommit(ctx, base)
	if err != nil {
		return none, err
	}
	return commit.Show(found, f.projectURL(s)), nil
}

// projectURL returns the URL of the request's project.
func (f *Family) projectURL(s auth.Project) string {
	return f.WebURL + "/" + s.Scope.Path()
}
