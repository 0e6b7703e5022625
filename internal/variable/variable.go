// Package variable validates CI variables, and finds those that the jobs of a project get.
package variable

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
)

// Limits of the schema, and of values.
const (
	// MaxKey is the maximum number of characters in a key.
	MaxKey = 255
	// MaxEnvironmentScope is the maximum number of characters in an environment scope.
	MaxEnvironmentScope = 255
	// MaxDescription is the maximum number of characters in a description.
	MaxDescription = 255
	// MaxValue is the maximum number of bytes in a value.
	MaxValue = 64 << 10
)

// minMasked is the minimum number of characters in a masked value: shorter texts also appear in a log by chance.
const minMasked = 8

var (
	keys   = regexp.MustCompile(`^[A-Za-z0-9_]+$`)
	scopes = regexp.MustCompile(`^[-A-Za-z0-9_/${}. *]+$`)
	// maskable are the masked values of variables that are expanded, which therefore cannot contain references to other variables.
	maskable = regexp.MustCompile(`^[A-Za-z0-9_+=/@:.~-]*$`)
)

// IsKey reports whether a text can be a key, whatever its length.
func IsKey(text string) bool { return keys.MatchString(text) }

// IsEnvironmentScope reports whether a text can be an environment scope, whatever its length.
func IsEnvironmentScope(text string) bool { return scopes.MatchString(text) }

// Problems of values.
var (
	// ErrTooLong says that a value has more than MaxValue bytes.
	ErrTooLong = fmt.Errorf("it is longer than %d KiB", MaxValue>>10)
	// ErrBinary says that a value is not a text.
	ErrBinary = errors.New("it is not a text in UTF-8, or contains a zero byte")
	// ErrNotMaskable says that a value cannot be masked.
	ErrNotMaskable = errors.New("it cannot be masked")
)

// Check returns the problem with the value of a variable, or nil. The error wraps one of the problems above, and does not contain the value.
func Check(spec *v1alpha1.VariableSpec, value string) error {
	switch {
	case len(value) > MaxValue:
		return ErrTooLong
	case !utf8.ValidString(value) || strings.ContainsRune(value, 0):
		return ErrBinary
	case spec.Masked:
		return checkMasked(value, spec.Raw)
	default:
		return nil
	}
}

// checkMasked returns an error if a value cannot be masked.
func checkMasked(value string, raw bool) error {
	switch {
	case utf8.RuneCountInString(value) < minMasked:
		return fmt.Errorf("%w: it is shorter than %d characters", ErrNotMaskable, minMasked)
	case strings.ContainsAny(value, "\r\n"):
		return fmt.Errorf("%w: it has more than one line", ErrNotMaskable)
	case raw && len(strings.Fields(value)) == 1 && strings.TrimSpace(value) == value:
		return nil
	case raw:
		return fmt.Errorf("%w: it contains white space", ErrNotMaskable)
	case !maskable.MatchString(value):
		return fmt.Errorf("%w: it has characters other than letters, digits and _ + = / @ : . ~ -; with raw, all characters that are not white space are possible", ErrNotMaskable)
	default:
		return nil
	}
}

// matches reports whether an environment scope matches an environment. Without an environment, only AnyEnvironment matches.
func matches(scope, environment string) bool {
	if scope == v1alpha1.AnyEnvironment || scope == environment {
		return true
	}
	if environment == "" {
		return false
	}
	first, rest, wildcard := strings.Cut(scope, "*")
	if !wildcard || !strings.HasPrefix(environment, first) {
		return false
	}
	environment = environment[len(first):]
	parts := strings.Split(rest, "*")
	last := parts[len(parts)-1]
	for _, part := range parts[:len(parts)-1] {
		at := strings.Index(environment, part)
		if at < 0 {
			return false
		}
		environment = environment[at+len(part):]
	}
	return strings.HasSuffix(environment, last)
}

// moreSpecific reports whether an environment scope takes precedence over another one that matches the same environment: the name of the
// environment over a wildcard, and among wildcards the one with more characters beside its asterisks.
func moreSpecific(a, b, environment string) bool {
	if (a == environment) != (b == environment) {
		return a == environment
	}
	if literalA, literalB := literal(a), literal(b); literalA != literalB {
		return literalA > literalB
	}
	return a < b // so that every process decides alike
}

// literal returns the number of characters in an environment scope beside its asterisks.
func literal(scope string) int { return len(scope) - strings.Count(scope, "*") }
