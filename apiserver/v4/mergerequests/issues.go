package mergerequests

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/item"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/mergerequest"
)

// issueTable lists the endpoints about the merge requests that mention an issue.
func (f *Family) issueTable() endpoint.Table {
	const issue = "/projects/{id}/issues/{issue_iid}"
	return endpoint.Table{
		endpoint.Get(issue+"/closed_by", f.mentioning(true)).Needs(auth.ReadIssues).Asks(auth.ReadConfidential, auth.ReadMergeRequests).Found(f.items.Issue).
			Anonymous(endpoint.Served).Doc("List the merge requests of the project whose description closes an issue."),
		endpoint.Get(issue+"/related_merge_requests", f.mentioning(false)).Needs(auth.ReadIssues).Asks(auth.ReadConfidential, auth.ReadMergeRequests).
			Found(f.items.Issue).Anonymous(endpoint.Served).Doc("List the merge requests of the project whose description mentions an issue."),
	}
}

type mentioningRequest struct{ endpoint.Paging }

// mentioning returns a handler that lists the merge requests that mention an issue, or only those that close it. Callers who cannot read merge
// requests see none.
func (f *Family) mentioning(closing bool) endpoint.Func[auth.ProjectRecord[item.Issue], mentioningRequest, endpoint.List[MergeRequest]] {
	return func(ctx context.Context, s auth.ProjectRecord[item.Issue], r *mentioningRequest) (none endpoint.List[MergeRequest], err error) {
		var rows []mergerequest.MergeRequest
		total := 0
		if s.Has(s.Access, auth.ReadMergeRequests) {
			skip, size := r.Window()
			if rows, total, err = f.Activity.MergeRequests.Mentioning(ctx, s.Scope.Project.UID, s.Record.IID, closing, skip, size); err != nil {
				return none, err
			}
		}
		in := map[types.UID]catalog.Scope{s.Scope.Project.UID: s.Scope}
		page := endpoint.Cut(rows, total, func(m mergerequest.MergeRequest) mergerequest.MergeRequest { return m })
		return endpoint.Each(page, func(rows []mergerequest.MergeRequest) ([]MergeRequest, error) {
			return f.show(ctx, s.Subject, in, rows, false)
		})
	}
}
