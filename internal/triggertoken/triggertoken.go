// Package triggertoken makes the values of trigger tokens, and finds the tokens.
package triggertoken

import (
	"crypto/rand"
	"encoding/hex"
	"strings"
)

// Prefix begins every generated value, so that a leaked one can be recognised.
const Prefix = "glptt-"

const (
	// size is how many random bytes a value has.
	size = 20
	// shown is how many characters of a value everybody sees who may see the token.
	shown = 4
)

// Generate returns a new value.
func Generate() string {
	random := make([]byte, size)
	_, _ = rand.Read(random) // It never fails: the process ends where there is no randomness.
	return Prefix + hex.EncodeToString(random)
}

// Short is what those see of a value who do not own the token.
func Short(value string) string {
	value = strings.TrimPrefix(value, Prefix)
	return value[:min(len(value), shown)]
}
