package repositories

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"golang.org/x/sync/errgroup"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/commit"
	"github.com/forgeplane/forgeplane/apiserver/diff"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/history"
	"github.com/forgeplane/forgeplane/internal/git/object"
	"github.com/forgeplane/forgeplane/internal/git/refs"
)

// Compare is "Compare result" of the core interface document.
type Compare struct {
	Commit         *commit.Commit  `json:"commit" doc:"The last of the commits."`
	Commits        []commit.Commit `json:"commits" doc:"The oldest first."`
	Diffs          []diff.Diff     `json:"diffs"`
	CompareTimeout bool            `json:"compare_timeout" doc:"Whether the comparison is incomplete because of a limit of time or size."`
	CompareSameRef bool            `json:"compare_same_ref" doc:"Whether both are the same commit."`
	WebURL         string          `json:"web_url"`
}

type compareRequest struct {
	From          string                   `param:"from" required:"" blank:"refuse" doc:"A branch, tag or commit."`
	To            string                   `param:"to" required:"" blank:"refuse" doc:"The branch, tag or commit to compare with it."`
	FromProjectID endpoint.Optional[int64] `param:"from_project_id" doc:"The project that from is in: this one, or another one of the same network of forks."`
	Straight      bool                     `param:"straight" default:"false" doc:"Whether to compare with from itself and not with the merge base."`
	Unidiff       bool                     `param:"unidiff" default:"false" doc:"Whether diffs begin with the names of the files."`
}

func (f *Family) compare(ctx context.Context, s auth.Project, r *compareRequest) (*endpoint.Kept[Compare], error) {
	other, err := f.comparedWith(ctx, s, r)
	if err != nil {
		return nil, err
	}
	repo, ctx, end, err := f.reading(ctx, s.Scope.Project)
	if err != nil {
		return nil, orNotFound(err, endpoint.NotFound("Ref"))
	}
	defer end()
	theirs := repo
	if other.UID != s.Scope.Project.UID {
		var end func()
		if theirs, ctx, end, err = f.reading(ctx, other); err != nil {
			return nil, orNotFound(err, endpoint.NotFound("Ref"))
		}
		defer end()
	}
	to, err := refs.Commit(ctx, repo, r.To)
	from := ""
	if err == nil {
		from, err = refs.Commit(ctx, theirs, r.From)
	}
	if err != nil {
		return nil, orNotFound(err, endpoint.NotFound("Ref"))
	}
	if len(from) != len(to) { // the object formats differ
		return nil, endpoint.NotFound("Ref")
	}
	v := comparison{from: from, to: to, straight: r.Straight, unidiff: r.Unidiff, url: f.projectURL(s)}
	key := v.key()
	if known, ok := git.Recall[*endpoint.Kept[Compare]](repo, comparing, key); ok {
		return known, nil
	}
	joined := repo
	if theirs != repo {
		var remove func()
		if joined, remove, err = repo.Engine().Join(ctx, object.FormatOf(to), repo, theirs); err != nil {
			return nil, err
		}
		defer remove()
	}
	commits, changes, err := between(ctx, joined, from, to, r.Straight)
	if err != nil {
		return nil, err
	}
	shown := endpoint.Keep(v.show(commits, changes))
	if !changes.TimedOut {
		git.Remember(repo, comparing, key, shown, shown.Size())
	}
	return shown, nil
}

// comparing is the name under which answers are remembered: to encode the diffs of 200 commits takes longer than everything else.
const comparing = "showing a comparison"

// comparison determines an answer.
type comparison struct {
	from, to          string
	straight, unidiff bool
	url               string
}

func (c comparison) key() string { return fmt.Sprint(c.from, c.to, c.straight, c.unidiff, c.url) }

// show returns the answer with some commits and changes.
func (c comparison) show(commits []*object.Commit, changes history.Diff) Compare {
	dots := "..."
	if c.straight {
		dots = ".."
	}
	shown := Compare{
		Commits: make([]commit.Commit, len(commits)), Diffs: diff.All(changes.Changes, c.unidiff),
		CompareTimeout: changes.TimedOut || changes.Truncated, CompareSameRef: c.from == c.to, WebURL: c.url + "/-/compare/" + c.from + dots + c.to,
	}
	for i, one := range commits {
		shown.Commits[i] = commit.Show(one, c.url)
		shown.Commit = &shown.Commits[i]
	}
	return shown
}

// comparedWith returns the project of from.
func (f *Family) comparedWith(ctx context.Context, s auth.Project, r *compareRequest) (*v1alpha1.Project, error) {
	own := s.Scope.Project
	id := r.FromProjectID.Or(own.RESTID())
	if id == own.RESTID() {
		return own, nil
	}
	scope, err := f.Guard.Relative(ctx, s, strconv.FormatInt(id, 10))
	switch {
	case errors.Is(err, catalog.ErrNotFound), errors.Is(err, auth.ErrUnrelated):
		return nil, endpoint.Message(http.StatusBadRequest, "Target project id:%d is not a fork of project id:%d", id, own.RESTID())
	case errors.Is(err, auth.ErrUnreadable):
		return nil, endpoint.Forbidden("You don't have access to this fork's parent project")
	default:
		return scope.Project, err
	}
}

// between returns the commits of to that from does not have, and the changes since from, or since the merge base unless straight is true.
func between(ctx context.Context, repo *git.Repository, from, to string, straight bool) (commits []*object.Commit, changes history.Diff, err error) {
	if from == to {
		return nil, history.Diff{}, nil
	}
	both, ctx := errgroup.WithContext(ctx)
	both.Go(func() (err error) {
		commits, err = history.CommitsBetween(ctx, repo, from, to)
		return err
	})
	both.Go(func() (err error) {
		base := from
		if !straight {
			if base, err = history.CommonAncestor(ctx, repo, to, from); err != nil {
				return err
			}
		}
		changes, err = history.Compare(ctx, repo, base, to, diff.Patience)
		return err
	})
	err = both.Wait()
	return commits, changes, err
}
