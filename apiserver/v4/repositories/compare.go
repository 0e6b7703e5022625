package repositories

import (
	"context"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/commit"
	"github.com/forgeplane/forgeplane/apiserver/diff"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/internal/git"
)

// comparePatience is how long the texts of a comparison may take, which through kube-apiserver has a minute in all.
const comparePatience = 20 * time.Second

// Compare is "Compare result" of the core interface document.
type Compare struct {
	Commit         *commit.Commit  `json:"commit" doc:"The last of the commits."`
	Commits        []commit.Commit `json:"commits" doc:"The oldest first."`
	Diffs          []diff.Diff     `json:"diffs"`
	CompareTimeout bool            `json:"compare_timeout" doc:"Whether the time was up, or the list full, before everything was compared."`
	CompareSameRef bool            `json:"compare_same_ref" doc:"Whether both are the same commit."`
	WebURL         string          `json:"web_url"`
}

type compareRequest struct {
	From          string                   `param:"from" required:"" blank:"refuse" doc:"A branch, tag or commit."`
	To            string                   `param:"to" required:"" blank:"refuse" doc:"The one to compare with it."`
	FromProjectID endpoint.Optional[int64] `param:"from_project_id" doc:"The project that from is in: this one."`
	Straight      bool                     `param:"straight" default:"false" doc:"Whether to compare with from itself, not with where both part."`
	Unidiff       bool                     `param:"unidiff" default:"false" doc:"Whether diffs begin with the names of the files."`
}

func (f *Family) compare(ctx context.Context, s auth.Project, r *compareRequest) (none Compare, err error) {
	// No project is a fork of another one.
	if id := s.Scope.Project.RESTID(); r.FromProjectID.Or(id) != id {
		return none, endpoint.Message(http.StatusBadRequest, "Target project id:%d is not a fork of project id:%s", r.FromProjectID.Value, s.Named())
	}
	repo, from, err := f.commit(ctx, s, r.From)
	if err != nil {
		return none, orNotFound(err, endpoint.NotFound("Ref"))
	}
	to, err := repo.Commit(ctx, r.To)
	if err != nil {
		return none, orNotFound(err, endpoint.NotFound("Ref"))
	}
	commits, changes, err := between(ctx, repo, from, to, r.Straight)
	if err != nil {
		return none, err
	}
	url, dots := f.projectURL(s), "..."
	if r.Straight {
		dots = ".."
	}
	shown := Compare{
		Commits: make([]commit.Commit, len(commits)), Diffs: make([]diff.Diff, len(changes.Changes)),
		CompareTimeout: changes.TimedOut || changes.Truncated, CompareSameRef: from == to, WebURL: url + "/-/compare/" + from + dots + to,
	}
	for i, c := range commits {
		shown.Commits[i] = commit.Show(c, url)
		shown.Commit = &shown.Commits[i]
	}
	for i, c := range changes.Changes {
		shown.Diffs[i] = diff.Show(c, r.Unidiff)
	}
	return shown, nil
}

// between returns the commits that to has and from does not have, and what differs: straight from the one to the other, or
// since they have parted.
func between(ctx context.Context, repo *git.Repository, from, to string, straight bool) (commits []*git.Commit, changes git.Diff, err error) {
	if from == to {
		return nil, git.Diff{}, nil
	}
	both, ctx := errgroup.WithContext(ctx)
	both.Go(func() (err error) {
		commits, err = repo.CommitsBetween(ctx, from, to)
		return err
	})
	both.Go(func() (err error) {
		base := from
		if !straight {
			if base, err = repo.CommonAncestor(ctx, to, from); err != nil {
				return err
			}
		}
		changes, err = repo.Diff(ctx, base, to, comparePatience)
		return err
	})
	err = both.Wait()
	return commits, changes, err
}
