package credential_test

import (
	"strings"
	"testing"

	"github.com/forgeplane/forgeplane/internal/credential"
)

func TestCheckValue_refusesShortAndInvisibleValues(t *testing.T) {
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
		err := credential.CheckValue([]byte(value))
		if (err != nil) != (wrong != "") || err != nil && !strings.Contains(err.Error(), wrong) {
			t.Errorf("%q: got %v, want %q", value, err, wrong)
		}
	}
}
