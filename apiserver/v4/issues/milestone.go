package issues

import (
	"context"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/item"
	"github.com/forgeplane/forgeplane/apiserver/visible"
	"github.com/forgeplane/forgeplane/internal/issue"
)

func (f *Family) listOfMilestone(ctx context.Context, s auth.Project, r *item.MilestoneRequest) (endpoint.List[Issue], error) {
	return f.ofMilestone(ctx, s.Subject, item.SeenHere(s.Subject), r)
}

func (f *Family) listOfGroupMilestone(ctx context.Context, s auth.Group, r *item.MilestoneRequest) (endpoint.List[Issue], error) {
	seen, err := item.SeenIn(ctx, f.Visible, s.Subject, visible.In{Group: s.Scope.Groups[0], Below: true})
	if err != nil {
		return endpoint.List[Issue]{}, err
	}
	return f.ofMilestone(ctx, s.Subject, seen, r)
}

// ofMilestone returns a page of the issues that have a milestone of the project or group of the request.
func (f *Family) ofMilestone(ctx context.Context, s auth.Subject, seen item.Seen, r *item.MilestoneRequest) (endpoint.List[Issue], error) {
	m, err := r.Find(ctx, f.Activity.Milestones, s.Scope)
	if err != nil {
		return endpoint.List[Issue]{}, err
	}
	q := issue.Query{Seen: seen.Seen, Conditions: []issue.Condition{issue.InMilestone(m.ID)}, Order: issue.ByCreation, Page: item.PageOf(r.Paging)}
	rows, total, err := f.Activity.Issues.List(ctx, q)
	if err != nil {
		return endpoint.List[Issue]{}, err
	}
	return endpoint.Each(endpoint.Cut(rows, total, func(i issue.Issue) issue.Issue { return i }), func(rows []issue.Issue) ([]Issue, error) {
		return f.show(ctx, s, seen.Scopes, rows, false)
	})
}
