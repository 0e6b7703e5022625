// Package triggertoken generates the values of trigger tokens, and finds tokens by their values.
package triggertoken

import (
	"crypto/rand"
	"encoding/hex"
	"strings"
)

// Prefix begins every generated value, so that a leaked one can be recognised.
const Prefix = "glptt-"

const (
	// size is the number of random bytes in a value.
	size = 20
	// shown is the number of characters of a value that all callers who can see the token see.
	shown = 4
)

// Generate returns a new value.
func Generate() string {
	random := make([]byte, size)
	_, _ = rand.Read(random) // it never fails: without randomness, the process ends
	return Prefix + hex.EncodeToString(random)
}

// Short returns the part of a value that callers other than the owner see.
func Short(value string) string {
	value = strings.TrimPrefix(value, Prefix)
	return value[:min(len(value), shown)]
}
