package issues

import (
	"context"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/item"
	"github.com/forgeplane/forgeplane/internal/issue"
)

// peopleTable lists the endpoints about the people who take part in an issue.
func (f *Family) peopleTable() endpoint.Table {
	return item.Participation[item.Issue, Detailed]{
		Kit: &f.Kit, Kind: f.items.Issues(), Involved: "the author, the assignees", Followers: f.Activity.Issues,
		Done: f.done, Shows: []endpoint.Ability{auth.ReadConfidentialEpics},
	}.Table()
}

// people returns the author and the assignees of an issue.
func people(i issue.Issue) item.People { return item.Issue{Issue: i}.People() }

// done records a write for the audit, and shows the issue.
func (f *Family) done(ctx context.Context, s auth.ProjectRecord[item.Issue], verb string) (Detailed, error) {
	did(ctx, verb, s.Scope, s.Record.Issue)
	return f.showOne(ctx, s.Subject, s.Scope, s.Record.Issue)
}
