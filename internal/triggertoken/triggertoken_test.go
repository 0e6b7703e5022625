package triggertoken_test

import (
	"regexp"
	"testing"

	"github.com/forgeplane/forgeplane/internal/credential"
	"github.com/forgeplane/forgeplane/internal/triggertoken"
)

func TestGenerate_returnsUniqueValidValues(t *testing.T) {
	form := regexp.MustCompile("^glptt-[0-9a-f]{40}$")
	seen := map[string]bool{}
	for range 100 {
		value := triggertoken.Generate()
		if !form.MatchString(value) || seen[value] {
			t.Fatalf("a value of %d characters, seen before: %v", len(value), seen[value])
		}
		if err := credential.CheckValue([]byte(value)); err != nil {
			t.Error(err)
		}
		seen[value] = true
	}
}

func TestShort_showsFourCharacters(t *testing.T) {
	for value, want := range map[string]string{
		"glptt-0123456789": "0123", "0123456789": "0123", "glptt-": "", "": "", "012": "012", "glptt-01": "01",
	} {
		if got := triggertoken.Short(value); got != want {
			t.Errorf("%q is shown as %q, not %q", value, got, want)
		}
	}
}
