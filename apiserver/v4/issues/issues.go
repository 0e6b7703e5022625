// Package issues serves the issues of projects.
package issues

import (
	"context"
	"errors"
	"slices"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/family"
	"github.com/forgeplane/forgeplane/apiserver/item"
	"github.com/forgeplane/forgeplane/apiserver/visible"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/issue"
)

// Family serves issues.
type Family struct {
	family.Kit
	items  item.Finder
	labels *item.Labels
}

// New returns the family.
func New(k family.Kit) *Family {
	return &Family{
		Kit: k, items: item.Finder{Stores: k.Activity}, labels: item.NewLabels(k.Catalog, k.Writer),
	}
}

const (
	ofProject = "/projects/{id}/issues"
	one       = ofProject + "/{issue_iid}"
)

// Table lists the endpoints.
func (f *Family) Table() endpoint.Table {
	shown := []endpoint.Ability{auth.ReadConfidential, auth.ReadConfidentialEpics}
	return slices.Concat(endpoint.Table{
		endpoint.Get("/issues", f.list).Asks(shown...).Asks(auth.ReadIssues).Anonymous(endpoint.Served).
			Doc("List the issues that the caller has written; with other scopes, those that the caller is assigned to or sees."),
		endpoint.Get("/issues/{id}", f.getWithID).Needs(auth.AdminInstance).Asks(shown...).
			Doc("Get an issue of any project by its id. Only for administrators."),
		endpoint.Get("/groups/{id}/issues", f.listInGroup).Needs(auth.ReadGroup).Asks(shown...).Asks(auth.ReadIssues).Anonymous(endpoint.Served).
			Doc("List the issues of the projects of a group and of its subgroups."),
		endpoint.Get(ofProject, f.listInProject).Needs(auth.ReadIssues).Asks(shown...).Anonymous(endpoint.Served).
			Doc("List the issues of a project."),
		endpoint.Get("/projects/{id}/milestones/{milestone_id}/issues", f.listOfMilestone).Needs(auth.ReadIssues).Asks(shown...).Anonymous(endpoint.Served).
			Doc("List the issues of a milestone of a project."),
		endpoint.Get("/groups/{id}/milestones/{milestone_id}/issues", f.listOfGroupMilestone).Needs(auth.ReadGroupMilestones).Asks(shown...).Asks(auth.ReadIssues).
			Anonymous(endpoint.Served).Doc("List the issues of a milestone of a group."),
		endpoint.Get(one, f.get).Needs(auth.ReadIssues).Asks(shown...).Found(f.items.Issue).Anonymous(endpoint.Served).
			Doc("Get an issue."),
		endpoint.Post(ofProject, f.create).Needs(auth.CreateIssues).Asks(shown...).Asks(auth.AdminIssues, auth.DestroyIssues, auth.WriteLabels).
			Doc("Create an issue. Labels, assignees, milestone, epic, weight and due date are ignored unless the caller is at least a Reporter."),
		endpoint.Put(one, f.update).Needs(auth.CreateIssues).Asks(shown...).Asks(auth.AdminIssues, auth.WriteLabels).Found(f.items.Issue).Nonempty().
			Doc("Update, close or reopen an issue. Its author and assignees can change the title, description and state."),
		endpoint.Delete(one, f.remove).Needs(auth.DestroyIssues).Asks(shown...).Found(f.items.Issue).Conditional().
			Doc("Delete an issue with its notes, reactions and state events."),
		endpoint.Get("/projects/{id}/merge_requests/{merge_request_iid}/closes_issues", f.closedBy).Needs(auth.ReadMergeRequests).Asks(shown...).
			Found(f.items.MergeRequest).Anonymous(endpoint.Served).Doc("List the issues of the project that the description of a merge request closes."),
	}, f.peopleTable(), f.timeTable())
}

// places are the projects whose issues a list can have.
type places struct {
	item.Seen
	// label finds the labels that the issues can have.
	label item.LabelFinder
}

// among returns the projects in a place that the caller sees.
func (f *Family) among(ctx context.Context, s auth.Subject, in visible.In) (places, error) {
	seen, err := item.SeenIn(ctx, f.Visible, s, in)
	return places{seen, f.labels.Anywhere}, err
}

// here returns the project of a request.
func (f *Family) here(s auth.Subject) places {
	return places{item.SeenHere(s), f.labels.Within(s.Scope)}
}

func (f *Family) get(ctx context.Context, s auth.ProjectRecord[item.Issue], _ *endpoint.None) (Detailed, error) {
	return f.showOne(ctx, s.Subject, s.Scope, s.Record.Issue)
}

type getRequest struct {
	ID int64 `param:"id" doc:"Id of the issue."`
}

func (f *Family) getWithID(ctx context.Context, s auth.Instance, r *getRequest) (Detailed, error) {
	i, err := f.Activity.Issues.WithID(ctx, r.ID)
	if errors.Is(err, issue.ErrNotFound) {
		return Detailed{}, endpoint.NotFound("Issue")
	}
	if err != nil {
		return Detailed{}, err
	}
	p, err := catalog.ByID[*v1alpha1.Project](ctx, f.Catalog, i.In.ID)
	if errors.Is(err, catalog.ErrNotFound) || err == nil && p.UID != i.In.UID {
		return Detailed{}, endpoint.NotFound("Issue") // its project is gone
	}
	if err != nil {
		return Detailed{}, err
	}
	scope, err := f.Catalog.ProjectScope(ctx, p)
	if err != nil {
		return Detailed{}, err
	}
	return f.showOne(ctx, s.Subject, scope, i)
}
