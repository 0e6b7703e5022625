package catalog

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
)

// +kubebuilder:rbac:groups=forgeplane.dev,resources=retainedrepositories,verbs=list;watch,roleName=forgeplane-manager

// RetainedRepositories returns all repositories that deleted projects have left. Its cost grows with their number.
func (c *Catalog) RetainedRepositories(ctx context.Context) ([]*v1alpha1.RetainedRepository, error) {
	var l v1alpha1.RetainedRepositoryList
	if err := c.reader.List(ctx, &l, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing retained repositories: %w", err)
	}
	return pointers(l.Items), nil
}

// RetainedRepository returns a retained repository by its name, or ErrNotFound.
func (c *Catalog) RetainedRepository(ctx context.Context, name string) (*v1alpha1.RetainedRepository, error) {
	var r v1alpha1.RetainedRepository
	if err := c.get(ctx, client.ObjectKey{Name: name}, &r); err != nil {
		return nil, fmt.Errorf("retained repository %s: %w", name, err)
	}
	return &r, nil
}
