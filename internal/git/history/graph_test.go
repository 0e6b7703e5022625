package history_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/forgeplane/forgeplane/internal/git/history"
	"github.com/forgeplane/forgeplane/internal/git/object"
)

// TestGraph_findsCommitsBetween draws a branch f that merges main, which is the line from a to e, in c before main merges f.
func TestGraph_findsCommitsBetween(t *testing.T) {
	var g history.Graph
	// The older a comes before its children, as with a wrong clock.
	for _, line := range []string{"a", "e d f3", "f3 f2", "f2 f1 c", "d c", "c b", "f1 a", "b a", "x"} {
		ids := strings.Fields(line)
		g.Add(&object.Commit{ID: ids[0], Parents: append(ids[1:], "outside")})
	}
	for name, tt := range map[string]struct{ from, to, want string }{
		"a branch that merged its target": {"c", "f3", "f1 f2 f3"},
		"the side of the target":          {"f3", "e", "d e"},
		"an ancestor":                     {"b", "c", "c"},
		"the same commit":                 {"c", "c", ""},
		"backwards":                       {"e", "c", ""},
		"from outside":                    {"unknown", "c", "a b c"},
		"to outside":                      {"a", "unknown", ""},
		"unrelated":                       {"x", "b", "a b"},
	} {
		t.Run(name, func(t *testing.T) {
			var found []string
			g.Between(tt.from, tt.to, func(id string) { found = append(found, id) })
			slices.Sort(found)
			if got := strings.Join(found, " "); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}
