package mergerequests

import (
	"context"
	"net/http"
	"slices"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/entity"
	"github.com/forgeplane/forgeplane/apiserver/item"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/mergerequest"
	"github.com/forgeplane/forgeplane/internal/role"
)

// peopleTable lists the endpoints about the people who take part in a merge request.
func (f *Family) peopleTable() endpoint.Table {
	return endpoint.Table{
		endpoint.Post(one+"/subscribe", f.subscribe).Needs(auth.ReadMergeRequests).Found(f.items.MergeRequest).Also(http.StatusNotModified).
			Doc("Subscribe the caller to a merge request."),
		endpoint.Post(one+"/unsubscribe", f.unsubscribe).Needs(auth.ReadMergeRequests).Found(f.items.MergeRequest).Also(http.StatusNotModified).
			Doc("Unsubscribe the caller from a merge request."),
		endpoint.Get(one+"/participants", f.participants).Needs(auth.ReadMergeRequests).Found(f.items.MergeRequest).Anonymous(endpoint.Served).
			Doc("List the author, the assignees, the reviewers and the writers of notes of a merge request."),
		endpoint.Get(one+"/reviewers", f.reviewers).Needs(auth.ReadMergeRequests).Found(f.items.MergeRequest).Anonymous(endpoint.Served).
			Doc("List the reviewers of a merge request, and whether they have approved it."),
	}
}

func (f *Family) subscribe(ctx context.Context, s auth.ProjectRecord[item.MergeRequest], _ *endpoint.None) (Detailed, error) {
	return f.turnSubscription(ctx, s, true)
}

func (f *Family) unsubscribe(ctx context.Context, s auth.ProjectRecord[item.MergeRequest], _ *endpoint.None) (Detailed, error) {
	return f.turnSubscription(ctx, s, false)
}

func (f *Family) turnSubscription(ctx context.Context, s auth.ProjectRecord[item.MergeRequest], on bool) (Detailed, error) {
	m := s.Record.MergeRequest
	if err := item.Subscribe(ctx, &f.Kit, s.Subject, f.Activity.MergeRequests, m.Item(), people(m), on); err != nil {
		return Detailed{}, err
	}
	verb := "subscribe"
	if !on {
		verb = "unsubscribe"
	}
	did(ctx, verb, s.Scope, m)
	return f.detail(ctx, s.Subject, m)
}

// people returns the author, the assignees and the reviewers of a merge request.
func people(m mergerequest.MergeRequest) item.People {
	return slices.Concat(item.People{m.Author}, m.Assignees, m.Reviewers)
}

type participantsRequest struct{ endpoint.Paging }

func (f *Family) participants(ctx context.Context, s auth.ProjectRecord[item.MergeRequest], r *participantsRequest) (endpoint.List[*entity.UserSummary], error) {
	return item.Participants(ctx, &f.Kit, s.Record.Item(), people(s.Record.MergeRequest), r.Paging)
}

// Reviewer is a reviewer of a merge request.
type Reviewer struct {
	User      *entity.UserSummary `json:"user"`
	State     string              `json:"state" doc:"unreviewed or approved."`
	CreatedAt endpoint.Time       `json:"created_at" doc:"Always null."`
}

func (f *Family) reviewers(ctx context.Context, s auth.ProjectRecord[item.MergeRequest], _ *endpoint.None) ([]Reviewer, error) {
	m, err := f.refresh(ctx, s.Record.MergeRequest) // a push removes approvals
	if err != nil {
		return nil, err
	}
	known, err := item.Users(ctx, f.Catalog, f.WebURL, m.Reviewers...)
	if err != nil {
		return nil, err
	}
	approvals, err := f.Activity.MergeRequests.Approvals(ctx, m.ID)
	if err != nil {
		return nil, err
	}
	shown := []Reviewer{}
	for _, u := range m.Reviewers {
		if known[u.UID] == nil {
			continue
		}
		state := "unreviewed"
		if slices.ContainsFunc(approvals, func(a mergerequest.Approval) bool { return a.User.UID == u.UID }) {
			state = "approved"
		}
		shown = append(shown, Reviewer{User: known[u.UID], State: state})
	}
	return shown, nil
}

// firstContribution reports whether the author has neither a role above Guest in the project nor a merged merge request.
func (f *Family) firstContribution(ctx context.Context, s auth.Subject, m mergerequest.MergeRequest) (bool, error) {
	u, err := item.Person(ctx, f.Catalog, m.Author)
	if err != nil {
		return false, catalog.IgnoreNotFound(err)
	}
	access, err := f.Guard.Access(ctx, auth.Caller{User: u, Admin: u.Spec.Admin}, s.Scope)
	if err != nil || access.Role > role.Guest {
		return false, err
	}
	merged, err := f.Activity.MergeRequests.HasMerged(ctx, m.In.UID, m.Author.UID)
	return !merged, err
}
