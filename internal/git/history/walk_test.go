package history_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/internal/git/history"
	"github.com/forgeplane/forgeplane/internal/git/internal/process"
	made "github.com/forgeplane/forgeplane/test/history"
)

// walked returns the ids of a range.
func walked(t *testing.T, r *git.Repository, from, to string, limit int) (ids []string, err error) {
	t.Helper()
	for c, err := range history.Walk(t.Context(), r, history.Log{Tips: []string{to}, Without: []string{from}, Limit: limit}) {
		if err != nil {
			return ids, err
		}
		ids = append(ids, c.ID)
	}
	return ids, nil
}

// grown returns a client with 300 commits on branches, some of which are merged.
func grown(t *testing.T, format string) *gittest.Client {
	t.Helper()
	c := gittest.New(t, format)
	c.Import(t, made.Stream(made.Options{Commits: 300, Topics: 30}))
	return c
}

func TestWalk_agreesWithGitLog(t *testing.T) {
	for _, format := range gittest.Formats {
		t.Run(format, func(t *testing.T) {
			c := grown(t, format)
			r := gittest.Bare(t, c)
			all := strings.Fields(c.Git(t, "rev-list", "--all"))
			random := rand.New(rand.NewPCG(7, 8))
			for range 30 {
				from, to := all[random.IntN(len(all))], all[random.IntN(len(all))]
				want := strings.Fields(c.Git(t, "log", "--format=%H", from+".."+to))
				got, err := walked(t, r, from, to, len(all))
				if err != nil || !slices.Equal(got, want) {
					t.Errorf("%s..%s is %v (%v), want %v", from, to, got, err, want)
				}
				if got, err := walked(t, r, from, to, len(want)); err != nil || len(got) != len(want) {
					t.Errorf("of %d commits there are %d (%v)", len(want), len(got), err)
				}
				if len(want) == 0 {
					continue
				}
				if got, err := walked(t, r, from, to, len(want)-1); !errors.Is(err, history.ErrTooManyCommits) || got != nil {
					t.Errorf("one less than %d commits: %v (%v)", len(want), got, err)
				}
			}
		})
	}
}

func TestWalk_readsWholeCommits(t *testing.T) {
	c := gittest.New(t, "sha1")
	first := c.Commit(t, "a", "1")
	c.Git(t, "commit", "--quiet", "--allow-empty", "--message=Add\n\nChangelog: added")
	r := gittest.Bare(t, c)
	log := history.Log{Tips: []string{c.Git(t, "rev-parse", "HEAD")}, Without: []string{first}, Limit: 10}
	for got, err := range history.Walk(t.Context(), r, log) {
		if err != nil || got.Title() != "Add" || fmt.Sprint(got.Trailers()) != "[{Changelog added}]" || got.Author.Email != "ann@example.com" {
			t.Errorf("it is %+v (%v)", got, err)
		}
	}
	for _, bad := range [][2]string{{"main", first}, {first, "--all"}, {first, ""}, {first, strings.Repeat("0", 39) + "1"}} {
		if _, err := walked(t, r, bad[0], bad[1], 10); err == nil {
			t.Errorf("%v is a range", bad)
		}
	}
}

func TestWalk_canStopEarly(t *testing.T) {
	c := grown(t, "sha1")
	r := gittest.Bare(t, c)
	ids := strings.Fields(c.Git(t, "rev-list", "main"))
	seen := 0
	for _, err := range history.Walk(t.Context(), r, history.Log{Tips: ids[:1], Limit: len(ids)}) {
		if err != nil {
			t.Fatal(err)
		}
		if seen++; seen == 2 {
			break
		}
	}
	if seen != 2 {
		t.Errorf("%d commits were seen", seen)
	}
}

func TestWalk_limitsItsText(t *testing.T) {
	c := gittest.New(t, "sha1")
	c.Commit(t, "a", "1")
	tree, parent := c.Git(t, "rev-parse", "HEAD^{tree}"), c.Git(t, "rev-parse", "HEAD")
	first := parent
	for i := range 17 {
		message := fmt.Sprintf("%d\n\n%s", i, strings.Repeat("x", 4<<20-1000))
		file := filepath.Join(c.Dir, "message")
		if err := os.WriteFile(file, []byte(message), 0o600); err != nil {
			t.Fatal(err)
		}
		parent = c.Git(t, "commit-tree", "-p", parent, "-F", file, tree)
	}
	c.Git(t, "update-ref", "refs/heads/main", parent)
	r := gittest.Bare(t, c)
	got, err := walked(t, r, first, parent, 100)
	if !errors.Is(err, process.ErrOutputTooLarge) || len(got) != 16 {
		t.Errorf("%d commits were read (%v)", len(got), err)
	}
}
