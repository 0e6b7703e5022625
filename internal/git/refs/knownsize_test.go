package refs

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/forgeplane/forgeplane/internal/git/internal/recall"
)

// Another list of the same refs replaces those for which there is no room.
func TestKnownRefs_takeAPartOfTheMemory(t *testing.T) {
	ref := Ref{Name: strings.Repeat("x", recall.MaxResult/3/100), Object: "1", Type: "commit"}
	k := &knownRefs{}
	for n := range 10 {
		of := refList{prefix: "refs/heads/", by: Order(strconv.Itoa(n))}
		k = k.with(of, slices.Repeat([]Ref{ref}, 100))
		if _, ok := k.lists[of]; !ok || k.size() > recall.MaxResult || len(k.lists) != min(n+1, 2) {
			t.Errorf("after %d lists there are %d of %d bytes", n+1, len(k.lists), k.size())
		}
	}
}
