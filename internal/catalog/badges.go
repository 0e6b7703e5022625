package catalog

import (
	"cmp"
	"context"
	"slices"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
)

func (c *Catalog) badges(ctx context.Context, index string, keys ...string) ([]*v1alpha1.Badge, error) {
	var l v1alpha1.BadgeList
	return list(ctx, c.reader, &l, func() []v1alpha1.Badge { return l.Items }, index, keys...)
}

// BadgesIn returns the badges that are declared for a scope itself, the oldest first.
func (c *Catalog) BadgesIn(ctx context.Context, s Scope) ([]*v1alpha1.Badge, error) {
	index := IndexGroup
	if s.Project != nil {
		index = IndexProject
	}
	found, err := c.badges(ctx, index, s.keys()...)
	if err != nil {
		return nil, err
	}
	found = belonging(found, s.Target())
	slices.SortFunc(found, byCreation)
	return found, nil
}

// Badges returns every badge that a project shows, its own and those of its groups, the oldest first.
func (c *Catalog) Badges(ctx context.Context, s Scope) ([]*v1alpha1.Badge, error) {
	all, err := c.BadgesIn(ctx, s)
	if err != nil {
		return nil, err
	}
	for i := range s.Groups {
		inherited, err := c.BadgesIn(ctx, Scope{Groups: s.Groups[i:]})
		if err != nil {
			return nil, err
		}
		all = append(all, inherited...)
	}
	slices.SortFunc(all, byCreation)
	return all, nil
}

// byCreation compares badges by when they were made, and those of one second by their ids.
func byCreation(a, b *v1alpha1.Badge) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.RESTID(), b.RESTID()))
}

// DefaultBranch is what HEAD of a project's repository names, or will; empty for one that is still to be imported.
func DefaultBranch(p *v1alpha1.Project) string {
	switch {
	case p.Spec.DefaultBranch != "":
		return p.Spec.DefaultBranch
	case p.Status.DefaultBranch != "" || p.Spec.ImportURL != "":
		return p.Status.DefaultBranch
	default:
		return "main"
	}
}
