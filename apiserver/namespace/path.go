package namespace

import (
	"regexp"
	"strings"

	"github.com/forgeplane/forgeplane/apiserver/endpoint"
)

// The bounds of what groups and projects declare alike.
const (
	maxPath = 255
	maxName = 255
)

var paths = regexp.MustCompile(`^[a-zA-Z0-9_]([a-zA-Z0-9_.-]*[a-zA-Z0-9_])?$`)

// CheckPath refuses a path that a segment of a full path cannot have.
func CheckPath(a *endpoint.Attributes, path string) {
	switch {
	case path == "":
		a.Refuse("path", "can't be blank")
	case !a.Text("path", path, maxPath):
	case !paths.MatchString(path):
		a.Refuse("path", "can contain only letters, digits, '_', '-' and '.', and begins and ends with a letter, digit or '_'")
	case strings.HasSuffix(path, ".git"), strings.HasSuffix(path, ".atom"):
		a.Refuse("path", "cannot end in '.git' or '.atom'")
	}
}

// Reserved reports whether a root segment is used by the forge's own listener: by the REST API, by the registry and its tokens, or by the
// pages of the forge. Neither a root group nor a user can have it.
func Reserved(segment string) bool {
	switch strings.ToLower(segment) {
	case "-", "api", "v2", "jwt":
		return true
	default:
		return false
	}
}

// ReservedName is the validation error of a Reserved segment.
const ReservedName = "is a reserved name"

// CheckRootPath is CheckPath for a segment at the root.
func CheckRootPath(a *endpoint.Attributes, path string) {
	if Reserved(path) {
		a.Refuse("path", ReservedName)
		return
	}
	CheckPath(a, path)
}

// CheckName refuses a display name that a group or project cannot have. An empty name is allowed, and means the path.
func CheckName(a *endpoint.Attributes, name string) {
	if name != "" && strings.TrimSpace(name) == "" {
		a.Refuse("name", "can't be blank")
	}
	a.Text("name", name, maxName)
}
