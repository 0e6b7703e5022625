package mergerequests

import (
	"context"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/item"
	"github.com/forgeplane/forgeplane/apiserver/visible"
	"github.com/forgeplane/forgeplane/internal/mergerequest"
)

func (f *Family) listOfMilestone(ctx context.Context, s auth.Project, r *item.MilestoneRequest) (endpoint.List[MergeRequest], error) {
	return f.ofMilestone(ctx, s.Subject, f.here(s.Subject), r)
}

func (f *Family) listOfGroupMilestone(ctx context.Context, s auth.Group, r *item.MilestoneRequest) (endpoint.List[MergeRequest], error) {
	in, err := f.among(ctx, s.Subject, visible.In{Group: s.Scope.Groups[0], Below: true})
	if err != nil {
		return endpoint.List[MergeRequest]{}, err
	}
	return f.ofMilestone(ctx, s.Subject, in, r)
}

// ofMilestone returns a page of the merge requests in some places that have a milestone of the project or group of the request.
func (f *Family) ofMilestone(ctx context.Context, s auth.Subject, in places, r *item.MilestoneRequest) (endpoint.List[MergeRequest], error) {
	m, err := r.Find(ctx, f.Activity.Milestones, s.Scope)
	if err != nil {
		return endpoint.List[MergeRequest]{}, err
	}
	rows, total, err := f.Activity.MergeRequests.List(ctx, mergerequest.Query{
		Projects: in.projects(), Conditions: []mergerequest.Condition{mergerequest.InMilestone(m.ID)}, Order: mergerequest.ByCreation, Page: item.PageOf(r.Paging),
	})
	if err != nil {
		return endpoint.List[MergeRequest]{}, err
	}
	return endpoint.Each(endpoint.Cut(rows, total, same), func(rows []mergerequest.MergeRequest) ([]MergeRequest, error) {
		return f.show(ctx, s, in.scopes, rows, false)
	})
}
