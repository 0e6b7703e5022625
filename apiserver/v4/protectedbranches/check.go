package protectedbranches

import (
	"fmt"
	"regexp"
	"slices"
	"unicode/utf8"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/internal/accesslevel"
	"github.com/forgeplane/forgeplane/internal/protection"
)

// Limits of the schema.
const (
	maxName   = 255
	maxLevels = 50
)

var names = regexp.MustCompile(`^[^\x00-\x20\x7f~^:?\[\\-][^\x00-\x20\x7f~^:?\[\\]*$`)

// check returns the validation errors of a protection.
func check(b *v1alpha1.ProtectedBranch) error {
	var wrong []string
	switch name := b.Spec.Branch; {
	case utf8.RuneCountInString(name) > maxName:
		wrong = append(wrong, fmt.Sprintf("Name is too long (maximum is %d characters)", maxName))
	case !names.MatchString(name):
		wrong = append(wrong, "Name must be the name of a branch or a wildcard")
	default:
		if err := protection.CheckName(name); err != nil {
			wrong = append(wrong, "Name "+err.Error())
		}
	}
	for _, set := range []struct {
		name   accesslevel.Set
		levels []v1alpha1.AccessLevel
	}{{accesslevel.Push, b.Spec.Push}, {accesslevel.Merge, b.Spec.Merge}, {accesslevel.Unprotect, b.Spec.Unprotect}} {
		if len(set.levels) > maxLevels {
			wrong = append(wrong, text(set.name, fmt.Sprintf("are too many (maximum is %d)", maxLevels)))
		}
	}
	if slices.ContainsFunc(b.Spec.Unprotect, func(l v1alpha1.AccessLevel) bool { return l.Role == v1alpha1.AccessNoOne }) {
		// Otherwise no caller could remove the protection.
		wrong = append(wrong, text(accesslevel.Unprotect, "access level is not included in the list"))
	}
	if len(wrong) > 0 {
		return endpoint.Unprocessable(wrong...)
	}
	return nil
}
