package item

import (
	"context"
	"errors"
	"time"

	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/entity"
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

// ShowMilestone shows the milestone of an item of a project. It returns nil if items of the project cannot have it: a project keeps the milestones of
// groups that it has left, and its callers may not see these groups.
func ShowMilestone(webURL string, in catalog.Scope, m milestone.Milestone, now time.Time) *entity.Milestone {
	if !HasMilestone(in, m) {
		return nil
	}
	at := webURL + "/" + in.Path()
	if group := GroupPath(in, m.In); group != "" {
		at = webURL + "/groups/" + group
	}
	shown := entity.ShowMilestone(m, at, now)
	return &shown
}
