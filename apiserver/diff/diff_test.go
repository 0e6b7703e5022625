package diff_test

import (
	"testing"

	"github.com/forgeplane/forgeplane/apiserver/diff"
	"github.com/forgeplane/forgeplane/internal/git/history"
)

func TestShow_returnsDiffAsClientsExpect(t *testing.T) {
	const names, text, binary = "--- a/x\n+++ b/y\n", "@@ -1 +1 @@\n-a\n+b\n", "Binary files a/x and b/x differ\n"
	for name, tt := range map[string]struct {
		change  history.Change
		unidiff bool
		want    diff.Diff
	}{
		"changed": {
			history.Change{OldPath: "x", NewPath: "x", OldMode: "100644", NewMode: "100755", Names: names, Text: text}, false,
			diff.Diff{Diff: text, OldPath: "x", NewPath: "x", AMode: "100644", BMode: "100755"},
		},
		"renamed": {
			history.Change{OldPath: "x", NewPath: "y", OldMode: "100644", NewMode: "100644", Names: names, Text: text}, true,
			diff.Diff{Diff: names + text, OldPath: "x", NewPath: "y", AMode: "100644", BMode: "100644", RenamedFile: true},
		},
		"new": {
			history.Change{OldPath: "x", NewPath: "x", NewMode: "100644", Text: text}, false,
			diff.Diff{Diff: text, OldPath: "x", NewPath: "x", AMode: "0", BMode: "100644", NewFile: true},
		},
		"removed": {
			history.Change{OldPath: "x", NewPath: "x", OldMode: "100644", TooLarge: true}, true,
			diff.Diff{OldPath: "x", NewPath: "x", AMode: "100644", BMode: "0", DeletedFile: true, TooLarge: true},
		},
		"binary": {
			history.Change{OldPath: "x", NewPath: "x", OldMode: "100644", NewMode: "100644", Text: binary}, true,
			diff.Diff{Diff: binary, OldPath: "x", NewPath: "x", AMode: "100644", BMode: "100644"},
		},
	} {
		if got := diff.Show(tt.change, tt.unidiff); got != tt.want {
			t.Errorf("%s:\ngot  %+v\nwant %+v", name, got, tt.want)
		}
	}
}
