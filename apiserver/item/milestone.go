package item

import (
	"context"
	"errors"

	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/milestone"
)

// MilestoneRequest asks for the items of a milestone.
type MilestoneRequest struct {
	endpoint.Paging
	MilestoneID int64 `param:"milestone_id" doc:"Id of the milestone, not its internal id (iid)."`
}

// Find returns the milestone of a project or group.
func (r *MilestoneRequest) Find(ctx context.Context, s *milestone.Store, in catalog.Scope) (milestone.Milestone, error) {
	m, err := s.Get(ctx, in.Target().GetUID(), r.MilestoneID)
	if errors.Is(err, milestone.ErrNotFound) {
		err = endpoint.NotFound("")
	}
	return m, err
}
