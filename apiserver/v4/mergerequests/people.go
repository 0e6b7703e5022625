package mergerequests

import (
	"context"

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
	return append(item.Participation[item.MergeRequest, Detailed]{
		Kit: &f.Kit, Kind: f.items.MergeRequests(), Involved: "the author, the assignees, the reviewers", Followers: f.Activity.MergeRequests,
		Done: f.done,
	}.Table(),
		endpoint.Get(one+"/reviewers", f.reviewers).Needs(auth.ReadMergeRequests).Found(f.items.MergeRequest).Anonymous(endpoint.Served).
			Doc("List the reviewers of a merge request, and whether they have approved it."),
	)
}

// people returns the author, the assignees and the reviewers of a merge request.
func people(m mergerequest.MergeRequest) item.People {
	return item.MergeRequest{MergeRequest: m}.People()
}

// done records a write for the audit, and shows the merge request.
func (f *Family) done(ctx context.Context, s auth.ProjectRecord[item.MergeRequest], verb string) (Detailed, error) {
	did(ctx, verb, s.Scope, s.Record.MergeRequest)
	return f.detail(ctx, s.Subject, s.Record.MergeRequest)
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
	c, err := f.consent(ctx, f.committers, m)
	if err != nil {
		return nil, err
	}
	shown := []Reviewer{}
	for _, u := range m.Reviewers {
		if known[u.UID] == nil {
			continue
		}
		state := "unreviewed"
		if c.by(u.UID) {
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
