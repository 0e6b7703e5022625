package activity

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/forgeplane/forgeplane/api/activity/v1alpha1"
	core "github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/item"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/database"
)

type mergeRequests struct{ Options }

func (mergeRequests) blank() client.Object { return &v1alpha1.MergeRequest{} }

func (s mergeRequests) show(ctx context.Context, in projects, ids ...int64) (map[int64]client.Object, error) {
	rows, err := s.Stores.MergeRequests.WithIDs(ctx, ids...)
	if err != nil {
		return nil, err
	}
	var sources []types.UID
	n := &names{Options: s.Options}
	for _, m := range rows {
		sources = append(sources, m.Source.UID)
		n.milestones = append(n.milestones, m.MilestoneID)
	}
	from, err := s.Catalog.ProjectsWithUIDs(ctx, sources...)
	if err != nil {
		return nil, err
	}
	if err := n.read(ctx); err != nil {
		return nil, err
	}
	all := map[int64]client.Object{}
	for _, m := range rows {
		p := in[m.In.UID]
		if p == nil {
			continue // it has moved
		}
		o := &v1alpha1.MergeRequest{Spec: v1alpha1.MergeRequestSpec{
			ItemSpec: n.spec(ctx, p, m.Title, m.Author, m.Assignees, m.Labels, m.MilestoneID),
			Draft:    m.Draft, Reviewers: n.users(ctx, m.Reviewers), SourceBranch: m.SourceBranch, TargetBranch: m.TargetBranch,
		}, Status: v1alpha1.MergeRequestStatus{
			ItemStatus:  s.status(p, "merge_requests", m.IID, string(m.State), m.Created, m.Updated, m.ClosedAt),
			MergeStatus: string(m.MergeStatus), SHA: m.Head, MergeCommitSHA: m.MergeCommit, MergedAt: moment(m.MergedAt), MergedBy: n.user(ctx, m.Merger),
		}}
		if source := from[m.Source.UID]; source != nil {
			o.Spec.SourceProject = source.Status.FullPath
		}
		all[m.ID] = o
	}
	return all, n.err
}

type issues struct{ Options }

func (issues) blank() client.Object { return &v1alpha1.Issue{} }

func (s issues) show(ctx context.Context, in projects, ids ...int64) (map[int64]client.Object, error) {
	rows, err := s.Stores.Issues.WithIDs(ctx, ids...)
	if err != nil {
		return nil, err
	}
	n := &names{Options: s.Options}
	for _, i := range rows {
		n.milestones = append(n.milestones, i.MilestoneID)
	}
	if err := n.read(ctx); err != nil {
		return nil, err
	}
	all := map[int64]client.Object{}
	for _, i := range rows {
		p := in[i.In.UID]
		if p == nil {
			continue // it has moved
		}
		all[i.ID] = &v1alpha1.Issue{Spec: v1alpha1.IssueSpec{
			ItemSpec: n.spec(ctx, p, i.Title, i.Author, i.Assignees, i.Labels, i.MilestoneID),
			Type:     i.Type, Confidential: i.Confidential, DueDate: i.Due, Weight: i.Weight,
		}, Status: s.status(p, "issues", i.IID, string(i.State), i.Created, i.Updated, i.ClosedAt)}
	}
	return all, n.err
}

// status returns the part of the status that merge requests and issues share. collection is the part of the address that names their collection.
func (o Options) status(p *core.Project, collection string, iid int64, state string, created, updated, closed time.Time) v1alpha1.ItemStatus {
	return v1alpha1.ItemStatus{
		IID: iid, State: state, CreatedAt: metav1.NewTime(created), UpdatedAt: metav1.NewTime(updated), ClosedAt: moment(closed),
		WebURL: fmt.Sprintf("%s/%s/-/%s/%d", o.WebURL, p.Status.FullPath, collection, iid),
	}
}

func moment(at time.Time) *metav1.Time {
	if at.IsZero() {
		return nil
	}
	t := metav1.NewTime(at)
	return &t
}

// names finds the names of users, labels and milestones. After the first error it finds no more.
type names struct {
	Options
	// milestones are the ids of the milestones to read.
	milestones []int64
	titles     map[int64]string
	known      map[types.UID]string
	err        error
}

// read reads the titles of the milestones.
func (n *names) read(ctx context.Context) error {
	n.titles, n.known = map[int64]string{}, map[types.UID]string{}
	found, err := n.Stores.Milestones.WithIDs(ctx, n.milestones...)
	for id, m := range found {
		n.titles[id] = m.Title
	}
	return err
}

func (n *names) spec(ctx context.Context, p *core.Project, title string, author database.User, assignees []database.User, labels []database.Label, milestone int64) v1alpha1.ItemSpec {
	return v1alpha1.ItemSpec{
		ProjectRef: v1alpha1.ProjectReference{Name: p.Name}, Title: title,
		Author: n.user(ctx, author), Assignees: n.users(ctx, assignees), Labels: n.labels(ctx, labels), Milestone: n.titles[milestone],
	}
}

// user returns the username of a user, or an empty string if the user does not exist.
func (n *names) user(ctx context.Context, u database.User) string {
	if name, is := n.known[u.UID]; is || u.UID == "" || n.err != nil {
		return name
	}
	found, err := item.Users(ctx, n.Catalog, n.WebURL, u)
	if n.err = err; found[u.UID] != nil {
		n.known[u.UID] = found[u.UID].Username
	}
	return n.known[u.UID]
}

func (n *names) users(ctx context.Context, users []database.User) (all []string) {
	for _, u := range users {
		if name := n.user(ctx, u); name != "" {
			all = append(all, name)
		}
	}
	return all
}

func (n *names) labels(ctx context.Context, labels []database.Label) (all []string) {
	for _, l := range labels {
		if _, is := n.known[l.UID]; !is && n.err == nil {
			n.known[l.UID], n.err = n.label(ctx, l)
		}
		if title := n.known[l.UID]; title != "" {
			all = append(all, title)
		}
	}
	return all
}

// label returns the title of a label, or an empty string if the label does not exist.
func (n *names) label(ctx context.Context, l database.Label) (string, error) {
	declared, err := catalog.ByID[*core.Label](ctx, n.Catalog, l.ID)
	if errors.Is(err, catalog.ErrNotFound) || err == nil && declared.UID != l.UID {
		return "", nil // another one can have the id
	}
	if err != nil {
		return "", err
	}
	return declared.Spec.Title, nil
}
