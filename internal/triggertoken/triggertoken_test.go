package triggertoken_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/forgeplane/forgeplane/internal/triggertoken"
)

func TestEveryGeneratedValueIsAnotherOneAndGood(t *testing.T) {
	form := regexp.MustCompile("^glptt-[0-9a-f]{40}$")
	seen := map[string]bool{}
	for range 100 {
		value := triggertoken.Generate()
		if !form.MatchString(value) || seen[value] {
			t.Fatalf("a value of %d characters, seen before: %v", len(value), seen[value])
		}
		if err := triggertoken.Check([]byte(value)); err != nil {
			t.Error(err)
		}
		seen[value] = true
	}
}

func TestAChosenValueIsLongEnoughAndVisible(t *testing.T) {
	for value, wrong := range map[string]string{
		"":                               "shorter than 20",
		strings.Repeat("a", 19):          "shorter than 20",
		strings.Repeat("a", 20):          "",
		strings.Repeat("~", 255):         "",
		strings.Repeat("a", 256):         "longer than 255",
		strings.Repeat("a", 20) + "\n":   "visible",
		strings.Repeat("a", 20) + " ":    "visible",
		strings.Repeat("a", 20) + "\x00": "visible",
		strings.Repeat("a", 20) + "\x7f": "visible",
		strings.Repeat("ä", 20):          "visible",
	} {
		err := triggertoken.Check([]byte(value))
		if (err != nil) != (wrong != "") || err != nil && !strings.Contains(err.Error(), wrong) {
			t.Errorf("%q: got %v, want %q", value, err, wrong)
		}
	}
}

func TestOthersSeeFourCharactersOfAValue(t *testing.T) {
	for value, want := range map[string]string{
		"glptt-0123456789": "0123", "0123456789": "0123", "glptt-": "", "": "", "012": "012", "glptt-01": "01",
	} {
		if got := triggertoken.Short(value); got != want {
			t.Errorf("%q is shown as %q, not %q", value, got, want)
		}
	}
}
