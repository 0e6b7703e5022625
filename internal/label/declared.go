package label

import (
	"context"
	"errors"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/claim"
)

const (
	// indexLabel holds the key of the target of labels and the title, joined.
	indexLabel = "label"
	// indexTitle holds the titles of labels.
	indexTitle = "title"
)

// Indexes returns the indexes of labels.
func Indexes() []catalog.Index {
	spec := func(o client.Object) v1alpha1.LabelSpec { return o.(*v1alpha1.Label).Spec }
	return []catalog.Index{
		{Of: &v1alpha1.Label{}, Name: indexTitle, Values: func(o client.Object) []string { return catalog.Text(spec(o).Title) }},
		{Of: &v1alpha1.Label{}, Name: indexLabel, Values: func(o client.Object) []string {
			return keys(catalog.TargetKeys(o), spec(o).Title)
		}},
	}
}

// Inherited is a label with the scope that it is declared for: the requested scope or a group above.
type Inherited struct {
	*v1alpha1.Label
	Of catalog.Scope
	// Above is the number of levels between the requested scope and Of. It is 0 for the scope itself.
	Above int
}

// All returns the labels that are in force in a scope, including inherited labels, from the nearest level to the farthest. Labels of a
// level have no order. A label is not in force if another label of the same target or of a group above holds its title, or if another label
// holds its id.
func All(ctx context.Context, c *catalog.Catalog, s catalog.Scope) ([]Inherited, error) {
	levels := s.Levels()
	declared := make([][]*v1alpha1.Label, len(levels))
	holders := map[string]titled{}
	inForce := map[*v1alpha1.Label]bool{}
	for i := len(levels) - 1; i >= 0; i-- {
		var err error
		if declared[i], err = catalog.ListInScope[*v1alpha1.Label](ctx, c, levels[i]); err != nil {
			return nil, err
		}
		for _, l := range declared[i] {
			if next := of(l, levels[i]); next.precedes(holders[l.Spec.Title]) {
				holders[l.Spec.Title] = next
			}
		}
		for _, l := range declared[i] {
			if holders[l.Spec.Title].Label == l {
				inForce[l] = true
			}
		}
	}
	all := make([]Inherited, 0, len(inForce))
	for i, level := range levels {
		for _, l := range declared[i] {
			if !inForce[l] {
				continue
			}
			holds, err := c.HoldsID(ctx, l)
			if err != nil {
				return nil, err
			}
			if holds {
				all = append(all, Inherited{Label: l, Of: level, Above: i})
			}
		}
	}
	return all, nil
}

// titled is a label that claims a title in its target.
type titled struct {
	*v1alpha1.Label
	target types.UID
	shown  bool
}

func of(l *v1alpha1.Label, level catalog.Scope) titled {
	target := level.Target().GetUID()
	return titled{l, target, claim.Label(target, l.Spec.Title).ShownBy(l)}
}

// precedes reports whether a takes precedence over b, which can be empty. Both have the same title, and b is of the same target or of a
// group above. If both hold the title, the label of the lower group wins, because it must have claimed the title first.
func (a titled) precedes(b titled) bool {
	if b.Label == nil || a.shown && b.shown && a.target != b.target {
		return true
	}
	return claim.Precedes(a, a.shown, b, b.shown)
}

// Holder returns the label that holds a title in a scope, or nil. The label is declared for the scope itself or for a group above.
func Holder(ctx context.Context, c *catalog.Catalog, s catalog.Scope, title string) (*v1alpha1.Label, error) {
	var holder titled
	for _, level := range slices.Backward(s.Levels()) {
		found, err := catalog.List[*v1alpha1.Label](ctx, c, indexLabel, keys(level.Keys(), title)...)
		if err != nil {
			return nil, err
		}
		for _, l := range found {
			if next := of(l, level); catalog.Belongs(l, level.Target()) && next.precedes(holder) {
				holder = next
			}
		}
	}
	return holder.Label, nil
}

// keys returns the keys of labels with a title, given the keys of their target.
func keys(targets []string, title string) []string {
	keys := make([]string, 0, len(targets))
	for _, t := range targets {
		keys = append(keys, t+"|"+title)
	}
	return keys
}

// OfProject is a label with its project.
type OfProject struct {
	*v1alpha1.Label
	Project *v1alpha1.Project
}

// InProjects returns the labels with a title that are declared for any project directly in a group, whether or not they are in force.
func InProjects(ctx context.Context, c *catalog.Catalog, g *v1alpha1.Group, title string) ([]OfProject, error) {
	found, err := catalog.List[*v1alpha1.Label](ctx, c, indexTitle, title)
	if err != nil {
		return nil, err
	}
	var all []OfProject
	for _, l := range found {
		if l.Namespace != g.Namespace || l.Spec.ProjectRef == nil {
			continue
		}
		target, err := c.Target(ctx, l)
		if errors.Is(err, catalog.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		p := target.(*v1alpha1.Project)
		in, err := c.Group(ctx, p.Namespace, p.Spec.GroupRef)
		if err != nil && !errors.Is(err, catalog.ErrNotFound) {
			return nil, err
		}
		if in != nil && in.UID == g.UID && catalog.Belongs(l, p) {
			all = append(all, OfProject{l, p})
		}
	}
	return all, nil
}

// Rivals maps a label to the labels that it can keep from being in force: those with its title in the same target and in everything below.
func Rivals(c *catalog.Catalog) handler.MapFunc {
	return func(ctx context.Context, obj client.Object) (requests []reconcile.Request) {
		l := obj.(*v1alpha1.Label)
		path := l.Status.TargetPath
		if path == "" {
			scope, err := c.ScopeOf(ctx, l)
			if err != nil {
				return nil // it holds no title
			}
			path = scope.Path()
		}
		rivals, err := catalog.List[*v1alpha1.Label](ctx, c, indexTitle, l.Spec.Title)
		if err != nil {
			log.FromContext(ctx).Error(err, "Failed to look up the labels with a title", "label", client.ObjectKeyFromObject(l))
			return nil
		}
		for _, r := range rivals {
			// A label without a path will be reconciled anyway.
			if within(r.Status.TargetPath, path) {
				requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(r)})
			}
		}
		return requests
	}
}

// within reports whether a full path is above or a path below it.
func within(fullPath, above string) bool {
	n := len(above)
	return len(fullPath) >= n && strings.EqualFold(fullPath[:n], above) && (len(fullPath) == n || fullPath[n] == '/')
}

// Claims returns the claims of a label.
func Claims(ctx context.Context, c *catalog.Catalog, l *v1alpha1.Label) ([]claim.Claim, error) {
	return catalog.ClaimsIn(ctx, c, l, func(target types.UID) claim.Claim { return claim.Label(target, l.Spec.Title) })
}
