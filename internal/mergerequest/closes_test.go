package mergerequest_test

import (
	"slices"
	"testing"

	"github.com/forgeplane/forgeplane/internal/mergerequest"
)

func TestCloses_findsIssues(t *testing.T) {
	for text, want := range map[string][]int64{
		"Closes #1":                        {1},
		"This fixes #2, #3 and #4.":        {2, 3, 4},
		"RESOLVED: #5\nclosing #6, and #5": {5, 6},
		"See #7. Discloses #8, close#9":    nil,
		"Fix #10a, closes acme/web#11":     nil,
		"Closes #99999999999999999999":     nil,
	} {
		if got := mergerequest.Closes(text); !slices.Equal(got, want) {
			t.Errorf("%q closes %v, want %v", text, got, want)
		}
	}
}
