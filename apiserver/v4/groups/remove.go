package groups

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/conditional"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/refusal"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/declare"
)

// Accepted is the answer to what goes on after it.
type Accepted struct {
	Message string `json:"message"`
}

// remove takes away a group with all that is below it, unless a project below is not for REST callers to remove.
func (f *Family) remove(ctx context.Context, s auth.Group, _ *endpoint.None) (Accepted, error) {
	g := s.Scope.Groups[0]
	if err := conditional.Check(ctx, f.writer, g); err != nil {
		return Accepted{}, refusal.Of(err, "Group")
	}
	projects, groups, err := f.below(ctx, g)
	if err != nil {
		return Accepted{}, err
	}
	if err := f.allow(ctx, projects); err != nil {
		return Accepted{}, err
	}
	var doomed []client.Object
	for _, s := range projects {
		doomed = append(doomed, s.Project.DeepCopy())
	}
	for _, s := range groups {
		doomed = append(doomed, s.Groups[0].DeepCopy())
	}
	var gone []*v1alpha1.Group
	for _, obj := range doomed {
		if err := f.writer.Delete(ctx, obj); err != nil && !errors.Is(err, declare.ErrGone) {
			return Accepted{}, errors.Join(err, f.removeLate(ctx, gone))
		}
		if g, ok := obj.(*v1alpha1.Group); ok {
			gone = append(gone, g)
		}
	}
	return Accepted{Message: "202 Accepted"}, f.removeLate(ctx, gone)
}

// lateTimeout is what there is for removing what was made while a group was being removed.
const lateTimeout = time.Minute

// removeLate removes what was made below groups while they were being removed: nobody could reach it to do so later, so it goes on when
// the client is gone. What is made from now on is taken back by who makes it.
func (f *Family) removeLate(ctx context.Context, gone []*v1alpha1.Group) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lateTimeout)
	defer cancel()
	var failed error
	for ; len(gone) > 0; gone = gone[1:] {
		projects, groups, err := f.writer.Below(ctx, gone[0])
		failed = errors.Join(failed, err)
		for _, p := range projects {
			if !p.DeletionTimestamp.IsZero() {
				continue
			}
			err := f.writer.Allow(ctx, p, p)
			if errors.As(err, new(*declare.RefusedError)) {
				continue // it is declared elsewhere, and waits for another group
			}
			if err == nil {
				err = f.writer.Discard(ctx, p)
			}
			failed = errors.Join(failed, err)
		}
		for _, g := range groups {
			if !g.DeletionTimestamp.IsZero() {
				continue
			}
			failed = errors.Join(failed, f.writer.Discard(ctx, g))
		}
		gone = append(gone, groups...)
	}
	return failed
}

// allow refuses the whole when any of the projects is not for REST callers to remove, and names it.
func (f *Family) allow(ctx context.Context, projects []catalog.Seen) error {
	for _, s := range projects {
		err := f.writer.Allow(ctx, s.Project, s.Project)
		var refused *declare.RefusedError
		if errors.As(err, &refused) {
			return endpoint.Forbidden(s.Path() + ": " + refused.Error())
		}
		if err != nil {
			return err
		}
	}
	return nil
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
