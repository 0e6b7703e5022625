// Package commits is the family of the commits in the repository of a project.
package commits

import (
	"cmp"
	"context"
	"time"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/diff"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/family"
	"github.com/forgeplane/forgeplane/apiserver/ref"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/history"
	"github.com/forgeplane/forgeplane/internal/git/object"
	"github.com/forgeplane/forgeplane/internal/git/refs"
)

// Family serves the commits of projects.
type Family struct {
	family.Kit
}

// New returns the family.
func New(k family.Kit) *Family { return &Family{k} }

// Table lists the endpoints.
func (f *Family) Table() endpoint.Table {
	return endpoint.Table{
		endpoint.Get("/projects/{id}/repository/commits", f.list).Needs(auth.ReadCode).
			Anonymous(endpoint.Served).Doc("List the commits of a branch, the newest first."),
		endpoint.Post("/projects/{id}/repository/commits", f.create).Needs(auth.CommitCode).
			Anonymous(endpoint.Hidden).MaxBody(ref.MaxBody).Doc("Create a commit that changes files on a branch."),
		endpoint.Get("/projects/{id}/repository/commits/{sha}", f.get).Needs(auth.ReadCode).
			Anonymous(endpoint.Served).Doc("Get a commit."),
		endpoint.Get("/projects/{id}/repository/commits/{sha}/diff", f.diff).Needs(auth.ReadCode).
			Anonymous(endpoint.Served).Doc("List the changes of a commit since its first parent."),
		endpoint.Get("/projects/{id}/repository/commits/{sha}/refs", f.refs).Needs(auth.ReadCode).
			Anonymous(endpoint.Served).Doc("List the branches and tags that contain a commit."),
		endpoint.Get("/projects/{id}/repository/commits/{sha}/signature", f.signature).Needs(auth.ReadCode).
			Anonymous(endpoint.Served).Doc("Get the signature of a commit. It is not verified."),
	}
}

type listRequest struct {
	endpoint.Paging
	RefName     string                       `param:"ref_name" doc:"A branch, tag or commit, or two of them with .. or ... between; the default branch if it is not given."`
	Since       endpoint.Optional[time.Time] `param:"since" doc:"When the oldest was committed."`
	Until       endpoint.Optional[time.Time] `param:"until" doc:"When the newest was committed."`
	Path        string                       `param:"path" doc:"Only those that have changed this file or directory; renames are followed."`
	Author      string                       `param:"author" doc:"Part of the name or address of the author."`
	All         bool                         `param:"all" default:"false" doc:"Whether to list the commits of all branches and tags."`
	WithStats   bool                         `param:"with_stats" default:"false" doc:"Whether to count the changed lines."`
	FirstParent bool                         `param:"first_parent" default:"false" doc:"Whether to follow only the first parent of merges."`
	Order       string                       `param:"order" values:"default,topo" default:"default" doc:"default for the order of time, topo for one line of history after the other."`
	Trailers    bool                         `param:"trailers" default:"false" doc:"Whether to show the trailers."`
}

func (f *Family) list(ctx context.Context, s auth.Project, r *listRequest) (none endpoint.List[Listed], err error) {
	repo, err := f.repository(ctx, s)
	var l history.Log
	if err == nil {
		l, err = f.log(ctx, repo, r)
	}
	var commits []*object.Commit
	more := false
	switch {
	case err == nil:
		l.Skip, l.Limit = r.Window()
		commits, more, err = history.List(ctx, repo, l)
	case ref.Missing(err) && r.RefName != "" && !r.All:
		err = endpoint.NotFound("Commit")
	case ref.Missing(err): // the repository is empty
		err = nil
	}
	if err != nil {
		return none, err
	}
	rows, err := f.show(ctx, s, repo, commits, r.WithStats, r.Trailers)
	if err != nil {
		return none, err
	}
	return endpoint.Part(rows, more, func(c Listed) Listed { return c }), nil
}

// log returns the options that a request selects.
func (f *Family) log(ctx context.Context, repo *git.Repository, r *listRequest) (l history.Log, err error) {
	if r.All {
		if l.Tips, err = refs.Tips(ctx, repo, ref.Branches, ref.Tags); err != nil {
			return l, err
		}
	} else if l, err = history.Range(ctx, repo, cmp.Or(r.RefName, "HEAD")); err != nil {
		return l, err
	}
	l.Path, l.Author, l.Since, l.Until = r.Path, r.Author, r.Since.Value, r.Until.Value
	l.FirstParent, l.Topo = r.FirstParent, r.Order == "topo"
	return l, nil
}

func (f *Family) repository(ctx context.Context, s auth.Project) (*git.Repository, error) {
	return f.Repositories.Content(ctx, s.Scope.Project)
}

// find returns the commit that a revision resolves to, and its repository.
func (f *Family) find(ctx context.Context, s auth.Project, revision string) (*git.Repository, *object.Commit, error) {
	repo, err := f.repository(ctx, s)
	var id string
	if err == nil {
		id, err = refs.Commit(ctx, repo, revision)
	}
	var c *object.Commit
	if err == nil {
		c, err = repo.ReadCommit(ctx, id)
	}
	if ref.Missing(err) {
		err = endpoint.NotFound("Commit")
	}
	return repo, c, err
}

type getRequest struct {
	SHA   string `param:"sha" doc:"A branch, tag or commit."`
	Stats bool   `param:"stats" default:"true" doc:"Whether to count the changed lines."`
}

func (f *Family) get(ctx context.Context, s auth.Project, r *getRequest) (none Detail, err error) {
	repo, c, err := f.find(ctx, s, r.SHA)
	if err != nil {
		return none, err
	}
	d, err := f.detail(ctx, s, repo, c, r.Stats)
	if err != nil {
		return d, err
	}
	return f.withPipeline(ctx, s, d)
}

type diffRequest struct {
	endpoint.Paging
	SHA     string `param:"sha" doc:"A branch, tag or commit."`
	Unidiff bool   `param:"unidiff" default:"false" doc:"Whether diffs begin with the names of the files."`
}

func (f *Family) diff(ctx context.Context, s auth.Project, r *diffRequest) (none endpoint.List[diff.Diff], err error) {
	repo, c, err := f.find(ctx, s, r.SHA)
	if err != nil {
		return none, err
	}
	parent := ""
	if len(c.Parents) > 0 {
		parent = c.Parents[0]
	}
	changes, err := history.Compare(ctx, repo, parent, c.ID, diff.Patience)
	if err != nil {
		return none, err
	}
	return diff.Page(r.Paging, changes, r.Unidiff)
}

type refsRequest struct {
	endpoint.Paging
	SHA  string `param:"sha" doc:"A branch, tag or commit."`
	Type string `param:"type" values:"branch,tag,all" default:"all" doc:"Whether to list branches, tags or both."`
}

// prefixes are the ref prefixes of a type.
var prefixes = map[string][]string{"branch": {ref.Branches}, "tag": {ref.Tags}, "all": {ref.Branches, ref.Tags}}

func (f *Family) refs(ctx context.Context, s auth.Project, r *refsRequest) (none endpoint.List[Ref], err error) {
	repo, c, err := f.find(ctx, s, r.SHA)
	if err != nil {
		return none, err
	}
	all, err := refs.Containing(ctx, repo, c.ID, prefixes[r.Type]...)
	if err != nil {
		return none, err
	}
	return endpoint.Page(r.Paging, all, showRef), nil
}
