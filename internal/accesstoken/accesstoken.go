// Package accesstoken makes the values of access tokens, and finds the tokens.
package accesstoken

import (
	"crypto/rand"
	"encoding/base64"
)

// Prefix begins every generated value, so that a leaked one can be recognised.
const Prefix = "fpat-"

// size is how many random bytes a value has.
const size = 32

// Generate returns a new value.
func Generate() string {
	random := make([]byte, size)
	_, _ = rand.Read(random) // It never fails: the process ends where there is no randomness.
	return Prefix + base64.RawURLEncoding.EncodeToString(random)
}
