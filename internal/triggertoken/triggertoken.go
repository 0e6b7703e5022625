// Package triggertoken makes the values of trigger tokens, says which ones are good, and finds the tokens.
package triggertoken

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// Prefix begins every generated value, so that a leaked one can be recognised.
const Prefix = "glptt-"

const (
	// size is how many random bytes a value has.
	size = 20
	// minLength is the shortest value that is accepted: digests of short ones could be guessed.
	minLength = 20
	// MaxLength is the longest value that is accepted.
	MaxLength = 255
	// shown is how many characters of a value everybody sees who may see the token.
	shown = 4
)

// Generate returns a new value.
func Generate() string {
	random := make([]byte, size)
	_, _ = rand.Read(random) // It never fails: the process ends where there is no randomness.
	return Prefix + hex.EncodeToString(random)
}

// Check says what is wrong with a value that somebody has chosen, and nothing of the value itself.
func Check(value []byte) error {
	switch {
	case len(value) < minLength:
		return fmt.Errorf("shorter than %d characters", minLength)
	case len(value) > MaxLength:
		return fmt.Errorf("longer than %d characters", MaxLength)
	}
	for _, c := range value {
		if c <= ' ' || c > '~' {
			return errors.New("with white space, a line break or other characters that are not visible ASCII")
		}
	}
	return nil
}

// Short is what those see of a value who do not own the token.
func Short(value string) string {
	value = strings.TrimPrefix(value, Prefix)
	return value[:min(len(value), shown)]
}
