package mergerequests

import (
	"context"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/item"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/mergerequest"
)

// changes are the requested changes of a merge request, except for its texts and its state.
type changes struct {
	item.Metadata[mergerequest.Label]
	// reviewers replaces all, unless it is nil.
	reviewers *[]database.User
	locked    endpoint.Optional[bool]
	squash    endpoint.Optional[bool]
	// source says that the caller decides about the source branch.
	source               bool
	removal, collaborate endpoint.Optional[bool]
}

// changes looks up the objects that a request refers to, and creates missing labels. s is about the target project. Only its Developers change labels,
// assignees, reviewers, the milestone and the lock.
func (f *Family) changes(ctx context.Context, s auth.Subject, r *updateRequest) (c changes, err error) {
	c = changes{squash: r.Squash, removal: r.RemoveSourceBranch, collaborate: r.AllowCollaboration}
	if !c.collaborate.Set {
		c.collaborate = r.AllowMaintainer
	}
	if !s.Has(s.Access, auth.UpdateMergeRequests) {
		return c, nil
	}
	c.locked = r.DiscussionLocked
	if r.ReviewerIDs.Set {
		all, err := item.Assignable(ctx, &f.Kit, s.Scope, "reviewer_ids", r.ReviewerIDs.Value)
		if err != nil {
			return c, err
		}
		c.reviewers = &all
	}
	c.Metadata, err = item.FindMetadata[mergerequest.Label](ctx, &f.Kit, f.labels, s, item.Sent{
		Labels: r.Labels, AddLabels: r.AddLabels, RemoveLabels: r.RemoveLabels,
		AssigneeIDs: r.AssigneeIDs, AssigneeID: r.AssigneeID, MilestoneID: r.MilestoneID,
	})
	return c, err
}

// apply changes a merge request.
func (c changes) apply(m *mergerequest.MergeRequest) {
	c.Apply(&m.Labels, &m.Assignees, &m.MilestoneID)
	if c.reviewers != nil {
		m.Reviewers = *c.reviewers
	}
	if c.locked.Set {
		m.DiscussionLocked = nil
		if !c.locked.Null {
			m.DiscussionLocked = &c.locked.Value
		}
	}
	m.Squash = c.squash.Or(m.Squash)
	if c.source {
		m.RemoveSourceBranch, m.AllowCollaboration = c.removal.Or(m.RemoveSourceBranch), c.collaborate.Or(m.AllowCollaboration)
	}
}
