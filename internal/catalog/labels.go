package catalog

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/claim"
)

func (c *Catalog) labels(ctx context.Context, index string, keys ...string) ([]*v1alpha1.Label, error) {
	var l v1alpha1.LabelList
	return list(ctx, c.reader, &l, func() []v1alpha1.Label { return l.Items }, index, keys...)
}

// LabelScope returns what a label is declared for.
func (c *Catalog) LabelScope(ctx context.Context, l *v1alpha1.Label) (Scope, error) {
	return c.TargetScope(ctx, l.Namespace, l.Spec.ProjectRef, l.Spec.GroupRef)
}

// levels are the scope itself and those of the groups above, the nearest first.
func (s Scope) levels() []Scope {
	all := make([]Scope, 0, len(s.Groups)+1)
	if s.Project != nil {
		all = append(all, s)
	}
	for i := range s.Groups {
		all = append(all, Scope{Groups: s.Groups[i:]})
	}
	return all
}

// InheritedLabel is a label, and what it is declared for: the scope that was asked about, or a group above.
type InheritedLabel struct {
	*v1alpha1.Label
	Of Scope
	// Above is how many levels above the scope that is, 0 for the scope itself.
	Above int
}

// Labels returns the labels that are in force in a scope, the inherited ones included, from the nearest level to the farthest
// and in no order within one. A label is not in force where another one holds its title, that is declared for the same target or for
// a group above that, nor while another one holds its id.
func (c *Catalog) Labels(ctx context.Context, s Scope) ([]InheritedLabel, error) {
	levels := s.levels()
	declared := make([][]*v1alpha1.Label, len(levels))
	holders := map[string]titled{}
	inForce := map[*v1alpha1.Label]bool{}
	for i := len(levels) - 1; i >= 0; i-- {
		var err error
		if declared[i], err = c.labelsOf(ctx, levels[i]); err != nil {
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
	all := make([]InheritedLabel, 0, len(inForce))
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
				all = append(all, InheritedLabel{Label: l, Of: level, Above: i})
			}
		}
	}
	return all, nil
}

// titled is a label that claims a title where it is declared.
type titled struct {
	*v1alpha1.Label
	target types.UID
	shown  bool
}

func of(l *v1alpha1.Label, level Scope) titled {
	target := level.Target().GetUID()
	return titled{l, target, claim.Label(target, l.Spec.Title).ShownBy(l)}
}

// precedes reports whether a label holds its title rather than b, which may be nobody, and is of the same target or a group above.
// Of two that hold theirs each, the one further down came first: it would not have got its title later.
func (a titled) precedes(b titled) bool {
	if b.Label == nil || a.shown && b.shown && a.target != b.target {
		return true
	}
	return claim.Precedes(a, a.shown, b, b.shown)
}

// labelsOf returns the labels that are declared for a scope itself.
func (c *Catalog) labelsOf(ctx context.Context, s Scope) ([]*v1alpha1.Label, error) {
	index := IndexGroup
	if s.Project != nil {
		index = IndexProject
	}
	found, err := c.labels(ctx, index, s.keys()...)
	return belonging(found, s.Target()), err
}

// LabelsWithID returns the labels that declare an id, be they in force or not.
func (c *Catalog) LabelsWithID(ctx context.Context, id int64) ([]*v1alpha1.Label, error) {
	return c.labels(ctx, IndexID, strconv.FormatInt(id, 10))
}

// LabelHolder returns the label that holds a title in a scope, and is declared for that itself or for a group above; nil when there
// is none.
func (c *Catalog) LabelHolder(ctx context.Context, s Scope, title string) (*v1alpha1.Label, error) {
	var holder titled
	for _, level := range slices.Backward(s.levels()) {
		found, err := c.labels(ctx, IndexLabel, labelKeys(level.keys(), title)...)
		if err != nil {
			return nil, err
		}
		for _, l := range belonging(found, level.Target()) {
			if next := of(l, level); next.precedes(holder) {
				holder = next
			}
		}
	}
	return holder.Label, nil
}

func labelKeys(targets []string, title string) []string {
	keys := make([]string, 0, len(targets))
	for _, t := range targets {
		keys = append(keys, labelKey(t, title))
	}
	return keys
}

// ProjectLabel is a label, and the project that it is declared for.
type ProjectLabel struct {
	*v1alpha1.Label
	Project *v1alpha1.Project
}

// ProjectLabels returns the labels of a title that are declared for any of the projects right in a group, in force or not.
func (c *Catalog) ProjectLabels(ctx context.Context, g *v1alpha1.Group, title string) ([]ProjectLabel, error) {
	found, err := c.labels(ctx, IndexTitle, title)
	if err != nil {
		return nil, err
	}
	var all []ProjectLabel
	for _, l := range found {
		if l.Namespace != g.Namespace || l.Spec.ProjectRef == nil {
			continue
		}
		p, err := c.Project(ctx, l.Namespace, *l.Spec.ProjectRef)
		if errors.Is(err, ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		in, err := c.Group(ctx, p.Namespace, p.Spec.GroupRef)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return nil, err
		}
		if same(in, g) && Belongs(l, p) {
			all = append(all, ProjectLabel{l, p})
		}
	}
	return all, nil
}

// ProjectsBelow returns the projects anywhere below a group.
func (c *Catalog) ProjectsBelow(ctx context.Context, g *v1alpha1.Group) ([]*v1alpha1.Project, error) {
	found, err := c.projects(ctx, IndexGroup, append(c.GroupKeys(ctx, g), c.KeysBelow(ctx, g)...)...)
	if err != nil {
		return nil, err
	}
	var below []*v1alpha1.Project
	for _, p := range found {
		// A key may be that of an older group, too, and not every group that names one above it is admitted there.
		chain, err := c.GroupsOf(ctx, p)
		if err != nil && !Misplaced(err) {
			return nil, err
		}
		if err == nil && slices.ContainsFunc(chain, func(above *v1alpha1.Group) bool { return same(above, g) }) {
			below = append(below, p)
		}
	}
	return below, nil
}

// LabelRivals maps a label to those that it may keep from being in force: the ones of its title for the same target, and for
// everything below.
func (c *Catalog) LabelRivals(ctx context.Context, obj client.Object) []reconcile.Request {
	l := obj.(*v1alpha1.Label)
	path := l.Status.TargetPath
	if path == "" {
		scope, err := c.LabelScope(ctx, l)
		if err != nil {
			return nil // it holds nothing
		}
		path = scope.Path()
	}
	rivals, err := c.labels(ctx, IndexTitle, l.Spec.Title)
	if err != nil {
		log.FromContext(ctx).Error(err, "Looking up the labels of a title", "label", client.ObjectKeyFromObject(l))
		return nil
	}
	var requests []reconcile.Request
	for _, r := range rivals {
		// One that has no path yet is about to be reconciled anyway.
		if within(r.Status.TargetPath, path) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(r)})
		}
	}
	return requests
}

// within reports whether a full path is that of a group or project, or leads to something below it.
func within(fullPath, above string) bool {
	n := len(above)
	return len(fullPath) >= n && strings.EqualFold(fullPath[:n], above) && (len(fullPath) == n || fullPath[n] == '/')
}
