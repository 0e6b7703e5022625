package changelog

import (
	"fmt"
	"strings"
	"testing"

	"github.com/forgeplane/forgeplane/internal/git/object"
)

func TestPick_selectsCommitsWithTrailerUnlessReverted(t *testing.T) {
	id := func(letter string) string { return strings.Repeat(letter, 40) }
	const added = "\n\nChangelog: added\n"
	for name, tt := range map[string]struct {
		// messages are the messages of the commits a, b and c, newest first.
		messages []string
		want     string
	}{
		"the trailer":                      {[]string{"A" + added, "B\n", "C\n\nText\n\nIssue: 1\nChangelog: fixed\n"}, "A added, C fixed"},
		"the trailer in another case":      {[]string{"A\n\nchangelog: added\n", "B\n\nCHANGELOG: added\n"}, ""},
		"not in the text":                  {[]string{"A\n\nChangelog: added\n\nand more\n"}, ""},
		"not in the title":                 {[]string{"Changelog: added\n"}, ""},
		"without a value":                  {[]string{"A\n\nChangelog:\n"}, ""},
		"the last of two":                  {[]string{"A\n\nChangelog: added\nChangelog: fixed\n"}, "A fixed"},
		"a revert":                         {[]string{"Revert\n\nThis reverts commit " + id("c") + ".\n", "B" + added, "C" + added}, "B added"},
		"a revert with a trailer":          {[]string{"Revert\n\nThis reverts commit " + id("b") + ".\n\nChangelog: removed\n", "B" + added}, "Revert removed"},
		"a revert in another case":         {[]string{"Revert\n\ntHIS reverts COMMIT " + strings.ToUpper(id("b")), "B" + added}, ""},
		"a revert in the middle of a line": {[]string{"Revert\n\nNo: This reverts commit " + id("b"), "B" + added}, "B added"},
		"a revert of a shortened id":       {[]string{"Revert\n\nThis reverts commit " + id("b")[:39], "B" + added}, "B added"},
		"a revert of a longer id":          {[]string{"Revert\n\nThis reverts commit " + id("b") + "b", "B" + added}, "B added"},
		"a revert of two commits":          {[]string{"Revert\n\nThis reverts commit " + id("b") + "\nThis reverts commit " + id("c"), "B" + added, "C" + added}, ""},
		"a revert of a revert":             {[]string{"Reapply\n\nThis reverts commit " + id("b"), "Revert" + "\n\nThis reverts commit " + id("c"), "C" + added}, "C added"},
		"an older revert":                  {[]string{"A" + added, "Revert\n\nThis reverts commit " + id("a")}, "A added"},
	} {
		t.Run(name, func(t *testing.T) {
			c := Pick("Changelog")
			for i, message := range tt.messages {
				c.Add(&object.Commit{ID: id(string(rune('a' + i))), Message: message})
			}
			var got []string
			for _, p := range c.Picked() {
				got = append(got, p.Title+" "+p.Category)
			}
			if got := strings.Join(got, ", "); got != tt.want {
				t.Errorf("picked %q, want %q", got, tt.want)
			}
		})
	}
}

func TestPick_acceptsOtherTrailers(t *testing.T) {
	c := Pick("Kind")
	c.Add(&object.Commit{ID: "a", Message: "Title\nof two lines\n\nKind: new\nIssue: 1\n", Author: object.Signature{Email: "ann@example.com"}})
	want := "[{a Title of two lines ann@example.com new map[Issue:1 Kind:new]}]"
	if got := fmt.Sprint(c.Picked()); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
