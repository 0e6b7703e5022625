package issues

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/utils/ptr"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/item"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/issue"
)

// metadata are changes of an issue that only Reporters can make. The zero value changes nothing.
type metadata struct {
	// labels and assignees replace all, unless they are nil.
	labels          *[]issue.Label
	added, removed  []issue.Label
	assignees       *[]database.User
	milestone, epic *int64
	due             endpoint.Optional[time.Time]
	weight          endpoint.Optional[int64]
	locked          endpoint.Optional[bool]
}

// metadata looks up the objects that a request refers to, and creates missing labels. It returns the zero value for callers who are not Reporters.
func (f *Family) metadata(ctx context.Context, s auth.Subject, r *updateRequest) (m metadata, err error) {
	if !s.Has(s.Access, auth.AdminIssues) {
		return m, nil
	}
	if err := r.checkCounts(); err != nil {
		return m, err
	}
	m = metadata{due: r.DueDate, weight: r.Weight, locked: r.DiscussionLocked}
	if r.MilestoneID.Set {
		if m.milestone, err = item.Milestone(ctx, f.Activity.Milestones, s.Scope, r.MilestoneID.Value); err != nil {
			return m, err
		}
	}
	if r.EpicID.Set {
		if m.epic, err = f.epic(ctx, s, r.EpicID.Value); err != nil {
			return m, err
		}
	}
	if r.AssigneeIDs.Set || r.AssigneeID.Set {
		ids := r.AssigneeIDs.Value
		if !r.AssigneeIDs.Set {
			ids = []int64{r.AssigneeID.Value}
		}
		all, err := item.Assignable(ctx, f.Guard, f.Catalog, s.Scope, ids)
		if err != nil {
			return m, err
		}
		m.assignees = &all
	}
	create := s.Has(s.Access, auth.WriteLabels)
	if r.Labels.Set {
		all, err := f.titled(ctx, s.Scope, r.Labels.Value, create)
		if err != nil {
			return m, err
		}
		m.labels = &all
	}
	if m.added, err = f.titled(ctx, s.Scope, r.AddLabels, create); err != nil {
		return m, err
	}
	titled, err := f.labels.ByTitle(ctx, s.Scope)
	for _, title := range r.RemoveLabels {
		m.removed = append(m.removed, labelsOf(titled[title])...)
	}
	return m, err
}

// The maximum numbers of assignees and labels in a request: each is looked up.
const (
	maxAssignees = 200
	maxLabels    = 100
)

// checkCounts refuses too many assignees and labels.
func (r *updateRequest) checkCounts() error {
	var a endpoint.Attributes
	for _, sent := range []struct {
		name       string
		count, max int
	}{
		{"assignee_ids", len(r.AssigneeIDs.Value), maxAssignees}, {"labels", len(r.Labels.Value), maxLabels}, {"add_labels", len(r.AddLabels), maxLabels},
	} {
		if sent.count > sent.max {
			a.Refuse(sent.name, fmt.Sprintf("are too many (maximum is %d)", sent.max))
		}
	}
	return a.Err()
}

// apply changes an issue.
func (m metadata) apply(i *issue.Issue) {
	if m.labels != nil {
		i.Labels = *m.labels
	}
	i.Labels = slices.DeleteFunc(slices.Clone(i.Labels), func(l issue.Label) bool { return slices.Contains(m.removed, l) || slices.Contains(m.added, l) })
	i.Labels = append(i.Labels, m.added...)
	if m.assignees != nil {
		i.Assignees = *m.assignees
	}
	i.MilestoneID, i.EpicID = ptr.Deref(m.milestone, i.MilestoneID), ptr.Deref(m.epic, i.EpicID)
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

// titled returns the labels of a project with some titles.
func (f *Family) titled(ctx context.Context, in catalog.Scope, titles []string, create bool) ([]issue.Label, error) {
	found, err := f.labels.Titled(ctx, in, titles, create)
	return labelsOf(found), err
}

func labelsOf(declared []*v1alpha1.Label) []issue.Label {
	all := make([]issue.Label, len(declared))
	for i, l := range declared {
		all[i] = issue.Label{ID: l.RESTID(), UID: l.UID}
	}
	return all
}
