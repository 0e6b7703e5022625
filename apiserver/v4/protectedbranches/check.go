package protectedbranches

import (
	"fmt"
	"regexp"
	"slices"
	"unicode/utf8"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
)

// The bounds of what is declared.
const (
	maxName   = 255
	maxLevels = 50
)

var names = regexp.MustCompile(`^[^\x00-\x20\x7f~^:?\[\\-][^\x00-\x20\x7f~^:?\[\\]*$`)

// check says what is wrong with a protection that is to be declared.
func check(b *v1alpha1.ProtectedBranch) error {
	var wrong []string
	switch name := b.Spec.Branch; {
	case utf8.RuneCountInString(name) > maxName:
		wrong = append(wrong, fmt.Sprintf("Name is too long (maximum is %d characters)", maxName))
	case !names.MatchString(name):
		wrong = append(wrong, "Name is not that of a branch, and no wildcard")
	}
	for _, set := range []struct {
		what   string
		levels []v1alpha1.AccessLevel
	}{{"Push", b.Spec.Push}, {"Merge", b.Spec.Merge}, {"Unprotect", b.Spec.Unprotect}} {
		if len(set.levels) > maxLevels {
			wrong = append(wrong, fmt.Sprintf("%s access levels are too many (maximum is %d)", set.what, maxLevels))
		}
	}
	if slices.ContainsFunc(b.Spec.Unprotect, func(l v1alpha1.AccessLevel) bool { return l.Role == v1alpha1.AccessNoOne }) {
		// Nobody could take the protection away.
		wrong = append(wrong, "Unprotect access levels access level is not included in the list")
	}
	if len(wrong) > 0 {
		return endpoint.Unprocessable(wrong...)
	}
	return nil
}
