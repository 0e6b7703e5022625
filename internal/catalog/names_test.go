package catalog_test

import (
	"testing"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
)

func TestDefaultBranch(t *testing.T) {
	for name, tt := range map[string]struct {
		p    v1alpha1.Project
		want string
	}{
		"no branch is known":            {v1alpha1.Project{}, "main"},
		"the repository has one":        {v1alpha1.Project{Status: v1alpha1.ProjectStatus{DefaultBranch: "trunk"}}, "trunk"},
		"one is declared":               {v1alpha1.Project{Spec: v1alpha1.ProjectSpec{DefaultBranch: "next"}, Status: v1alpha1.ProjectStatus{DefaultBranch: "trunk"}}, "next"},
		"the import is not done":        {v1alpha1.Project{Spec: v1alpha1.ProjectSpec{ImportURL: "https://a"}}, ""},
		"it was imported with this one": {v1alpha1.Project{Spec: v1alpha1.ProjectSpec{ImportURL: "https://a"}, Status: v1alpha1.ProjectStatus{DefaultBranch: "trunk"}}, "trunk"},
	} {
		if got := catalog.DefaultBranch(&tt.p); got != tt.want {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
}
