package issues

import (
	"context"
	"net/http"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/entity"
	"github.com/forgeplane/forgeplane/apiserver/item"
	"github.com/forgeplane/forgeplane/internal/issue"
)

// peopleTable lists the endpoints about the people who take part in an issue.
func (f *Family) peopleTable() endpoint.Table {
	return endpoint.Table{
		endpoint.Post(one+"/subscribe", f.subscribe).Needs(auth.ReadIssues).Asks(auth.ReadConfidential, auth.ReadConfidentialEpics).Found(f.items.Issue).
			Also(http.StatusNotModified).Doc("Subscribe the caller to an issue."),
		endpoint.Post(one+"/unsubscribe", f.unsubscribe).Needs(auth.ReadIssues).Asks(auth.ReadConfidential, auth.ReadConfidentialEpics).Found(f.items.Issue).
			Also(http.StatusNotModified).Doc("Unsubscribe the caller from an issue."),
		endpoint.Get(one+"/participants", f.participants).Needs(auth.ReadIssues).Asks(auth.ReadConfidential).Found(f.items.Issue).Anonymous(endpoint.Served).
			Doc("List the author, the assignees and the writers of notes of an issue."),
	}
}

// people returns the author and the assignees of an issue.
func people(i issue.Issue) item.People { return append(item.People{i.Author}, i.Assignees...) }

func (f *Family) subscribe(ctx context.Context, s auth.ProjectRecord[item.Issue], _ *endpoint.None) (Detailed, error) {
	return f.turnSubscription(ctx, s, "subscribe", true)
}

func (f *Family) unsubscribe(ctx context.Context, s auth.ProjectRecord[item.Issue], _ *endpoint.None) (Detailed, error) {
	return f.turnSubscription(ctx, s, "unsubscribe", false)
}

func (f *Family) turnSubscription(ctx context.Context, s auth.ProjectRecord[item.Issue], verb string, on bool) (Detailed, error) {
	i := s.Record.Issue
	if err := item.Subscribe(ctx, &f.Kit, s.Subject, f.Activity.Issues, i.Item(), people(i), on); err != nil {
		return Detailed{}, err
	}
	did(ctx, verb, s.Scope, i)
	return f.showOne(ctx, s.Subject, s.Scope, i)
}

type participantsRequest struct{ endpoint.Paging }

func (f *Family) participants(ctx context.Context, s auth.ProjectRecord[item.Issue], r *participantsRequest) (endpoint.List[*entity.UserSummary], error) {
	return item.Participants(ctx, &f.Kit, s.Record.Item(), people(s.Record.Issue), r.Paging)
}
