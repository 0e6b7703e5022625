package update_test

import (
	"strings"
	"testing"

	"github.com/forgeplane/forgeplane/internal/git/update"
)

func TestRef_emptyAndZeroIDsAreAbsent(t *testing.T) {
	zero, one, two := strings.Repeat("0", 40), strings.Repeat("1", 40), strings.Repeat("2", 64)
	type is struct{ creates, deletes, expectsNone, expectsOne, madeNone, madeTwo bool }
	for about, tt := range map[string]struct {
		old, new string
		want     is
	}{
		"creation":            {"", two, is{creates: true, expectsNone: true, madeTwo: true}},
		"creation from zeros": {zero, two, is{creates: true, expectsNone: true, madeTwo: true}},
		"update":              {one, two, is{expectsOne: true, madeTwo: true}},
		"deletion":            {one, "", is{deletes: true, expectsOne: true, madeNone: true}},
		"deletion to zeros":   {one, zero, is{deletes: true, expectsOne: true, madeNone: true}},
		"nothing":             {zero, "", is{deletes: true, expectsNone: true, madeNone: true}},
	} {
		t.Run(about, func(t *testing.T) {
			u := update.Ref{Name: "refs/heads/main", Old: tt.old, New: tt.new}
			if got := (is{u.Creates(), u.Deletes(), u.Expects(""), u.Expects(one), u.Made(""), u.Made(two)}); got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}
