package search_test

import (
	"testing"

	"github.com/forgeplane/forgeplane/internal/search"
)

func TestFold_makesTextsEqualThatDifferInCase(t *testing.T) {
	for text, want := range map[string]string{
		"Straße": "STRASSE", "été": "E\u0301TE\u0301", "ΣΑΣ": "σας", "ǅ": "ǆ", "日本": "日本", "a\nB": "A\nb",
	} {
		if got, want := search.Fold(text), search.Fold(want); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	if got := search.Fold("A\nb", "C\nd"); got != "a b\nc\nd" {
		t.Errorf("got %q: a title is one line", got)
	}
}

func TestPattern_escapesWildcards(t *testing.T) {
	if got := search.Pattern("50% a_B!"); got != "%50!% a!_b!!%" {
		t.Errorf("got %q", got)
	}
}
