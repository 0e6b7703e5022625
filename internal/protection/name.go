package protection

import (
	"fmt"
	"strings"

	"github.com/forgeplane/forgeplane/internal/git/object"
)

// CheckName returns an error if the name of a rule covers no name that a branch can have, so that the rule protects nothing. The error is
// meant for users, and follows the name of the field.
func CheckName(name string) error {
	// No text in place of a star makes an invalid name valid.
	err := object.CheckBranchName(strings.ReplaceAll(name, "*", "x"))
	switch {
	case err == nil:
		return nil
	case strings.Contains(name, ".*"):
		return fmt.Errorf("matches no branch, because %w. It is a wildcard and not a regular expression: * alone stands for any characters", err)
	default:
		return fmt.Errorf("matches no branch, because %w", err)
	}
}
