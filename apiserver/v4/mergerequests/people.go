package mergerequests

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/entity"
	"github.com/forgeplane/forgeplane/apiserver/item"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/database"
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
	u, err := s.Caller.Person()
	if err != nil {
		return Detailed{}, err
	}
	m := s.Record.MergeRequest
	was, err := f.subscribed(ctx, s.Subject, m)
	if err == nil && was == on {
		err = endpoint.NotModified()
	}
	if err != nil {
		return Detailed{}, err
	}
	if err := f.Activity.MergeRequests.Subscribe(ctx, m.ID, item.User(u), on); err != nil {
		return Detailed{}, err
	}
	verb := "subscribe"
	if !on {
		verb = "unsubscribe"
	}
	did(ctx, verb, s.Scope, m)
	return f.detail(ctx, s.Subject, m)
}

// subscribed reports whether the caller follows a merge request: by choice, or by taking part in it.
func (f *Family) subscribed(ctx context.Context, s auth.Subject, m mergerequest.MergeRequest) (bool, error) {
	viewer := item.Viewer(s)
	if viewer == "" {
		return false, nil
	}
	on, known, err := f.Activity.MergeRequests.Subscribed(ctx, m.ID, viewer)
	if err != nil || known {
		return on, err
	}
	all, err := f.takingPart(ctx, m)
	return slices.ContainsFunc(all, func(u database.User) bool { return u.UID == viewer }), err
}

// takingPart returns the author, the assignees, the reviewers and the writers of notes of a merge request.
func (f *Family) takingPart(ctx context.Context, m mergerequest.MergeRequest) ([]database.User, error) {
	writers, err := f.Activity.Notes.Writers(ctx, m.Item())
	return slices.Concat([]database.User{m.Author}, m.Assignees, m.Reviewers, writers), err
}

type participantsRequest struct{ endpoint.Paging }

func (f *Family) participants(ctx context.Context, s auth.ProjectRecord[item.MergeRequest], r *participantsRequest) (endpoint.List[*entity.UserSummary], error) {
	all, err := f.takingPart(ctx, s.Record.MergeRequest)
	if err != nil {
		return endpoint.List[*entity.UserSummary]{}, err
	}
	known, err := item.Users(ctx, f.Catalog, f.WebURL, all...)
	if err != nil {
		return endpoint.List[*entity.UserSummary]{}, err
	}
	var shown []*entity.UserSummary
	for _, u := range all {
		if one := known[u.UID]; one != nil && !slices.Contains(shown, one) {
			shown = append(shown, one)
		}
	}
	return endpoint.Page(r.Paging, shown, func(u *entity.UserSummary) *entity.UserSummary { return u }), nil
}

// Reviewer is a reviewer of a merge request.
type Reviewer struct {
	User      *entity.UserSummary `json:"user"`
	State     string              `json:"state" doc:"unreviewed or approved."`
	CreatedAt endpoint.Time       `json:"created_at" doc:"Always null."`
}

func (f *Family) reviewers(ctx context.Context, s auth.ProjectRecord[item.MergeRequest], _ *endpoint.None) ([]Reviewer, error) {
	m, err := f.refresh(ctx, s.Subject, s.Record.MergeRequest) // a push removes approvals
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
	u, err := f.Catalog.User(ctx, v1alpha1.Reference{ID: m.Author.ID})
	if errors.Is(err, catalog.ErrNotFound) || err == nil && u.UID != m.Author.UID {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	access, err := f.Guard.Access(ctx, auth.Caller{User: u, Admin: u.Spec.Admin}, s.Scope)
	if err != nil || access.Role > role.Guest {
		return false, err
	}
	merged, err := f.Activity.MergeRequests.HasMerged(ctx, m.In.UID, m.Author.UID)
	return !merged, err
}
