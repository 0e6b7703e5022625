package projects

import (
	"regexp"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/namespace"
	"github.com/forgeplane/forgeplane/internal/git/object"
)

// Limits of the schema.
const (
	maxDescription   = 2000
	maxDefaultBranch = 244
	maxImportURL     = 2048
)

var (
	importURLs = regexp.MustCompile(`^(https?|file)://[^\x00-\x20\x7f]+$`)
	// Everyone who can read the project would see a password. A password with / ? or # ends the authority early.
	credentials = regexp.MustCompile(`^(https?://.*|file://[^/]*)[@?#]`)
)

// check returns the validation errors of a project. was is its previous spec, empty for a new project.
func check(is, was v1alpha1.ProjectSpec) error {
	var a endpoint.Attributes
	namespace.CheckPath(&a, is.Path)
	if is.Name != was.Name {
		namespace.CheckName(&a, is.Name)
	}
	a.Text("description", is.Description, maxDescription)
	checkTopics(&a, is.Topics)
	if b := is.DefaultBranch; b != was.DefaultBranch && a.Text("default_branch", b, maxDefaultBranch) {
		if err := object.CheckBranchName(b); err != nil {
			a.Refuse("default_branch", "is not a valid branch name: "+err.Error())
		}
	}
	if u := is.ImportURL; u != was.ImportURL && a.Text("import_url", u, maxImportURL) {
		switch {
		case !importURLs.MatchString(u):
			a.Refuse("import_url", "must be a valid URL of the scheme http, https or file")
		case credentials.MatchString(u):
			a.Refuse("import_url", "cannot hold credentials, a query or a fragment")
		}
	}
	return a.Err()
}
