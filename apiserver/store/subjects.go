package store

import (
	"context"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
)

// Groups returns the store of the groups that requests are about.
func Groups(w Writer) *Store[Only, *v1alpha1.Group] {
	s := New(w, func(_ context.Context, of auth.Subject, _ Only) (*v1alpha1.Group, error) {
		return of.Scope.Groups[0], nil
	})
	s.holder = "Group"
	return s.Named("Group", "Group")
}

// Projects returns the store of the projects that requests are about.
func Projects(w Writer) *Store[Only, *v1alpha1.Project] {
	s := New(w, func(_ context.Context, of auth.Subject, _ Only) (*v1alpha1.Project, error) {
		return of.Scope.Project, nil
	})
	s.holder = "Group"
	return s.Named("Project", "Project")
}
