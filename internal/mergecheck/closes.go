package mergecheck

import (
	"context"
	"slices"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/mergerequest"
)

// closeIssues closes the open issues that the description of a merge request closes, if it was merged into the default branch by a known user. It is part
// of the transaction that marks the merge request as merged. Every role that can merge can also close issues.
func (c *Checker) closeIssues(ctx context.Context, m mergerequest.MergeRequest) error {
	closes := mergerequest.Closes(m.Description)
	if len(closes) == 0 || m.Merger.UID == "" {
		return nil
	}
	p, err := catalog.ByIDAndUID[*v1alpha1.Project](ctx, c.catalog, m.In.ID, m.In.UID)
	if err != nil {
		return catalog.IgnoreNotFound(err)
	}
	if catalog.DefaultBranch(p) != m.TargetBranch {
		return nil
	}
	slices.Sort(closes) // concurrent merges lock issues in the same order
	for _, iid := range closes {
		if err := c.stores.CloseIssue(ctx, iid, m); err != nil {
			return err
		}
	}
	return nil
}
