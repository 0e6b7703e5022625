package labels

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/item"
	"github.com/forgeplane/forgeplane/apiserver/visible"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/labeling"
)

// Counts are the numbers of issues and merge requests with a label in a project, or in the projects below a group, which the caller sees.
type Counts struct {
	OpenIssues        int64 `json:"open_issues_count"`
	ClosedIssues      int64 `json:"closed_issues_count"`
	OpenMergeRequests int64 `json:"open_merge_requests_count"`
}

// row returns a label in the form of rows.
func row(l *v1alpha1.Label) database.Label { return database.Label{ID: l.RESTID(), UID: l.UID} }

// labeled are the labels of the items that can have labels.
func (f *Family) labeled() []labeling.Rows {
	return []labeling.Rows{f.Activity.Issues.Labels(), f.Activity.MergeRequests.Labels(), f.Activity.Epics.Labels()}
}

// count returns the counts of labels by their UIDs. It omits labels with zero counts.
func (f *Family) count(ctx context.Context, s auth.Subject, of []entry) (map[types.UID]Counts, error) {
	seen, projects, err := f.counted(ctx, s)
	if err != nil {
		return nil, err
	}
	uids := make([]types.UID, len(of))
	for i, e := range of {
		uids[i] = e.UID
	}
	issues, err := f.Activity.Issues.CountLabels(ctx, seen.Seen, uids...)
	if err != nil {
		return nil, err
	}
	requests, err := f.Activity.MergeRequests.CountLabels(ctx, projects, uids...)
	counts := make(map[types.UID]Counts, len(issues))
	for uid, n := range issues {
		counts[uid] = Counts{OpenIssues: n.Open, ClosedIssues: n.Closed}
	}
	for uid, n := range requests {
		c := counts[uid]
		c.OpenMergeRequests = n
		counts[uid] = c
	}
	return counts, err
}

// counted returns the issues that the caller sees in a project or below a group, and the projects there whose merge requests the caller sees.
func (f *Family) counted(ctx context.Context, s auth.Subject) (seen item.Seen, requests []types.UID, err error) {
	if s.Scope.Project != nil {
		if s.Has(s.Access, auth.ReadMergeRequests) {
			requests = []types.UID{s.Scope.Project.UID}
		}
		return item.SeenHere(s), requests, nil
	}
	in := visible.In{Group: s.Scope.Groups[0], Below: true}
	if seen, err = item.SeenIn(ctx, f.Visible, s, in); err != nil {
		return seen, nil, err
	}
	projects, err := item.ProjectsIn(ctx, f.Visible, s, in, auth.ReadMergeRequests)
	for _, p := range projects {
		requests = append(requests, p.Project.UID)
	}
	return seen, requests, err
}
