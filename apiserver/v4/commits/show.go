package commits

import (
	"context"
	"strings"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/commit"
	"github.com/forgeplane/forgeplane/apiserver/entity"
	"github.com/forgeplane/forgeplane/apiserver/ref"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/history"
	"github.com/forgeplane/forgeplane/internal/git/object"
	"github.com/forgeplane/forgeplane/internal/git/refs"
	"github.com/forgeplane/forgeplane/internal/pipeline"
)

// Listed is a commit in a list.
type Listed struct {
	commit.Commit

	Stats *Stats `json:"stats,omitempty" doc:"Present only on request."`
}

// Detail is a single commit.
type Detail struct {
	Listed

	Status       *pipeline.Status `json:"status" doc:"Status of last_pipeline."`
	LastPipeline *entity.Pipeline `json:"last_pipeline" doc:"Newest pipeline of the commit; null without one, and for callers who cannot see it."`
	ProjectID    int64            `json:"project_id"`
}

// Stats are the numbers of lines that a commit changed since its first parent.
type Stats struct {
	Additions int `json:"additions"`
	Deletions int `json:"deletions"`
	Total     int `json:"total"`
}

// show returns commits in the form of a list.
func (f *Family) show(ctx context.Context, s auth.Project, repo *git.Repository, commits []*object.Commit, stats, trailers bool) ([]Listed, error) {
	projectURL, brief := f.WebURL+"/"+s.Scope.Path(), commit.Brief
	if trailers {
		brief = commit.Show
	}
	shown, ids := make([]Listed, len(commits)), make([]string, len(commits))
	for i, c := range commits {
		shown[i], ids[i] = Listed{Commit: brief(c, projectURL)}, c.ID
	}
	if !stats {
		return shown, nil
	}
	counted, err := history.CountLines(ctx, repo, ids...)
	if err != nil {
		return nil, err
	}
	for i, id := range ids {
		lines := counted[id]
		shown[i].Stats = &Stats{Additions: lines.Added, Deletions: lines.Removed, Total: lines.Added + lines.Removed}
	}
	return shown, nil
}

// detail returns the form of a single commit.
func (f *Family) detail(ctx context.Context, s auth.Project, repo *git.Repository, c *object.Commit, stats bool) (Detail, error) {
	all, err := f.show(ctx, s, repo, []*object.Commit{c}, stats, true)
	if err != nil {
		return Detail{}, err
	}
	return Detail{Listed: all[0], ProjectID: s.Scope.Project.RESTID()}, nil
}

// withPipeline adds the newest pipeline of a commit, if the caller can see it.
func (f *Family) withPipeline(ctx context.Context, s auth.Project, d Detail) (Detail, error) {
	if !s.Access.SeesPipelines() {
		return d, nil
	}
	newest, err := f.Activity.Pipelines.List(ctx, pipeline.Query{
		Project: s.Scope.Project.UID, Order: pipeline.ByID, Conditions: []pipeline.Condition{pipeline.At(d.ID), pipeline.Independent()},
	}, 0, 1)
	if err == nil && len(newest) > 0 {
		last := entity.SummarizePipeline(newest[0], s.Scope, f.WebURL)
		d.LastPipeline, d.Status = &last, &last.Status
	}
	return d, err
}

// Ref is a branch or tag that contains a commit.
type Ref struct {
	Type string `json:"type" doc:"branch or tag."`
	Name string `json:"name"`
}

func showRef(r refs.Ref) Ref {
	if strings.HasPrefix(r.Name, ref.Tags) {
		return Ref{Type: "tag", Name: ref.Name(r)}
	}
	return Ref{Type: "branch", Name: ref.Name(r)}
}
