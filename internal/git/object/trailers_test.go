package object_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/internal/git/object"
)

// TestTrailersAreThoseOfGit composes messages of lines that are trailers, resemble trailers, or are neither.
func TestTrailers_agreeWithGit(t *testing.T) {
	lines := []string{
		"Changelog: added", "Signed-off-by: Ann <ann@example.com>", "Reviewed-by:Bo", "Key : spaced", "Not a key: text", "plain text",
		"  continued", "\tand again", "", "", "# a comment", "(cherry picked from commit 0123)", "ünï: code", "Empty:", ": none", "a-b-1: c", "---",
		"https://forge.example/x", "Changelog: fixed", " ", "Co-authored-by: X <x@example.com>",
	}
	random := rand.New(rand.NewPCG(1, 2))
	c := gittest.New(t, "sha1")
	tree := c.Git(t, "mktree", "--missing")
	messages := []string{"", "Changelog: title", "title\n\nChangelog: added", "title\n\nbody\n\nChangelog: added\n\n\n", "title\n\nbody\nChangelog: added"}
	for range 150 {
		message := []string{"Title", ""}
		for range random.IntN(9) {
			message = append(message, lines[random.IntN(len(lines))])
		}
		messages = append(messages, strings.Join(message, "\n"))
	}
	var ids []string
	for _, m := range messages {
		ids = append(ids, c.Git(t, "commit-tree", "-m", m, tree))
	}
	c.Git(t, "update-ref", "refs/heads/main", c.Git(t, append([]string{"commit-tree", "-m", "all", tree}, parents(ids)...)...))
	r := gittest.Bare(t, c)
	found := 0
	for i, id := range ids {
		got, err := r.ReadCommit(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		var text []string
		for _, trailer := range got.Trailers() {
			text = append(text, strings.TrimSpace(trailer.Key+": "+trailer.Value))
			found++
		}
		want := strings.TrimRight(c.Git(t, "show", "--no-patch", "--format=%(trailers:only,unfold)", id), "\n")
		wanted := strings.Split(want, "\n")
		for i := range wanted {
			wanted[i] = strings.TrimSpace(wanted[i])
		}
		if got, want := strings.Join(text, "\n"), strings.Join(wanted, "\n"); got != want {
			t.Errorf("%q has the trailers\n%s\nand for git\n%s", messages[i], got, want)
		}
	}
	if found < 50 {
		t.Errorf("there are %d trailers in all", found)
	}
}

func parents(ids []string) (args []string) {
	for _, id := range ids {
		args = append(args, "-p", id)
	}
	return args
}

// A value of very many lines would take hours if each line copied the previous ones.
func TestTrailers_canBeLong(t *testing.T) {
	const lines = 500_000
	c := object.Commit{Message: "Title\n\nKey: begins\n" + strings.Repeat(" and goes on\n", lines)}
	got := c.Trailers()
	if len(got) != 1 || len(got[0].Value) != len("begins")+lines*len(" and goes on") {
		t.Errorf("there are %d trailers", len(got))
	}
}
