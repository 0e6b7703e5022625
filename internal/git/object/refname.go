// Package object has the formats of Git that need no repository: objects, and the names of refs and revisions.
package object

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// InternalRefs is the prefix of refs that the server uses internally: clients can neither see nor change them.
const InternalRefs = "refs/forgeplane/"

// MaxRefName is the maximum length of a ref name, in bytes.
const MaxRefName = 1024

// maxComponent keeps "<component>.lock" within the limits of file systems.
const maxComponent = 250

// CheckRefName returns an error if a full ref name, such as "refs/heads/main", must not be used. It applies the rules of `git
// check-ref-format`. In addition, the name must be valid UTF-8 of limited length without control characters, and neither the name nor the
// part that people type ("main") may begin with a dash, which commands would interpret as an option. The error is meant for users and
// quotes the name.
func CheckRefName(name string) error {
	if err := checkRefName(name); err != nil {
		if len(name) > MaxRefName {
			name = name[:MaxRefName] + "..."
		}
		return fmt.Errorf("%q is not a valid ref name: %w", name, err)
	}
	return nil
}

// CheckBranchName returns an error if no branch may have a name such as "main". It applies the rules of CheckRefName. In addition, the name
// must not begin with "refs/", as in "refs/heads/main", which is always a mistake. The error is meant for users.
func CheckBranchName(name string) error {
	if strings.HasPrefix(name, "refs/") {
		return errors.New("it begins with refs/: write prod, not refs/heads/prod")
	}
	return checkRefName(BranchPrefix + name)
}

func checkRefName(name string) error {
	switch {
	case len(name) > MaxRefName:
		return fmt.Errorf("it is longer than %d bytes", MaxRefName)
	case !utf8.ValidString(name):
		return errors.New("it is not valid UTF-8")
	case !strings.Contains(name, "/"):
		return errors.New(`it has no "/"`)
	case strings.HasPrefix(short(name), "-") || name[0] == '-':
		return errors.New(`it begins with "-"`)
	case strings.Contains(name, ".."):
		return errors.New(`it contains ".."`)
	case strings.Contains(name, "@{"):
		return errors.New(`it contains "@{"`)
	case strings.HasSuffix(name, "."):
		return errors.New(`it ends with "."`)
	}
	for _, c := range name {
		switch {
		case unicode.IsControl(c):
			return errors.New("it contains a control character")
		case strings.ContainsRune(" ~^:?*[\\", c):
			return fmt.Errorf("it contains %q", c)
		}
	}
	for component := range strings.SplitSeq(name, "/") {
		switch {
		case component == "":
			return errors.New(`it has an extra "/"`)
		case component[0] == '.':
			return errors.New(`a part of it begins with "."`)
		case strings.HasSuffix(component, ".lock"):
			return errors.New(`a part of it ends with ".lock"`)
		case len(component) > maxComponent:
			return fmt.Errorf("a part of it is longer than %d bytes", maxComponent)
		}
	}
	return nil
}

// short returns the part of a name that people type, which follows "refs/heads/" or a similar prefix.
func short(name string) string {
	rest, ok := strings.CutPrefix(name, "refs/")
	if !ok {
		return name
	}
	_, rest, _ = strings.Cut(rest, "/")
	return rest
}
