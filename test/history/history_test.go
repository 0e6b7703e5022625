package history_test

import (
	"strings"
	"testing"

	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/test/history"
)

func TestStream_isReproducibleAndHasAllOptions(t *testing.T) {
	var heads []string
	for range 2 {
		c := gittest.New(t, "sha1")
		c.Import(t, history.Stream(history.Options{Commits: 1000, Topics: 100, Branches: []string{"feature"}}))
		c.Git(t, "fsck", "--full", "--strict")
		for what, least := range map[string]int{
			"rev-list --all":                           1000,
			"for-each-ref refs/heads/topic/":           100,
			"rev-list --author=author-7@ --all":        5,
			"rev-list --merges main":                   10,
			"log --diff-filter=R --format=%H main":     5,
			"for-each-ref refs/tags/":                  3,
			"log --grep=^Changelog: --format=%H --all": 100,
		} {
			if got := strings.Count(c.Git(t, strings.Fields(what)...), "\n") + 1; got < least {
				t.Errorf("git %s gives %d lines, want at least %d", what, got, least)
			}
		}
		if n := c.Git(t, "rev-list", "--count", "--all"); n != "1000" {
			t.Errorf("there are %s commits", n)
		}
		heads = append(heads, c.Git(t, "show-ref"))
	}
	if heads[0] != heads[1] {
		t.Errorf("one has the refs\n%s\nand the other\n%s", heads[0], heads[1])
	}
}

func TestStream_isLinearByDefault(t *testing.T) {
	c := gittest.New(t, "sha1")
	c.Import(t, history.Stream(history.Options{Commits: 40}))
	if n := c.Git(t, "rev-list", "--count", "--first-parent", "--no-merges", "main"); n != "40" {
		t.Errorf("main has %s commits", n)
	}
	if refs := c.Git(t, "for-each-ref", "--format=%(refname)"); refs != "refs/heads/main" {
		t.Errorf("the refs are %s", refs)
	}
}
