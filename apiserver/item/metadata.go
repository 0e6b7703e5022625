package item

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/family"
	"github.com/forgeplane/forgeplane/internal/database"
)

// Sent are the parameters of a request that change the labels, assignees and milestone of an item.
type Sent struct {
	Labels                  endpoint.Optional[[]string]
	AddLabels, RemoveLabels []string
	AssigneeIDs             endpoint.Optional[[]int64]
	AssigneeID              endpoint.Optional[int64]
	MilestoneID             endpoint.Optional[int64]
}

// row is the row of a label of an item, such as issue.Label.
type row interface {
	~struct {
		ID  int64
		UID types.UID
	}
}

// Metadata are changes of the labels, assignees and milestone of an item. The zero value changes nothing.
type Metadata[L row] struct {
	// labels and assignees replace all, unless they are nil.
	labels         *[]L
	added, removed []L
	assignees      *[]database.User
	milestone      *int64
}

// maxLabels is the maximum number of labels in a request: each is looked up.
const maxLabels = 100

// FindMetadata looks up the objects that a request about a project refers to. Missing labels are created if the caller has auth.WriteLabels, for
// which the endpoint must ask.
func FindMetadata[L row](ctx context.Context, k *family.Kit, known *Labels, s auth.Subject, r Sent) (m Metadata[L], err error) {
	if r.AssigneeIDs.Set || r.AssigneeID.Set {
		ids := r.AssigneeIDs.Value
		if !r.AssigneeIDs.Set {
			ids = []int64{r.AssigneeID.Value}
		}
		all, err := Assignable(ctx, k, s.Scope, "assignee_ids", ids)
		if err != nil {
			return m, err
		}
		m.assignees = &all
	}
	if r.MilestoneID.Set {
		if m.milestone, err = Milestone(ctx, k.Activity.Milestones, s.Scope, r.MilestoneID.Value); err != nil {
			return m, err
		}
	}
	if err := limit("labels", len(r.Labels.Value), maxLabels); err != nil {
		return m, err
	}
	if err := limit("add_labels", len(r.AddLabels), maxLabels); err != nil {
		return m, err
	}
	create := s.Has(s.Access, auth.WriteLabels)
	if r.Labels.Set {
		all, err := known.Titled(ctx, s.Scope, r.Labels.Value, create)
		if err != nil {
			return m, err
		}
		m.labels = ptr.To(rows[L](all))
	}
	added, err := known.Titled(ctx, s.Scope, r.AddLabels, create)
	if err != nil {
		return m, err
	}
	m.added = rows[L](added)
	titled, err := known.ByTitle(ctx, s.Scope)
	for _, title := range r.RemoveLabels {
		m.removed = append(m.removed, rows[L](titled[title])...)
	}
	return m, err
}

// Apply changes the labels, assignees and milestone of an item.
func (m Metadata[L]) Apply(labels *[]L, assignees *[]database.User, milestone *int64) {
	if m.labels != nil {
		*labels = *m.labels
	}
	*labels = slices.DeleteFunc(slices.Clone(*labels), func(l L) bool { return slices.Contains(m.removed, l) || slices.Contains(m.added, l) })
	*labels = append(*labels, m.added...)
	if m.assignees != nil {
		*assignees = *m.assignees
	}
	*milestone = ptr.Deref(m.milestone, *milestone)
}

// limit refuses too many values of a parameter.
func limit(name string, count, most int) error {
	var a endpoint.Attributes
	if count > most {
		a.Refuse(name, fmt.Sprintf("are too many (maximum is %d)", most))
	}
	return a.Err()
}

func rows[L row](declared []*v1alpha1.Label) []L {
	all := make([]L, len(declared))
	for i, l := range declared {
		all[i] = L(struct {
			ID  int64
			UID types.UID
		}{l.RESTID(), l.UID})
	}
	return all
}
