package mergerequests

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/item"
	"github.com/forgeplane/forgeplane/apiserver/visible"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/feature"
	"github.com/forgeplane/forgeplane/internal/mergerequest"
)

// listTable lists the endpoints of lists.
func (f *Family) listTable() endpoint.Table {
	return endpoint.Table{
		endpoint.Get("/merge_requests", f.list).Asks(auth.ReadMergeRequests).Anonymous(endpoint.Served).
			Doc("List the merge requests that the caller has written; with other scopes, those that the caller is assigned to or sees."),
		endpoint.Get("/groups/{id}/merge_requests", f.listInGroup).Needs(auth.ReadGroup).Asks(auth.ReadMergeRequests).Anonymous(endpoint.Served).
			Doc("List the merge requests of the projects of a group and of its subgroups."),
		endpoint.Get(ofProject, f.listInProject).Needs(auth.ReadMergeRequests).Anonymous(endpoint.Served).
			Doc("List the merge requests of a project."),
		endpoint.Get("/projects/{id}/milestones/{milestone_id}/merge_requests", f.listOfMilestone).Needs(auth.ReadMergeRequests).Anonymous(endpoint.Served).
			Doc("List the merge requests of a milestone of a project."),
		endpoint.Get("/groups/{id}/milestones/{milestone_id}/merge_requests", f.listOfGroupMilestone).Needs(auth.ReadGroupMilestones).Asks(auth.ReadMergeRequests).
			Anonymous(endpoint.Served).Doc("List the merge requests of a milestone of a group."),
	}
}

// filters select merge requests.
type filters struct {
	State            string                       `param:"state" values:"opened,closed,locked,merged,all" default:"all" doc:"Only merge requests in this state."`
	Labels           endpoint.Either[[]string]    `param:"labels" comma:"" words:"None,Any" doc:"Titles of labels, all of which the merge requests have; None or Any for merge requests without or with a label."`
	WithDetails      bool                         `param:"with_labels_details" doc:"Whether labels are shown as objects."`
	Milestone        endpoint.Either[string]      `param:"milestone" words:"None,Any" doc:"Title of the milestone; None or Any for merge requests without or with one."`
	AuthorID         endpoint.Optional[int64]     `param:"author_id" atMostOne:"author" doc:"Id of the author."`
	AuthorUsername   endpoint.Optional[string]    `param:"author_username" atMostOne:"author" doc:"Username of the author."`
	AssigneeID       endpoint.Either[int64]       `param:"assignee_id" words:"None,Any" atMostOne:"assignee" doc:"Id of an assignee; None or Any for merge requests without or with one."`
	AssigneeUsername endpoint.Either[[]string]    `param:"assignee_username" comma:"" words:"None,Any" atMostOne:"assignee" doc:"Usernames of users who are all assigned; None or Any for merge requests without or with an assignee."`
	ReviewerID       endpoint.Either[int64]       `param:"reviewer_id" words:"None,Any" atMostOne:"reviewer" doc:"Id of a reviewer; None or Any for merge requests without or with one."`
	ReviewerUsername endpoint.Either[[]string]    `param:"reviewer_username" comma:"" words:"None,Any" atMostOne:"reviewer" doc:"Usernames of users who all review; None or Any for merge requests without or with a reviewer."`
	ApprovedByIDs    endpoint.Either[[]int64]     `param:"approved_by_ids" comma:"" words:"None,Any" doc:"Ids of users who have all approved, at most 5; None or Any for merge requests without or with an approval."`
	ApproverIDs      endpoint.Either[[]int64]     `param:"approver_ids" comma:"" words:"None,Any" doc:"Ids of users whom the approval rules all name as approvers, not counting groups; None or Any for merge requests without or with one."`
	Approved         string                       `param:"approved" values:"yes,no" doc:"Whether the merge requests have all required approvals. Only the approvals of its users count for a rule with groups, and approvals by committers count. Ignored unless the feature mr_approved_filter is on."`
	MyReaction       endpoint.Either[string]      `param:"my_reaction_emoji" words:"None,Any" doc:"Emoji that the caller has given; None or Any for merge requests without or with one."`
	IIDs             []int64                      `param:"iids" comma:"" doc:"Internal ids."`
	SourceBranch     string                       `param:"source_branch" doc:"Name of the source branch."`
	TargetBranch     string                       `param:"target_branch" doc:"Name of the target branch."`
	WIP              string                       `param:"wip" values:"yes,no" doc:"Only drafts, or only others."`
	Search           string                       `param:"search" doc:"Part of the title or description, in any case."`
	In               []string                     `param:"in" comma:"" values:"title,description" doc:"Where the search looks, by default in both."`
	CreatedAfter     endpoint.Optional[time.Time] `param:"created_after" doc:"Only merge requests that were created at this time or later."`
	CreatedBefore    endpoint.Optional[time.Time] `param:"created_before" doc:"Only merge requests that were created at this time or earlier."`
	UpdatedAfter     endpoint.Optional[time.Time] `param:"updated_after" doc:"Only merge requests that last changed at this time or later."`
	UpdatedBefore    endpoint.Optional[time.Time] `param:"updated_before" doc:"Only merge requests that last changed at this time or earlier."`
	Environment      string                       `param:"environment" doc:"Only merge requests that were deployed to the environment with this name."`
	DeployedAfter    endpoint.Optional[time.Time] `param:"deployed_after" doc:"Only merge requests that were deployed at this time or later."`
	DeployedBefore   endpoint.Optional[time.Time] `param:"deployed_before" doc:"Only merge requests that were deployed at this time or earlier."`
	Recheck          bool                         `param:"with_merge_status_recheck" doc:"Whether to bring the merge_status of the listed open merge requests up to date in the background. With the feature restrict_merge_status_recheck, only for callers who are at least Developers."`
	Not              negative                     `param:"not" doc:"Filters that must not apply to the merge requests."`
	View             string                       `param:"view" values:"simple" doc:"Whether to show the merge requests without their details."`
	OrderBy          string                       `param:"order_by" values:"created_at,title,updated_at" default:"created_at" doc:"Field that orders the list."`
	Sort             string                       `param:"sort" values:"asc,desc" default:"desc" doc:"Whether the order goes up or down."`
}

