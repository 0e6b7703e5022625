package repository

import (
	"context"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
)

// Admits reports whether a shard takes the projects of a namespace. Without allowedNamespaces, it takes those of every namespace. platform is the
// namespace of Forgeplane, which each shard admits.
func Admits(ctx context.Context, cat *catalog.Catalog, s *v1alpha1.RepositoryStorage, platform, namespace string) (bool, error) {
	if s.Spec.AllowedNamespaces == nil {
		return true, nil
	}
	return cat.Admits(ctx, s.Spec.AllowedNamespaces, platform, namespace)
}

// Admitting returns the shards that take the projects of a namespace, ready or not; see Admits.
func Admitting(ctx context.Context, cat *catalog.Catalog, platform, namespace string) (admitting []*v1alpha1.RepositoryStorage, err error) {
	all, err := catalog.All[*v1alpha1.RepositoryStorage](ctx, cat)
	if err != nil {
		return nil, err
	}
	for _, s := range all {
		admits, err := Admits(ctx, cat, s, platform, namespace)
		if err != nil {
			return nil, err
		}
		if admits {
			admitting = append(admitting, s)
		}
	}
	return admitting, nil
}
