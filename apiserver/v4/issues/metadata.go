package issues

import (
	"context"
	"time"

	"k8s.io/utils/ptr"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/item"
	"github.com/forgeplane/forgeplane/internal/issue"
)

// metadata are changes of an issue that only Reporters can make. The zero value changes nothing.
type metadata struct {
	item.Metadata[issue.Label]
	epic   *int64
	due    endpoint.Optional[time.Time]
	weight endpoint.Optional[int64]
	locked endpoint.Optional[bool]
}

// metadata looks up the objects that a request refers to, and creates missing labels. It returns the zero value for callers who are not Reporters.
func (f *Family) metadata(ctx context.Context, s auth.Subject, r *updateRequest) (m metadata, err error) {
	if !s.Has(s.Access, auth.AdminIssues) {
		return m, nil
	}
	m = metadata{due: r.DueDate, weight: r.Weight, locked: r.DiscussionLocked}
	if r.EpicID.Set {
		if m.epic, err = f.epic(ctx, s, r.EpicID.Value); err != nil {
			return m, err
		}
	}
	m.Metadata, err = item.FindMetadata[issue.Label](ctx, &f.Kit, f.labels, s, item.Sent{
		Labels: r.Labels, AddLabels: r.AddLabels, RemoveLabels: r.RemoveLabels,
		AssigneeIDs: r.AssigneeIDs, AssigneeID: r.AssigneeID, MilestoneID: r.MilestoneID,
	})
	return m, err
}

// apply changes an issue.
func (m metadata) apply(i *issue.Issue) {
	m.Apply(&i.Labels, &i.Assignees, &i.MilestoneID)
	i.EpicID = ptr.Deref(m.epic, i.EpicID)
	if m.due.Set {
		i.Due = ""
		if !m.due.Null {
			i.Due = m.due.Value.Format(time.DateOnly)
		}
	}
	if m.weight.Set {
		i.Weight = nil
		if !m.weight.Null {
			i.Weight = &m.weight.Value
		}
	}
	i.DiscussionLocked = m.locked.Or(i.DiscussionLocked)
}
