package labels

import (
	"context"

	"github.com/forgeplane/forgeplane/internal/catalog"
)

// Counts are how many issues and merge requests of a project, or of the projects below a group, have a label.
type Counts struct {
	OpenIssues        int64 `json:"open_issues_count"`
	ClosedIssues      int64 `json:"closed_issues_count"`
	OpenMergeRequests int64 `json:"open_merge_requests_count"`
}

// Counter counts what has labels.
type Counter interface {
	// Count returns the counts of labels in a project or group, all by their ids, in one go. A label that is left out has none.
	Count(ctx context.Context, in catalog.Scope, labels []int64) (map[int64]Counts, error)
}

// Nothing is a Counter where there are no issues and no merge requests.
type Nothing struct{}

// Count implements Counter.
func (Nothing) Count(context.Context, catalog.Scope, []int64) (map[int64]Counts, error) {
	return nil, nil
}
