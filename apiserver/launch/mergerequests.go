package launch

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/item"
	"github.com/forgeplane/forgeplane/apiserver/ref"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/ci/config"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/history"
	"github.com/forgeplane/forgeplane/internal/git/object"
	"github.com/forgeplane/forgeplane/internal/mergecheck"
	"github.com/forgeplane/forgeplane/internal/mergerequest"
	"github.com/forgeplane/forgeplane/internal/pipeline"
)

// maxMergeRequests is the maximum number of merge requests of a branch that a push creates pipelines for.
const maxMergeRequests = 10

// OfMergeRequest returns the request for a pipeline that is about the last version of a merge request. It is a pipeline of the source project. The error is
// catalog.ErrNotFound if that is gone.
func (l *Launcher) OfMergeRequest(ctx context.Context, m mergerequest.MergeRequest, by auth.Caller) (Request, error) {
	in, err := l.Guard.Project(ctx, fmt.Sprint(m.Source.ID))
	if err == nil && in.Project.UID != m.Source.UID {
		err = catalog.ErrNotFound
	}
	return Request{In: in, By: by, Ref: m.SourceBranch, SHA: m.Head, Source: SourceMergeRequest, MergeRequest: &m}, err
}

// Opened creates the pipeline of a merge request that was opened, if the configuration wants one and its author can run it.
func (l *Launcher) Opened(ctx context.Context, m mergerequest.MergeRequest, by auth.Caller) error {
	r, err := l.OfMergeRequest(ctx, m, by)
	if err != nil || m.Head == "" {
		return ignoreGone(err)
	}
	if may, err := l.Permitted(ctx, r); err != nil || !may {
		return err
	}
	r.Origin = fmt.Sprintf("merge-request/%d/%s", m.ID, m.Head)
	_, err = l.Launch(ctx, r)
	return ignoreGone(ignorePlan(err))
}

// mergeRequests creates the pipelines of the open merge requests of a branch after a push.
func (p *Pushes) mergeRequests(ctx context.Context, of Request, repo *git.Repository) error {
	some, err := p.Activity.MergeRequests.OpenFrom(ctx, of.In.Project.UID, of.Ref, maxMergeRequests)
	if err != nil || len(some) == 0 {
		return err
	}
	now, err := repo.Objects(ctx, ref.Branches+of.Ref)
	if err != nil || now[0].ID != of.SHA { // another push has its own pipelines
		return err
	}
	head, err := repo.ReadCommit(ctx, of.SHA)
	if err != nil {
		return err
	}
	for _, m := range some {
		err = errors.Join(err, ignorePlan(p.pushed(ctx, of, m, repo, head)))
	}
	return err
}

// pushed creates the pipeline of a merge request after a push, and cancels those of former commits.
func (p *Pushes) pushed(ctx context.Context, of Request, m mergerequest.MergeRequest, repo *git.Repository, head *object.Commit) (err error) {
	if m.Base, err = base(ctx, repo, m, of.SHA); err != nil {
		return err
	}
	of.Source, of.Before, of.MergeRequest, of.Origin = SourceMergeRequest, "", &m, fmt.Sprintf("merge-request/%d/%s", m.ID, of.SHA)
	row, err := p.launch(ctx, of, repo, head)
	if err == nil {
		_, err = p.Activity.Pipelines.CancelRedundant(ctx, row)
	}
	return err
}

// base returns the commit with which rules compare a pushed commit of a merge request. The merge request has the base of its last version until the
// next check. It is also used for forks, whose repository does not have the target branch.
func base(ctx context.Context, repo *git.Repository, m mergerequest.MergeRequest, pushed string) (string, error) {
	if m.In.UID != m.Source.UID {
		return m.Base, nil
	}
	target, err := repo.Objects(ctx, ref.Branches+m.TargetBranch)
	if err != nil || target[0].ID == "" {
		return m.Base, err
	}
	return history.CommonAncestor(ctx, repo, pushed, target[0].ID)
}

// mergeRequest returns the merge request that a pipeline is about; nil without one.
func (l *Launcher) mergeRequest(ctx context.Context, p pipeline.Pipeline) (*mergerequest.MergeRequest, error) {
	if p.MergeRequest == 0 {
		return nil, nil
	}
	m, err := l.Activity.MergeRequests.WithID(ctx, p.MergeRequest)
	if errors.Is(err, mergerequest.ErrNotFound) {
		return nil, nil
	}
	return &m, err
}

