package mergerequests

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/item"
	"github.com/forgeplane/forgeplane/apiserver/ref"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/history"
	"github.com/forgeplane/forgeplane/internal/git/refs"
	"github.com/forgeplane/forgeplane/internal/mergerequest"
)

// maxSearched is the number of merge requests whose commits are searched for one. They are the newest of the project.
const maxSearched = 1000

// searchPatience limits the time for searching them.
const searchPatience = 10 * time.Second

type ofCommitRequest struct {
	endpoint.Paging
	SHA string `param:"sha" doc:"A branch, tag or commit."`
}

func (f *Family) ofCommit(ctx context.Context, s auth.Project, r *ofCommitRequest) (none endpoint.List[MergeRequest], err error) {
	repo, err := f.Repositories.Content(ctx, s.Scope.Project)
	var id string
	if err == nil {
		id, err = refs.Commit(ctx, repo, r.SHA)
	}
	if ref.Missing(err) {
		return none, endpoint.NotFound("Commit")
	} else if err != nil {
		return none, err
	}
	uid := s.Scope.Project.UID
	iids, err := f.having(ctx, repo, uid, id)
	if err != nil {
		return none, err
	}
	page, total, err := f.Activity.MergeRequests.List(ctx, mergerequest.Query{
		Projects: []types.UID{uid}, Conditions: []mergerequest.Condition{mergerequest.Numbered(iids...)}, Order: mergerequest.ByCreation, Page: item.PageOf(r.Paging),
	})
	if err != nil {
		return none, err
	}
	shown, err := f.show(ctx, s.Subject, map[types.UID]catalog.Scope{uid: s.Scope}, page, false)
	return endpoint.Cut(shown, total, func(m MergeRequest) MergeRequest { return m }), err
}

// having returns the iids of the merge requests of a project that have a commit, or whose merge made it.
func (f *Family) having(ctx context.Context, repo *git.Repository, project types.UID, id string) (iids []int64, err error) {
	merged, err := f.Activity.MergeRequests.MergedWith(ctx, project, []string{id})
	if err != nil {
		return nil, err
	}
	for _, m := range merged {
		iids = append(iids, m.IID)
	}
	newest, err := f.Activity.MergeRequests.Newest(ctx, project, maxSearched)
	if err != nil || len(newest) == 0 {
		return iids, err
	}
	var ends []string
	for _, m := range newest {
		ends = append(ends, m.Head)
		if m.Base != "" {
			ends = append(ends, m.Base)
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, searchPatience, fmt.Errorf("searching merge requests took longer than %s: %w", searchPatience, git.ErrBusy))
	defer cancel()
	after, err := history.Descendants(ctx, repo, id, ends...)
	for _, m := range newest {
		if after[m.Head] && !after[m.Base] && !slices.Contains(iids, m.IID) {
			iids = append(iids, m.IID)
		}
	}
	return iids, err
}
