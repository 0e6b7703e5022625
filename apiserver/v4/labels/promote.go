package labels

import (
	"context"
	"errors"
	"net/http"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/namespace"
	"github.com/forgeplane/forgeplane/apiserver/store"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/claim"
	"github.com/forgeplane/forgeplane/internal/label"
)

type promoteNamedRequest struct {
	Name string `param:"name" required:"" example:"bug" doc:"Title of the label."`
}

func (f *Family) promoteNamed(ctx context.Context, s auth.Project, r *promoteNamedRequest) (GroupLabel, error) {
	return f.promoteKey(ctx, s, r.Name)
}

func (f *Family) promote(ctx context.Context, s auth.Project, r *labelRequest) (GroupLabel, error) {
	return f.promoteKey(ctx, s, r.LabelID)
}

func (f *Family) promoteKey(ctx context.Context, s auth.Project, key string) (GroupLabel, error) {
	e, err := f.find(ctx, s.Scope, key)
	if err != nil {
		return GroupLabel{}, err
	}
	above := catalog.Scope{Groups: s.Scope.Groups}
	if !e.own() || namespace.Personal(above.Groups[0]) {
		return GroupLabel{}, endpoint.Message(http.StatusBadRequest, "Failed to promote project label to group label")
	}
	if err := f.mayChangeGroup(ctx, s.Subject, above); err != nil {
		return GroupLabel{}, err
	}
	merged, err := f.merged(ctx, e, above.Groups[0])
	if err != nil {
		return GroupLabel{}, err
	}
	if err := f.allowed(ctx, merged); err != nil {
		return GroupLabel{}, err
	}
	into, err := f.merge(ctx, e, above, merged)
	if err != nil {
		return GroupLabel{}, err
	}
	shown, err := f.show(ctx, s.Subject, newEntry(s.Scope, label.Inherited{Label: into, Of: above, Above: 1}))
	shown.TextColor = ""
	return shown.GroupLabel, err
}

// merged returns the labels that a group label replaces: all labels with the title in projects directly in the group, the younger ones
// first and the promoted one last.
func (f *Family) merged(ctx context.Context, e entry, g *v1alpha1.Group) ([]label.OfProject, error) {
	all, err := label.InProjects(ctx, f.Catalog, g, e.Spec.Title)
	slices.SortFunc(all, func(a, b label.OfProject) int {
		switch {
		case a.UID == b.UID:
			return 0
		case b.UID == e.UID, a.UID != e.UID && claim.Older(b, a):
			return -1
		default:
			return 1
		}
	})
	return all, err
}

// allowed returns an error if any of the projects does not allow REST callers to make the necessary changes.
func (f *Family) allowed(ctx context.Context, merged []label.OfProject) error {
	for _, l := range merged {
		err := f.labels.CheckUnasked(ctx, l.Label)
		if err == nil && prioritized(l) {
			err = f.projects.CheckUnasked(ctx, l.Project)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// merge replaces labels of projects with a label of their group. It deletes the promoted label last, so that a repeated request completes
// an interrupted one.
func (f *Family) merge(ctx context.Context, e entry, above catalog.Scope, merged []label.OfProject) (*v1alpha1.Label, error) {
	into, err := f.inGroup(ctx, e, above)
	if err != nil {
		return nil, err
	}
	if err := f.keepPriorities(ctx, merged); err != nil {
		return nil, err
	}
	for _, l := range merged {
		// If another label holds the id, the subscribers belong to that label.
		holds, err := f.Catalog.HoldsID(ctx, l.Label)
		if err == nil && holds {
			err = f.Activity.Subscriptions.Move(ctx, subject(l.Label), subject(into))
		}
		if err == nil {
			err = f.move(ctx, l.Label, into)
		}
		if err != nil {
			return nil, err
		}
		if err := f.labels.DeleteUnasked(ctx, l.Label); err != nil {
			return nil, err
		}
	}
	return into, nil
}

// move gives all items with a label another one instead.
func (f *Family) move(ctx context.Context, from, to *v1alpha1.Label) error {
	for _, rows := range f.labeled() {
		if err := rows.Move(ctx, row(from), row(to)); err != nil {
			return err
		}
	}
	return nil
}

// inGroup returns the label with the title of the group or of a group above. If it does not exist, inGroup creates it with the id of the
// promoted label. The new label waits for the id until the promoted label is deleted.
func (f *Family) inGroup(ctx context.Context, e entry, above catalog.Scope) (*v1alpha1.Label, error) {
	into, err := label.Holder(ctx, f.Catalog, above, e.Spec.Title)
	if err != nil {
		return nil, err
	}
	if into != nil {
		holds, err := f.Catalog.HoldsID(ctx, into)
		if err == nil && !holds && into.RESTID() != e.RESTID() {
			err = locked() // the controller has not assigned its id yet
		}
		return into, err
	}
	g := above.Groups[0]
	into = &v1alpha1.Label{
		ObjectMeta: metav1.ObjectMeta{Namespace: g.Namespace},
		Spec: v1alpha1.LabelSpec{
			ID: e.RESTID(), GroupRef: ptr.To(catalog.ReferNamed(g)),
			Title: e.Spec.Title, Color: e.Spec.Color, Description: e.Spec.Description,
		},
	}
	err = f.declare(ctx, into, above)
	if errors.Is(err, store.ErrExists) {
		err = locked() // another request promotes a label with this title
	}
	return into, err
}

func locked() error { return endpoint.Conflict("409 Conflict: Resource lock") }

// prioritized reports whether the project's priority for the title must change to the priority of its own label, which can be nil.
func prioritized(l label.OfProject) bool {
	return l.Spec.Priority != nil || priorityOf(l.Project.Spec.LabelPriorities, l.Spec.Title) != nil
}

// keepPriorities sets the priority of the group's label in each project to the priority of the project's own label, which can be nil.
func (f *Family) keepPriorities(ctx context.Context, merged []label.OfProject) error {
	of := map[types.UID][]label.OfProject{}
	for _, l := range merged {
		of[l.Project.UID] = append(of[l.Project.UID], l)
	}
	for p, all := range of {
		l := claim.Holder(all, claim.Label(p, all[0].Spec.Title)) // the project's label that is in force
		if !prioritized(l) {
			continue
		}
		_, err := f.projects.UpdateUnasked(ctx, l.Project, prioritize(l.Spec.Title, l.Spec.Priority))
		if err != nil {
			return err
		}
	}
	return nil
}
