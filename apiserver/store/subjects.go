package store

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/feature"
)

// Groups returns the store of the groups that requests are about.
func Groups(b Backend) *Store[Only, *v1alpha1.Group] {
	s := New(b, func(_ context.Context, of auth.Subject, _ Only) (*v1alpha1.Group, error) {
		return of.Scope.Groups[0], nil
	})
	s.holder = "Group"
	return s.Named("Group", "Group")
}

// Projects returns the store of the projects that requests are about.
func Projects(b Backend) *Store[Only, *v1alpha1.Project] {
	s := New(b, func(_ context.Context, of auth.Subject, _ Only) (*v1alpha1.Project, error) {
		return of.Scope.Project, nil
	})
	s.holder = "Group"
	return s.Named("Project", "Project")
}

// Features returns the store of the ConfigMap of flags. Flags.Values creates it.
func Features(b Backend, flags *feature.Flags) *Store[Only, *corev1.ConfigMap] {
	return New(b, func(ctx context.Context, _ auth.Subject, _ Only) (*corev1.ConfigMap, error) {
		values, found, err := flags.Stored(ctx)
		if err == nil && !found {
			err = catalog.ErrNotFound
		}
		return values, err
	})
}