// maxListed is the maximum number of merge requests in CI_OPEN_MERGE_REQUESTS.
const maxListed = 4

// openMergeRequests returns the predefined variable about the open merge requests from the branch of a pipeline, if there are any that the user sees.
func (l *Launcher) openMergeRequests(ctx context.Context, r Request) ([]config.Variable, error) {
	if r.Tag {
		return nil, nil
	}
	open, err := l.Activity.MergeRequests.OpenFrom(ctx, r.In.Project.UID, r.Ref, maxListed)
	if err != nil {
		return nil, err
	}
	var listed []string
	for _, m := range open {
		into, err := l.target(ctx, m, r.By)
		if errors.Is(err, catalog.ErrNotFound) {
			continue
		} else if err != nil {
			return nil, err
		}
		listed = append(listed, fmt.Sprintf("%s!%d", into.Path(), m.IID))
	}
	if len(listed) == 0 {
		return nil, nil
	}
	return []config.Variable{{Key: "CI_OPEN_MERGE_REQUESTS", Value: strings.Join(listed, ",")}}, nil
}

// target returns the project that a merge request is in. The error is catalog.ErrNotFound if it is gone, or the caller cannot see it.
func (l *Launcher) target(ctx context.Context, m mergerequest.MergeRequest, by auth.Caller) (catalog.Scope, error) {
	in, err := l.Guard.Project(ctx, fmt.Sprint(m.In.ID))
	if err == nil && in.Project.UID != m.In.UID {
		err = catalog.ErrNotFound
	}
	if err == nil {
		_, err = l.Guard.Visible(ctx, by, in)
	}
	return in, err
}

// labels returns the predefined variable about the labels of a merge request, if it has any.
func (l *Launcher) labels(ctx context.Context, m mergerequest.MergeRequest, by auth.Caller) ([]config.Variable, error) {
	if len(m.Labels) == 0 {
		return nil, nil
	}
	in, err := l.target(ctx, m, by)
	if err != nil {
		return nil, catalog.IgnoreNotFound(err)
	}
	known, err := item.InForce(ctx, l.Catalog, map[types.UID]catalog.Scope{m.In.UID: in})
	titles := known.Titles(m.In.UID, m.Labels)
	if err != nil || len(titles) == 0 {
		return nil, err
	}
	return []config.Variable{{Key: "CI_MERGE_REQUEST_LABELS", Value: strings.Join(titles, ",")}}, nil
}

// ofMergeRequest returns the predefined variables about the merge request of a pipeline.
func (l *Launcher) ofMergeRequest(ctx context.Context, r Request) ([]config.Variable, error) {
	m := r.MergeRequest
	if m == nil {
		return nil, nil
	}
	all := []config.Variable{
		{Key: "CI_MERGE_REQUEST_ID", Value: strconv.FormatInt(m.ID, 10)}, {Key: "CI_MERGE_REQUEST_IID", Value: strconv.FormatInt(m.IID, 10)},
		{Key: "CI_MERGE_REQUEST_REF_PATH", Value: mergecheck.Head(m.IID)}, {Key: "CI_MERGE_REQUEST_EVENT_TYPE", Value: "detached"},
		{Key: "CI_MERGE_REQUEST_TITLE", Value: m.Title}, {Key: "CI_MERGE_REQUEST_DRAFT", Value: strconv.FormatBool(m.Draft)},
		{Key: "CI_MERGE_REQUEST_SOURCE_BRANCH_NAME", Value: m.SourceBranch}, {Key: "CI_MERGE_REQUEST_TARGET_BRANCH_NAME", Value: m.TargetBranch},
		{Key: "CI_MERGE_REQUEST_SOURCE_PROJECT_ID", Value: strconv.FormatInt(m.Source.ID, 10)}, {Key: "CI_MERGE_REQUEST_PROJECT_ID", Value: strconv.FormatInt(m.In.ID, 10)},
		{Key: "CI_MERGE_REQUEST_SOURCE_PROJECT_PATH", Value: r.In.Path()}, {Key: "CI_MERGE_REQUEST_SOURCE_PROJECT_URL", Value: l.WebURL + "/" + r.In.Path()},
		{Key: "CI_MERGE_REQUEST_DIFF_BASE_SHA", Value: m.Base},
	}
	labels, err := l.labels(ctx, *m, r.By)
	return append(all, labels...), err
}
