package catalog

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
)

// forkIndexes returns the indexes by which forks are found.
func forkIndexes() []Index {
	return []Index{
		{&v1alpha1.Project{}, IndexForkOf, func(o client.Object) []string {
			if f := o.(*v1alpha1.Project).Spec.ForkOf; f != nil {
				return RefKeys(o, &f.ProjectRef)
			}
			return nil
		}},
		{&v1alpha1.Project{}, IndexOrigin, func(o client.Object) []string {
			origin, _ := o.(*v1alpha1.Project).Origin()
			return Text(origin.UID)
		}},
	}
}

// Origin returns the origin of a fork, or ErrNotFound.
func (c *Catalog) Origin(ctx context.Context, p *v1alpha1.Project) (*v1alpha1.Project, error) {
	ref, ok := p.Origin()
	if !ok {
		return nil, ErrNotFound
	}
	return c.AnyProject(ctx, p.Namespace, ref)
}

// Forks returns the forks of a project.
func (c *Catalog) Forks(ctx context.Context, p *v1alpha1.Project) ([]*v1alpha1.Project, error) {
	return List[*v1alpha1.Project](ctx, c, IndexOrigin, string(p.UID))
}

// DeclaredOrigin returns the project that forkOf names, or ErrNotFound. A project that the namespace must not read is not found: its UID shows
// that a user who can read it has chosen it, and without the UID it must be in the same namespace, or public.
func (c *Catalog) DeclaredOrigin(ctx context.Context, p *v1alpha1.Project) (*v1alpha1.Project, error) {
	ref := p.Spec.ForkOf.ProjectRef
	from, err := c.AnyProject(ctx, p.Namespace, ref)
	if err != nil || ref.UID != "" {
		return from, err
	}
	if open, err := c.OpenTo(ctx, p.Namespace, from); err != nil {
		return nil, err
	} else if !open {
		return nil, fmt.Errorf("project %s: %w", Show(ref), ErrNotFound)
	}
	return from, nil
}

// OpenTo reports whether everybody who can declare projects in a namespace can read the repository of p: it is in the same namespace, or public.
func (c *Catalog) OpenTo(ctx context.Context, namespace string, p *v1alpha1.Project) (bool, error) {
	if p.Namespace == namespace {
		return true, nil
	}
	chain, err := c.GroupsOf(ctx, p)
	if err != nil {
		if Misplaced(err) {
			err = nil
		}
		return false, err
	}
	return Visibility(p.Spec.Visibility, chain) == v1alpha1.VisibilityPublic && p.Spec.Features.Repository == v1alpha1.FeatureEnabled, nil
}

// maxForks limits the number of forks of forks that are followed.
const maxForks = 100

// Related reports whether two projects are the same, or forks that go back to one project.
func (c *Catalog) Related(ctx context.Context, a, b *v1alpha1.Project) (bool, error) {
	known := map[types.UID]bool{}
	for _, p := range []*v1alpha1.Project{a, b} {
		own := map[types.UID]bool{} // forks can form a cycle
		for n := 0; n < maxForks && !own[p.UID]; n++ {
			if known[p.UID] {
				return true, nil
			}
			own[p.UID] = true
			origin, err := c.Origin(ctx, p)
			if errors.Is(err, ErrNotFound) {
				break
			}
			if err != nil {
				return false, err
			}
			p = origin
		}
		known = own
	}
	return false, nil
}
