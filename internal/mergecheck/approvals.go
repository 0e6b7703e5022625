package mergecheck

import (
	"context"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/database"
)

// keepsApprovals reports whether approvals of the merge requests of a project stay when a source branch changes.
func (c *Checker) keepsApprovals(ctx context.Context, project database.Subject) (bool, error) {
	p, err := catalog.ByIDAndUID[*v1alpha1.Project](ctx, c.catalog, project.ID, project.UID)
	if err != nil {
		return false, catalog.IgnoreNotFound(err)
	}
	return p.Spec.MergeRequests.Approvals.KeepOnPush, nil
}
