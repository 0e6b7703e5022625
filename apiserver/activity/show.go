package activity

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/forgeplane/forgeplane/api/activity/v1alpha1"
	core "github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/database"
)

// row has the columns that merge requests and issues share.
type row struct {
	project                  types.UID
	iid, milestone           int64
	title, state             string
	author                   database.User
	assignees                []database.User
	labels                   []database.Label
	created, updated, closed time.Time
}

type mergeRequests struct{ Options }

func (mergeRequests) blank() client.Object { return &v1alpha1.MergeRequest{} }

func (s mergeRequests) show(ctx context.Context, in projects, ids ...int64) (map[int64]client.Object, error) {
	rows, err := s.Stores.MergeRequests.WithIDs(ctx, ids...)
	if err != nil {
		return nil, err
	}
	items, users, sources := make([]row, len(rows)), []database.User{}, make([]types.UID, len(rows))
	for n, m := range rows {
		items[n] = row{m.In.UID, m.IID, m.MilestoneID, m.Title, string(m.State), m.Author, m.Assignees, m.Labels, m.Created, m.Updated, m.ClosedAt}
		users, sources[n] = append(append(users, m.Merger), m.Reviewers...), m.Source.UID
	}
	r, err := s.related(ctx, in, items, users...)
	if err != nil {
		return nil, err
	}
	from, err := s.Catalog.ProjectsWithUIDs(ctx, sources...)
	if err != nil {
		return nil, err
	}
	all := map[int64]client.Object{}
	for n, m := range rows {
		p := in[m.In.UID]
		if p == nil {
			continue // it has moved
		}
		o := &v1alpha1.MergeRequest{Spec: v1alpha1.MergeRequestSpec{
			ItemSpec: r.spec(p, items[n]), Draft: m.Draft, Reviewers: r.usernames(m.Reviewers), SourceBranch: m.SourceBranch, TargetBranch: m.TargetBranch,
		}, Status: v1alpha1.MergeRequestStatus{
			ItemStatus: s.status(p, "merge_requests", items[n]), MergeStatus: string(m.MergeStatus),
			SHA: m.Head, MergeCommitSHA: m.MergeCommit, MergedAt: moment(m.MergedAt), MergedBy: r.username(m.Merger),
		}}
		if source := from[m.Source.UID]; source != nil {
			o.Spec.SourceProject = source.Status.FullPath
		}
		all[m.ID] = o
	}
	return all, nil
}

type issues struct{ Options }

func (issues) blank() client.Object { return &v1alpha1.Issue{} }

func (s issues) show(ctx context.Context, in projects, ids ...int64) (map[int64]client.Object, error) {
	rows, err := s.Stores.Issues.WithIDs(ctx, ids...)
	if err != nil {
		return nil, err
	}
	items := make([]row, len(rows))
	for n, i := range rows {
		items[n] = row{i.In.UID, i.IID, i.MilestoneID, i.Title, string(i.State), i.Author, i.Assignees, i.Labels, i.Created, i.Updated, i.ClosedAt}
	}
	r, err := s.related(ctx, in, items)
	if err != nil {
		return nil, err
	}
	all := map[int64]client.Object{}
	for n, i := range rows {
		p := in[i.In.UID]
		if p == nil {
			continue // it has moved
		}
		all[i.ID] = &v1alpha1.Issue{Spec: v1alpha1.IssueSpec{
			ItemSpec: r.spec(p, items[n]), Type: i.Type, Confidential: i.Confidential, DueDate: i.Due, Weight: i.Weight,
		}, Status: s.status(p, "issues", items[n])}
	}
	return all, nil
}

// status returns the part of the status that merge requests and issues share. collection is the part of the address that names their collection.
func (o Options) status(p *core.Project, collection string, i row) v1alpha1.ItemStatus {
	return v1alpha1.ItemStatus{
		IID: i.iid, State: i.state, CreatedAt: metav1.NewTime(i.created), UpdatedAt: metav1.NewTime(i.updated), ClosedAt: moment(i.closed),
		WebURL: fmt.Sprintf("%s/%s/-/%s/%d", o.WebURL, p.Status.FullPath, collection, i.iid),
	}
}

func moment(at time.Time) *metav1.Time {
	if at.IsZero() {
		return nil
	}
	t := metav1.NewTime(at)
	return &t
}