// negative are filters that must not apply.
type negative struct {
	Labels           []string                  `param:"labels" comma:"" doc:"Titles of labels that the merge requests do not have."`
	Milestone        endpoint.Optional[string] `param:"milestone" doc:"Title of a milestone."`
	AuthorID         []int64                   `param:"author_id" comma:"" doc:"Ids of users."`
	AuthorUsername   []string                  `param:"author_username" comma:"" doc:"Usernames."`
	AssigneeID       []int64                   `param:"assignee_id" comma:"" doc:"Ids of users who are not assigned."`
	AssigneeUsername []string                  `param:"assignee_username" comma:"" doc:"Usernames of users who are not assigned."`
	ReviewerID       []int64                   `param:"reviewer_id" comma:"" doc:"Ids of users who do not review."`
	ReviewerUsername []string                  `param:"reviewer_username" comma:"" doc:"Usernames of users who do not review."`
	MyReaction       []string                  `param:"my_reaction_emoji" comma:"" doc:"Emoji that the caller has not given."`
}

// maxApprovedBy is the maximum number of users in the filter approved_by_ids.
const maxApprovedBy = 5

type listRequest struct {
	endpoint.Paging
	filters
	Scope string `param:"scope" values:"created_by_me,created-by-me,assigned_to_me,assigned-to-me,all" default:"created_by_me" doc:"Whether merge requests that the caller has written or is assigned to, or all that the caller sees."`
}

func (f *Family) list(ctx context.Context, s auth.Instance, r *listRequest) (endpoint.List[Listed], error) {
	if s.Caller.Anonymous() && r.Scope != "all" {
		return endpoint.List[Listed]{}, endpoint.Unauthorized("")
	}
	in, err := f.among(ctx, s.Subject, visible.In{})
	if err != nil {
		return endpoint.List[Listed]{}, err
	}
	return f.page(ctx, s.Subject, in, r.Paging, r.filters, r.Scope)
}

type listInRequest struct {
	endpoint.Paging
	filters
	Scope string `param:"scope" values:"created_by_me,created-by-me,assigned_to_me,assigned-to-me,all" default:"all" doc:"Whether only merge requests that the caller has written or is assigned to."`
}

func (f *Family) listInGroup(ctx context.Context, s auth.Group, r *listInRequest) (endpoint.List[Listed], error) {
	in, err := f.among(ctx, s.Subject, visible.In{Group: s.Scope.Groups[0], Below: true})
	if err != nil {
		return endpoint.List[Listed]{}, err
	}
	return f.page(ctx, s.Subject, in, r.Paging, r.filters, r.Scope)
}

func (f *Family) listInProject(ctx context.Context, s auth.Project, r *listInRequest) (endpoint.List[Listed], error) {
	return f.page(ctx, s.Subject, f.here(s.Subject), r.Paging, r.filters, r.Scope)
}

// places are the projects whose merge requests a list can have, by their UIDs.
type places struct {
	scopes map[types.UID]catalog.Scope
	// label finds the labels that the merge requests can have.
	label item.LabelFinder
}

// projects returns the UIDs of the projects.
func (in places) projects() []types.UID { return slices.Collect(maps.Keys(in.scopes)) }

