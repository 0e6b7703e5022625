package groups

import (
	"cmp"
	"context"
	"slices"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/store"
	"github.com/forgeplane/forgeplane/internal/catalog"
)

// Accepted is the answer to what goes on after it.
type Accepted struct {
	Message string `json:"message"`
}

// remove removes a group with everything below it, unless REST callers must not remove one of the projects.
func (f *Family) remove(ctx context.Context, s auth.Group, _ *endpoint.None) (Accepted, error) {
	if err := f.groups.Check(ctx, s.Subject, store.Only{}); err != nil {
		return Accepted{}, err
	}
	projects, groups, err := f.below(ctx, s.Scope.Groups[0])
	if err != nil {
		return Accepted{}, err
	}
	return Accepted{Message: "202 Accepted"}, f.tree.Remove(ctx, projects, groups)
}

// below returns the projects below a group, and the groups with itself. The deepest groups go first, so that nothing is left
// that nobody can reach when they are removed in this order.
func (f *Family) below(ctx context.Context, g *v1alpha1.Group) (projects, groups []catalog.Seen, err error) {
	tree := f.catalog.Tree(nil, f.clock.Now())
	if projects, err = tree.Projects(ctx); err != nil {
		return nil, nil, err
	}
	if groups, err = tree.Groups(ctx); err != nil {
		return nil, nil, err
	}
	elsewhere := func(s catalog.Seen) bool {
		return !slices.ContainsFunc(s.Groups, func(a *v1alpha1.Group) bool { return a.UID == g.UID })
	}
	projects, groups = slices.DeleteFunc(projects, elsewhere), slices.DeleteFunc(groups, elsewhere)
	slices.SortFunc(groups, func(a, b catalog.Seen) int { return cmp.Compare(len(b.Groups), len(a.Groups)) })
	return projects, groups, nil
}
