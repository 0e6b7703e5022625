package issues

import (
	"context"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/item"
	"github.com/forgeplane/forgeplane/internal/issue"
	"github.com/forgeplane/forgeplane/internal/mergerequest"
)

type closedByRequest struct{ endpoint.Paging }

// closedBy lists the issues that a merge request closes, of those that the caller sees.
func (f *Family) closedBy(ctx context.Context, s auth.ProjectRecord[item.MergeRequest], r *closedByRequest) (endpoint.List[Issue], error) {
	in := f.here(s.Subject)
	q := issue.Query{Seen: in.Seen.Seen, Conditions: []issue.Condition{issue.Numbered(mergerequest.Closes(s.Record.Description)...)}, Order: issue.ByCreation, Ascending: true, Page: item.PageOf(r.Paging)}
	rows, total, err := f.Activity.Issues.List(ctx, q)
	if err != nil {
		return endpoint.List[Issue]{}, err
	}
	return endpoint.Each(endpoint.Cut(rows, total, func(i issue.Issue) issue.Issue { return i }), func(rows []issue.Issue) ([]Issue, error) {
		return f.show(ctx, s.Subject, in.Scopes, rows, false)
	})
}
