package namespace

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/forgeplane/forgeplane/apiserver/endpoint"
)

// The bounds of what groups and projects declare alike.
const (
	maxPath = 255
	maxName = 255
)

// Attributes gathers what is wrong with a group or project that a REST caller would declare, by attribute. They are looked at
// before anything is written, and are refused in the words of the REST API; the schemas of the kinds refuse the same.
type Attributes struct{ wrong map[string][]string }

// Refuse says what is wrong with an attribute.
func (a *Attributes) Refuse(name, what string) {
	if a.wrong == nil {
		a.wrong = map[string][]string{}
	}
	a.wrong[name] = append(a.wrong[name], what)
}

// Err returns a 400 with all refused attributes, or nil if there are none.
func (a *Attributes) Err() error {
	if a.wrong == nil {
		return nil
	}
	return endpoint.Invalid(a.wrong)
}

var paths = regexp.MustCompile(`^[a-zA-Z0-9_]([a-zA-Z0-9_.-]*[a-zA-Z0-9_])?$`)

// Path looks at a segment of a full path.
func (a *Attributes) Path(path string) {
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

// ReservedName is what is wrong with a segment that is Reserved.
const ReservedName = "is a reserved name"

// RootPath is Path for a segment at the root.
func (a *Attributes) RootPath(path string) {
	if Reserved(path) {
		a.Refuse("path", ReservedName)
		return
	}
	a.Path(path)
}

// Name looks at what people call a group or project; nothing stands for the path.
func (a *Attributes) Name(name string) {
	if name != "" && strings.TrimSpace(name) == "" {
		a.Refuse("name", "can't be blank")
	}
	a.Text("name", name, maxName)
}

// Text refuses a text of more characters than there may be, and reports whether it is short enough.
func (a *Attributes) Text(name, text string, most int) bool {
	if utf8.RuneCountInString(text) > most {
		a.Refuse(name, fmt.Sprintf("is too long (maximum is %d characters)", most))
		return false
	}
	return true
}
