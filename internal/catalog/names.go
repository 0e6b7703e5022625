package catalog

import (
	"strconv"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
)

// Show writes a reference as a person would name it.
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

// DisplayName is what people call a user.
func DisplayName(u *v1alpha1.User) string { return Title(u.Spec.Name, u.Spec.Username) }

// Title is the declared name, or the path in its place.
func Title(name, segment string) string {
	if name != "" {
		return name
	}
	return segment
}

// DefaultBranch is what HEAD of a project's repository names, or will; empty for one that is still to be imported.
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
