package badge

import (
	"cmp"
	"context"
	"slices"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
)

// Own returns the badges that are declared for a project or group itself, the oldest first.
func Own(ctx context.Context, c *catalog.Catalog, s catalog.Scope) ([]*v1alpha1.Badge, error) {
	found, err := catalog.ListInScope[*v1alpha1.Badge](ctx, c, s)
	slices.SortFunc(found, byCreation)
	return found, err
}

// All returns every badge that a project shows, its own and those of its groups, the oldest first.
func All(ctx context.Context, c *catalog.Catalog, s catalog.Scope) ([]*v1alpha1.Badge, error) {
	var all []*v1alpha1.Badge
	for _, level := range s.Levels() {
		found, err := Own(ctx, c, level)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	slices.SortFunc(all, byCreation)
	return all, nil
}

// byCreation compares badges by when they were made, and those of one second by their ids.
func byCreation(a, b *v1alpha1.Badge) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.RESTID(), b.RESTID()))
}
