package item_test

import (
	"testing"

	"k8s.io/utils/ptr"

	"github.com/forgeplane/forgeplane/apiserver/item"
)

func TestParseDuration_readsUnitsOfWork(t *testing.T) {
	for text, want := range map[string]struct {
		seconds int64
		human   string
	}{
		"3h30m": {12600, "3h 30m"}, "1d": {28800, "1d"}, "1w": {144000, "1w"}, "1mo 2w 3d 4h 5m 6s": {965106, "1mo 2w 3d 4h 5m 6s"},
		"-90m": {-5400, "-1h 30m"}, " 8 h ": {28800, "1d"}, "0h": {0, ""},
	} {
		got, is := item.ParseDuration(text)
		if !is || got != want.seconds {
			t.Errorf("%q is %d (%t), want %d", text, got, is, want.seconds)
		}
		if human := ptr.Deref(item.Times(got, 0).HumanTimeEstimate, ""); human != want.human {
			t.Errorf("%d is shown as %q, want %q", got, human, want.human)
		}
	}
	for _, text := range []string{"", "3", "h", "3x", "3h-1m", "--3h", "9999999h", "3 hours"} {
		if got, is := item.ParseDuration(text); is {
			t.Errorf("%q is %d", text, got)
		}
	}
}
