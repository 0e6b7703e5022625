package labels

import (
	"context"

	"github.com/forgeplane/forgeplane/internal/catalog"
)

// Counts are the numbers of issues and merge requests with a label in a project, or in the projects below a group.
type Counts struct {
	OpenIssues        int64 `json:"open_issues_count"`
	ClosedIssues      int64 `json:"closed_issues_count"`
	OpenMergeRequests int64 `json:"open_merge_requests_count"`
}

// Counter counts the issues and merge requests with labels.
type Counter interface {
	// Count returns the counts of labels in a project or group by the ids of the labels. It omits labels with zero counts.
	Count(ctx context.Context, in catalog.Scope, labels []int64) (map[int64]Counts, error)
}

// Nothing is a Counter that counts no issues and no merge requests.
type Nothing struct{}

// Count implements Counter.
func (Nothing) Count(context.Context, catalog.Scope, []int64) (map[int64]Counts, error) {
	return nil, nil
}
