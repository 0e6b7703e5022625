package catalog

import (
	"strconv"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
)

// Show formats a reference for messages.
func Show(ref v1alpha1.Reference) string {
	switch {
	case ref.Name != "":
		return ref.Name
	case ref.Path != "":
		return ref.Path
	default:
		return "with id " + strconv.FormatInt(ref.ID, 10)
	}
}

// DisplayName returns the name of a user for display.
func DisplayName(u *v1alpha1.User) string { return Title(u.Spec.Name, u.Spec.Username) }

// Title returns the declared name, or the path if there is none.
func Title(name, segment string) string {
	if name != "" {
		return name
	}
	return segment
}

// DefaultBranch returns the branch that HEAD of a project's repository names, or will name once it exists; empty for a project whose import
// has not finished.
func DefaultBranch(p *v1alpha1.Project) string {
	switch {
	case p.Spec.DefaultBranch != "":
		return p.Spec.DefaultBranch
	case p.Status.DefaultBranch != "" || p.Spec.ImportURL != "":
		return p.Status.DefaultBranch
	default:
		return "main"
	}
}
