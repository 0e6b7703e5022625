package merge_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/internal/git/merge"
	"github.com/forgeplane/forgeplane/internal/git/object"
	"github.com/forgeplane/forgeplane/test/soak"
)

var ann = object.Signature{Name: "Ann", Email: "ann@example.com", When: time.Unix(1_700_000_000, 0).UTC()}

// generator makes random changes in a work tree: edits, additions, removals and renames of files.
type generator struct {
	*gittest.Client
	*rand.Rand
	made int
}

func (g *generator) write(t *testing.T, path string, lines []string) {
	t.Helper()
	full := filepath.Join(g.Dir, path)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (g *generator) change(t *testing.T) {
	t.Helper()
	files := strings.Fields(g.Git(t, "ls-files"))
	path := files[g.IntN(len(files))]
	g.made++
	switch kind := g.IntN(10); {
	case kind < 6:
		text, err := os.ReadFile(filepath.Join(g.Dir, path))
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
		lines[g.IntN(len(lines))] = fmt.Sprint("changed by ", g.made)
		g.write(t, path, lines)
	case kind < 7:
		g.write(t, fmt.Sprintf("dir%d/new%d", g.IntN(3), g.made), []string{fmt.Sprint(g.made), "x", "y"})
	case kind < 8 && len(files) > 3:
		g.Git(t, "rm", "--quiet", "--", path)
	default:
		to := fmt.Sprintf("moved%d/file%d", g.IntN(3), g.made)
		g.write(t, to, nil) // makes the directory
		g.Git(t, "mv", "-f", "--", path, to)
	}
	g.Git(t, "add", "--all")
	g.Git(t, "commit", "--quiet", "--allow-empty", "--message", fmt.Sprint("change ", g.made))
}

// grow makes the branches main and topic, which begin at a common commit, and sometimes merge each other.
func (g *generator) grow(t *testing.T) {
	t.Helper()
	for n := range 6 {
		lines := make([]string, 40)
		for i := range lines {
			lines[i] = fmt.Sprintf("line %d of file %d", i, n)
		}
		g.write(t, fmt.Sprintf("dir%d/file%d", n%3, n), lines)
	}
	g.Git(t, "add", "--all")
	g.Git(t, "commit", "--quiet", "--message", "first")
	g.Git(t, "branch", "topic")
	for range 4 + g.IntN(8) {
		branch, other := "main", "topic"
		if g.IntN(2) == 0 {
			branch, other = other, branch
		}
		g.Git(t, "checkout", "--quiet", branch)
		if g.IntN(6) > 0 {
			g.change(t)
		} else if _, err := g.Try("merge", "--quiet", "--no-edit", other); err != nil {
			g.Git(t, "merge", "--abort")
		}
	}
	g.Git(t, "checkout", "--quiet", "main")
}

// like runs git merge with options in the work tree, and returns the tree, or "" if there are conflicts.
func (g *generator) like(t *testing.T, options ...string) string {
	t.Helper()
	was := g.Git(t, "rev-parse", "main")
	defer g.Git(t, "reset", "--quiet", "--hard", was)
	if _, err := g.Try(append([]string{"merge", "--quiet"}, options...)...); err != nil {
		return ""
	}
	return g.Git(t, "write-tree")
}

func TestCommits_agreeWithGit(t *testing.T) {
	conflicts, merges := 0, 0
	for seed := range soak.Times[uint64](8, 24) {
		c := gittest.New(t, gittest.Formats[seed%2])
		gen := &generator{Client: c, Rand: rand.New(rand.NewPCG(seed, 38))}
		gen.grow(t)
		r := gittest.Bare(t, c)
		bare := &gittest.Client{Dir: r.Dir()}
		q := merge.Request{Target: c.Git(t, "rev-parse", "main"), Source: c.Git(t, "rev-parse", "topic"), Author: ann, Message: "Merge\n"}
		want, squashed := gen.like(t, "--no-ff", "--no-edit", "topic"), gen.like(t, "--squash", "topic")
		made, err := merge.Commits(t.Context(), r, q)
		if errors.Is(err, merge.ErrContained) {
			if c.Git(t, "merge-base", "main", "topic") != q.Source {
				t.Errorf("seed %d: %v", seed, err)
			}
			continue
		}
		if want == "" {
			conflicts++
			if !errors.As(err, new(*merge.ConflictError)) {
				t.Errorf("seed %d: git has conflicts; got %v, %v", seed, made, err)
			}
			continue
		}
		merges++
		if err != nil {
			t.Errorf("seed %d: %v", seed, err)
			continue
		}
		if got := bare.Git(t, "log", "-1", "--format=%T %P", made.Commit); got != want+" "+q.Target+" "+q.Source {
			t.Errorf("seed %d: merge is %s, want the tree %s", seed, got, want)
		}
		q.SquashMessage, q.Trial = "Squash\n", made.Commit
		if made, err = merge.Commits(t.Context(), r, q); err != nil {
			t.Errorf("seed %d: %v", seed, err)
			continue
		}
		if got := bare.Git(t, "log", "-1", "--format=%T %P", made.Commit); got != squashed+" "+q.Target+" "+made.Squash {
			t.Errorf("seed %d: squash is %s, want the tree %s", seed, got, squashed)
		}
		if got, want := bare.Git(t, "log", "-1", "--format=%T %P", made.Squash), c.Git(t, "rev-parse", "topic^{tree}")+" "+c.Git(t, "merge-base", "topic", "main"); got != want {
			t.Errorf("seed %d: the squashed commit is %s, want %s", seed, got, want)
		}
		bare.Git(t, "fsck", "--strict")
	}
	if conflicts < 2 || merges < 2 {
		t.Errorf("the histories have %d conflicts and %d merges", conflicts, merges)
	}
}

type file struct{ path, text string }

// branch makes a repository with a file in the first commit of main, and with a file in the only commit of the branch topic after it. It returns both
// commits. The work tree has main.
func branch(t *testing.T, onMain, onTopic file) (c *gittest.Client, first, topic string) {
	t.Helper()
	c = gittest.New(t, "sha1")
	first = c.Commit(t, onMain.path, onMain.text)
	c.Git(t, "checkout", "--quiet", "-b", "topic")
	topic = c.Commit(t, onTopic.path, onTopic.text)
	c.Git(t, "checkout", "--quiet", "main")
	return c, first, topic
}

func TestCommits_ignoresTrialOfOtherHeads(t *testing.T) {
	g := NewWithT(t)
	c, _, topic := branch(t, file{"a", "1\n"}, file{"b", "2\n"})
	before := c.Commit(t, "c", "3\n")
	after := c.Commit(t, "d", "4\n")
	r := gittest.Bare(t, c)
	tried, err := merge.Commits(t.Context(), r, merge.Request{Target: before, Source: topic, Author: ann, Message: "Try\n"})
	g.Expect(err).NotTo(HaveOccurred())
	for _, trial := range []string{tried.Commit, topic, strings.Repeat("1", 40)} {
		made, err := merge.Commits(t.Context(), r, merge.Request{Target: after, Source: topic, Author: ann, Message: "Merge\n", Trial: trial})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect((&gittest.Client{Dir: r.Dir()}).Git(t, "ls-tree", "--name-only", made.Commit)).To(Equal("a\nb\nc\nd"), trial)
	}
}

func TestTree_refusesWhatCannotBeMerged(t *testing.T) {
	g := NewWithT(t)
	c, first, topic := branch(t, file{"a", "1\n"}, file{"a", "2\n"})
	ahead := c.Commit(t, "a", "3\n")
	c.Git(t, "checkout", "--quiet", "--orphan", "apart")
	apart := c.Commit(t, "b", "1\n")
	r := gittest.Bare(t, c)
	tree := func(ours, theirs string) error {
		_, err := merge.Tree(t.Context(), r, ours, theirs)
		return err
	}
	var conflict *merge.ConflictError
	g.Expect(errors.As(tree(ahead, topic), &conflict)).To(BeTrue())
	g.Expect(conflict.Paths).To(Equal([]string{"a"}))
	g.Expect(tree(ahead, apart)).To(MatchError(merge.ErrUnrelated))
	g.Expect(tree(ahead, first)).To(MatchError(merge.ErrContained))
	g.Expect(tree(ahead, strings.Repeat("1", 40))).To(MatchError(git.ErrObjectNotFound))
	g.Expect(tree("--help", topic)).To(HaveOccurred())
	g.Expect(merge.Tree(t.Context(), r, first, topic)).To(Equal(c.Git(t, "rev-parse", "topic^{tree}")))
}

func TestTree_findsRenames(t *testing.T) {
	g := NewWithT(t)
	c, _, topic := branch(t, file{"old", "1\n2\n3\n4\n5\n6\n7\n8\n"}, file{"old", "1\n2\n3\n4\n5\n6\n7\neight\n"})
	c.Git(t, "mv", "old", "new")
	c.Git(t, "commit", "--quiet", "--message", "Rename")
	r := gittest.Bare(t, c)
	tree, err := merge.Tree(t.Context(), r, c.Git(t, "rev-parse", "main"), topic)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect((&gittest.Client{Dir: r.Dir()}).Git(t, "ls-tree", "--name-only", tree)).To(Equal("new"))
}