// among returns the projects in a place whose merge requests the caller sees.
func (f *Family) among(ctx context.Context, s auth.Subject, in visible.In) (places, error) {
	all, err := item.ProjectsIn(ctx, f.Visible, s, in, auth.ReadMergeRequests)
	scopes := make(map[types.UID]catalog.Scope, len(all))
	for _, p := range all {
		scopes[p.Project.UID] = p.Scope
	}
	return places{scopes, f.labels.Anywhere}, err
}

// here returns the project of a request.
func (f *Family) here(s auth.Subject) places {
	return places{map[types.UID]catalog.Scope{s.Scope.Project.UID: s.Scope}, f.labels.Within(s.Scope)}
}

// page returns a page of the merge requests in some places.
func (f *Family) page(ctx context.Context, s auth.Subject, in places, p endpoint.Paging, r filters, scope string) (endpoint.List[Listed], error) {
	viewer := item.Viewer(s)
	all, err := f.conditions(ctx, viewer, in, r)
	if err != nil {
		return endpoint.List[Listed]{}, err
	}
	all = append(all, item.Among(scope, mergerequest.By(viewer), mergerequest.AssignedTo(viewer))...)
	if err := item.CheckFilters(all); err != nil {
		return endpoint.List[Listed]{}, err
	}
	q := mergerequest.Query{Projects: in.projects(), Conditions: all, Order: mergerequest.Order(r.OrderBy), Ascending: r.Sort == "asc"}
	if q.Page, err = f.items.Page(ctx, mergerequest.Kind, q.Projects, p, r.alone()); err != nil {
		return endpoint.List[Listed]{}, err
	}
	rows, total, err := f.Activity.MergeRequests.List(ctx, q)
	if err != nil {
		return endpoint.List[Listed]{}, err
	}
	if r.Recheck {
		if err := f.recheck(ctx, s, in, rows); err != nil {
			return endpoint.List[Listed]{}, err
		}
	}
	return endpoint.Each(endpoint.Cut(rows, total, same), func(rows []mergerequest.MergeRequest) ([]Listed, error) {
		if r.View == "simple" {
			return f.showSimple(in.scopes, rows), nil
		}
		shown, err := f.show(ctx, s, in.scopes, rows, r.WithDetails)
		return inList(shown), err
	})
}

// alone reports whether the filters are about merge requests alone, and not about what can change without them: approval rules, the titles of
// milestones and deployments.
func (r filters) alone() bool {
	return !r.Milestone.Set && !r.ApproverIDs.Set && r.Approved == "" && r.Environment == "" && !sent(r.DeployedAfter) && !sent(r.DeployedBefore) &&
		!r.Not.Milestone.Set
}

func same(m mergerequest.MergeRequest) mergerequest.MergeRequest { return m }

// conditions translates the filters of a request.
func (f *Family) conditions(ctx context.Context, viewer types.UID, in places, r filters) ([]mergerequest.Condition, error) {
	all := item.OrWord(item.Nonempty(r.Milestone), mergerequest.Planned(), mergerequest.PlannedFor)
	add := func(more ...mergerequest.Condition) { all = append(all, more...) }
	if r.State != "all" {
		add(mergerequest.Is(mergerequest.State(r.State)))
	}
	if len(r.IIDs) > 0 {
		add(mergerequest.Numbered(r.IIDs...))
	}
	if r.SourceBranch != "" {
		add(mergerequest.From(r.SourceBranch))
	}
	if r.TargetBranch != "" {
		add(mergerequest.Into(r.TargetBranch))
	}
	if r.WIP != "" {
		add(item.Is(mergerequest.Drafts(), r.WIP == "yes"))
	}
	if r.Search != "" {
		add(mergerequest.Containing(r.Search, item.Part(r.In)))
	}
	if r.Environment != "" || sent(r.DeployedAfter) || sent(r.DeployedBefore) {
		add(mergerequest.DeployedTo(r.Environment, r.DeployedAfter.Value, r.DeployedBefore.Value))
	}
	add(item.OrWord(item.Nonempty(r.MyReaction), mergerequest.ReactedTo(viewer, ""), func(name string) mergerequest.Condition {
		return mergerequest.ReactedTo(viewer, name)
	})...)
	add(slices.Concat(item.When(r.CreatedAfter, mergerequest.Created.Since), item.When(r.CreatedBefore, mergerequest.Created.Until),
		item.When(r.UpdatedAfter, mergerequest.Updated.Since), item.When(r.UpdatedBefore, mergerequest.Updated.Until))...)
	if r.Labels.Word != "" {
		add(item.Is(mergerequest.Labeled(), r.Labels.Word == item.AnyWord))
	}
	labels, err := item.Labeled(ctx, in.label, r.Labels.Value, mergerequest.LabeledWith)
	if err != nil {
		return nil, err
	}
	people, err := f.people(ctx, r)
	if err != nil {
		return nil, err
	}
	approvals, err := f.approvedBy(ctx, in, r)
	if err != nil {
		return nil, err
	}
	negative, err := f.negative(ctx, viewer, in, r.Not)
	return slices.Concat(all, labels, people, approvals, negative), err
}

