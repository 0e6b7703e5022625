package accesstoken_test

import (
	"strings"
	"testing"

	"github.com/forgeplane/forgeplane/internal/accesstoken"
)

func TestGenerate_returnsUniqueValues(t *testing.T) {
	seen := map[string]bool{}
	for range 100 {
		value := accesstoken.Generate()
		if !strings.HasPrefix(value, accesstoken.Prefix) || len(value) < 40 || seen[value] {
			t.Fatalf("a value of %d characters, seen before: %v", len(value), seen[value])
		}
		seen[value] = true
	}
}
