package launch

import (
	"errors"
	"fmt"
	"regexp"

	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/internal/ci"
	"github.com/forgeplane/forgeplane/internal/pipeline"
)

// Refused converts an error of Launch that callers can know to an answer.
func Refused(err error) error {
	var mistakes *ConfigurationError
	var reasons []string
	switch {
	case errors.As(err, &mistakes):
		reasons = mistakes.Problems.Strings()
	case errors.Is(err, ErrNoConfiguration):
		reasons = []string{ErrNoConfiguration.Error()}
	case errors.Is(err, ci.ErrFiltered):
		reasons = []string{ci.ErrFiltered.Error()}
	case errors.Is(err, pipeline.ErrHierarchy):
		reasons = []string{pipeline.ErrHierarchy.Error()}
	default:
		return err
	}
	return endpoint.Invalid(map[string][]string{"base": reasons})
}

// maxKey and maxValue are the maximum sizes of a variable in bytes.
const maxKey, maxValue = 255, 64 << 10

var validKey = regexp.MustCompile(`^[a-zA-Z0-9_]+$`)

// CheckVariable says what is wrong with a variable that a request gives to pipelines. It returns an empty text for a valid one.
func CheckVariable(key, value string) string {
	switch {
	case len(key) > maxKey || !validKey.MatchString(key):
		return fmt.Sprintf("Invalid variable name: %.100q; it must have letters, digits and underscores alone, and at most %d of them", key, maxKey)
	case len(value) > maxValue:
		return fmt.Sprintf("The value of the variable %s is larger than %d bytes", key, maxValue)
	default:
		return ""
	}
}