func sent(t endpoint.Optional[time.Time]) bool { return t.Set && !t.Null }

// people returns the conditions on the author, the assignees and the reviewers.
func (f *Family) people(ctx context.Context, r filters) ([]mergerequest.Condition, error) {
	author, err := item.By(ctx, f.Catalog, r.AuthorID, r.AuthorUsername, mergerequest.By)
	if err != nil {
		return nil, err
	}
	assignees, err := item.AssignedTo(ctx, f.Catalog, r.AssigneeID, r.AssigneeUsername, mergerequest.Assigned(), mergerequest.AssignedTo)
	if err != nil {
		return nil, err
	}
	reviewers, err := item.AssignedTo(ctx, f.Catalog, r.ReviewerID, r.ReviewerUsername, mergerequest.Reviewed(), mergerequest.ReviewedBy)
	return slices.Concat(author, assignees, reviewers), err
}

// approvedBy returns the conditions on the approvals and the approvers.
func (f *Family) approvedBy(ctx context.Context, in places, r filters) (all []mergerequest.Condition, err error) {
	if r.ApproverIDs.Word != "" {
		all = append(all, item.Is(mergerequest.NamingApprover(), r.ApproverIDs.Word == item.AnyWord))
	}
	for _, id := range r.ApproverIDs.Value {
		known, err := item.UserUIDs(ctx, f.Catalog, id)
		if err != nil {
			return nil, err
		}
		all = append(all, mergerequest.NamingApprovers(known...))
	}
	if r.ApprovedByIDs.Word != "" {
		all = append(all, item.Is(mergerequest.Approved(), r.ApprovedByIDs.Word == item.AnyWord))
	}
	if len(r.ApprovedByIDs.Value) > maxApprovedBy {
		return nil, endpoint.Parameters(fmt.Sprintf("approved_by_ids is too long (maximum is %d)", maxApprovedBy))
	}
	for _, id := range r.ApprovedByIDs.Value {
		known, err := item.UserUIDs(ctx, f.Catalog, id)
		if err != nil {
			return nil, err
		}
		all = append(all, mergerequest.ApprovedBy(known...))
	}
	if r.Approved == "" {
		return all, nil
	}
	on, err := f.Features.Enabled(ctx, feature.MergeRequestApprovedFilter)
	if err != nil || !on {
		return all, err
	}
	asked, err := f.asked(ctx, in)
	return append(all, item.Is(mergerequest.FullyApproved(asked...), r.Approved == "yes")), err
}

// maxAsked is the maximum number of requirements of projects in the filter approved.
const maxAsked = 500

// asked returns the requirements of the projects of some places for approvals.
func (f *Family) asked(ctx context.Context, in places) (all []mergerequest.Demand, err error) {
	n := 0
	for uid, scope := range in.scopes {
		a := scope.Project.Spec.MergeRequests.Approvals
		if a.Required == 0 && len(a.Rules) == 0 {
			if a.AllowAuthor {
				all = append(all, mergerequest.Demand{Project: uid, AllowAuthor: true})
			}
			continue
		}
		if n += 1 + len(a.Rules); n > maxAsked {
			return nil, endpoint.Parameters(fmt.Sprintf("approved is limited to %d requirements of projects: please list the merge requests of a group or project", maxAsked))
		}
		d, err := f.demandsOf(ctx, scope.Project)
		if err != nil {
			return nil, err
		}
		all = append(all, mergerequest.Demand{Project: uid, Required: int64(d.Required), AllowAuthor: d.AllowAuthor, Rules: d.rules})
	}
	return all, nil
}

// negative returns the conditions of the filters that must not apply.
func (f *Family) negative(ctx context.Context, viewer types.UID, in places, r negative) ([]mergerequest.Condition, error) {
	all, err := item.Labeled(ctx, in.label, r.Labels, mergerequest.LabeledWith)
	if err != nil {
		return nil, err
	}
	if r.Milestone.Or("") != "" {
		all = append(all, mergerequest.PlannedFor(r.Milestone.Value))
	}
	for _, name := range r.MyReaction {
		all = append(all, mergerequest.ReactedTo(viewer, name))
	}
	for _, who := range []struct {
		ids   []int64
		names []string
		is    func(...types.UID) mergerequest.Condition
	}{
		{r.AuthorID, r.AuthorUsername, mergerequest.By}, {r.AssigneeID, r.AssigneeUsername, mergerequest.AssignedTo},
		{r.ReviewerID, r.ReviewerUsername, mergerequest.ReviewedBy},
	} {
		c, err := item.AnyOf(ctx, f.Catalog, who.ids, who.names, who.is)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	for n, c := range all {
		all[n] = database.Not(c)
	}
	return all, nil
}
