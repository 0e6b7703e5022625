// Package triggertoken generates the values of trigger tokens, and finds tokens by their values.
package triggertoken

import (
	"strings"

	"github.com/forgeplane/forgeplane/internal/credential"
)

// Prefix begins every generated value, so that a leaked one can be recognised.
const Prefix = "glptt-"

// shown is the number of characters of a value that all callers who can see the token see.
const shown = 4

// Generate returns a new value.
func Generate() string { return credential.NewToken(Prefix) }

// Short returns the part of a value that callers other than the owner see.
func Short(value string) string {
	value = strings.TrimPrefix(value, Prefix)
	return value[:min(len(value), shown)]
}
