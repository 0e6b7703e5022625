package catalog

import (
	"context"
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
)

// +kubebuilder:rbac:groups=forgeplane.dev,resources=retainedrepositories,verbs=list;watch,roleName=forgeplane-manager

// retainedIndexes are those of the repositories that deleted projects have left, and of the projects that are about to.
func retainedIndexes() []index {
	of := func(o client.Object) *v1alpha1.RetainedRepository { return o.(*v1alpha1.RetainedRepository) }
	return []index{
		{&v1alpha1.RetainedRepository{}, IndexFormer, func(o client.Object) []string {
			was := of(o).Spec.Project
			keys := []string{nameKey(was.Namespace, was.Name)}
			if was.FullPath == "" {
				return keys
			}
			return append(keys, pathKey(was.FullPath))
		}},
		{&v1alpha1.RetainedRepository{}, IndexAdopter, func(o client.Object) (keys []string) {
			if by := of(o).Spec.AdoptBy; by != nil {
				keys = append(keys, nameKey(by.Namespace, by.Name))
			}
			if by := of(o).Status.AdoptedBy; by != nil {
				keys = append(keys, by.UID)
			}
			return keys
		}},
		{&v1alpha1.RetainedRepository{}, IndexStorage, func(o client.Object) []string { return []string{of(o).Spec.Storage} }},
		{&v1alpha1.RetainedRepository{}, IndexNamespace, func(o client.Object) []string { return []string{of(o).Spec.Project.Namespace} }},
		{&v1alpha1.Project{}, IndexLeaving, func(o client.Object) []string {
			if o.GetDeletionTimestamp().IsZero() {
				return nil
			}
			return []string{o.GetNamespace()}
		}},
	}
}

func (c *Catalog) retained(ctx context.Context, index string, keys ...string) ([]*v1alpha1.RetainedRepository, error) {
	var l v1alpha1.RetainedRepositoryList
	return list(ctx, c.reader, &l, func() []v1alpha1.RetainedRepository { return l.Items }, index, keys...)
}

// RetainedFor returns, in no order, the retained repositories that a project may have something to do with: those of projects of its
// namespace and name or of its full path, those that it names in adoptRepository, and those that name it. The path may be empty. Some
// of them may be of other namespaces.
func (c *Catalog) RetainedFor(ctx context.Context, p *v1alpha1.Project, fullPath string) ([]*v1alpha1.RetainedRepository, error) {
	former, wanted := []string{nameKey(p.Namespace, p.Name)}, p.Spec.AdoptRepository
	if wanted != "" {
		former = append(former, nameKey(p.Namespace, wanted))
	}
	if fullPath != "" {
		former = append(former, pathKey(fullPath))
	}
	found, err := c.retained(ctx, IndexFormer, former...)
	if err != nil {
		return nil, err
	}
	named, err := c.retained(ctx, IndexAdopter, nameKey(p.Namespace, p.Name), string(p.UID))
	if err != nil {
		return nil, err
	}
	if wanted != "" {
		r, err := c.RetainedRepository(ctx, wanted)
		if err == nil {
			named = append(named, r)
		} else if !errors.Is(err, ErrNotFound) {
			return nil, err
		}
	}
	seen := map[string]bool{}
	for _, r := range found {
		seen[r.Name] = true
	}
	for _, r := range named {
		if !seen[r.Name] {
			seen[r.Name] = true
			found = append(found, r)
		}
	}
	return found, nil
}

// RetainedTakenBy returns the retained repositories that a project is taking over.
func (c *Catalog) RetainedTakenBy(ctx context.Context, p *v1alpha1.Project) ([]*v1alpha1.RetainedRepository, error) {
	return c.retained(ctx, IndexAdopter, string(p.UID))
}

// RetainedOnStorage returns the retained repositories on a shard.
func (c *Catalog) RetainedOnStorage(ctx context.Context, storage string) ([]*v1alpha1.RetainedRepository, error) {
	return c.retained(ctx, IndexStorage, storage)
}

// RetainedFrom returns the retained repositories that projects of a namespace have left, of earlier namespaces of its name too.
func (c *Catalog) RetainedFrom(ctx context.Context, namespace string) ([]*v1alpha1.RetainedRepository, error) {
	return c.retained(ctx, IndexNamespace, namespace)
}

// ProjectsLeaving returns the projects of a namespace that are being deleted.
func (c *Catalog) ProjectsLeaving(ctx context.Context, namespace string) ([]*v1alpha1.Project, error) {
	return c.projects(ctx, IndexLeaving, namespace)
}

// RetainedRepository returns a retained repository by its name, or ErrNotFound.
func (c *Catalog) RetainedRepository(ctx context.Context, name string) (*v1alpha1.RetainedRepository, error) {
	var r v1alpha1.RetainedRepository
	if err := c.get(ctx, client.ObjectKey{Name: name}, &r); err != nil {
		return nil, fmt.Errorf("retained repository %s: %w", name, err)
	}
	return &r, nil
}
