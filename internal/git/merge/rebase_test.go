package merge_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/internal/git/merge"
	"github.com/forgeplane/forgeplane/test/soak"
)

func TestRebase_agreesWithGit(t *testing.T) {
	conflicts, rebased := 0, 0
	for seed := range soak.Times[uint64](8, 16) {
		c := gittest.New(t, gittest.Formats[seed%2])
		gen := &generator{Client: c, Rand: rand.New(rand.NewPCG(seed, 39))}
		gen.grow(t)
		if seed%4 == 0 { // a change that is in both branches
			c.Git(t, "checkout", "--quiet", "topic")
			c.Commit(t, "both", "1\n")
			c.Git(t, "checkout", "--quiet", "main")
			c.Git(t, "cherry-pick", "topic")
		}
		r := gittest.Bare(t, c)
		source, onto := c.Git(t, "rev-parse", "topic"), c.Git(t, "rev-parse", "main")
		head, err := merge.Rebase(t.Context(), r, source, onto, ann)
		c.Git(t, "checkout", "--quiet", "topic")
		if _, failed := c.Try("rebase", "--quiet", "--no-fork-point", "main"); failed != nil {
			conflicts++
			if !errors.As(err, new(*merge.ConflictError)) {
				t.Errorf("seed %d: git has conflicts; got %s, %v", seed, head, err)
			}
			continue
		}
		rebased++
		if err != nil {
			t.Errorf("seed %d: %v", seed, err)
			continue
		}
		const format = "--format=%T %an %ae %at %B"
		bare := &gittest.Client{Dir: r.Dir()}
		if got, want := bare.Git(t, "log", format, onto+".."+head), c.Git(t, "log", format, onto+"..topic"); got != want {
			t.Errorf("seed %d: got\n%s\nwant\n%s", seed, got, want)
		}
		bare.Git(t, "fsck", "--strict")
	}
	if conflicts < 1 || rebased < 2 {
		t.Errorf("the histories have %d conflicts, and %d were rebased", conflicts, rebased)
	}
}

func TestRebase_keepsCommitsThatAreInPlace(t *testing.T) {
	g, c := NewWithT(t), gittest.New(t, "sha1")
	onto := c.Commit(t, "a", "1\n")
	c.Git(t, "checkout", "--quiet", "-b", "side")
	side := c.Commit(t, "b", "1\n")
	c.Git(t, "checkout", "--quiet", "-b", "topic", "main")
	c.Commit(t, "c", "1\n")
	topic := c.Commit(t, "c", "2\n")
	long := onto
	for i := range merge.MaxRebase + 1 {
		long = c.Git(t, "commit-tree", "-p", long, "-m", fmt.Sprint(i), "main^{tree}")
	}
	c.Git(t, "update-ref", "refs/heads/long", long)
	c.Git(t, "merge", "--quiet", "--no-edit", "side")
	r := gittest.Bare(t, c)
	for name, source := range map[string]string{"linear": topic, "nothing": onto, "long": long} {
		g.Expect(merge.Rebase(t.Context(), r, source, onto, ann)).To(Equal(source), name)
	}
	head, err := merge.Rebase(t.Context(), r, c.Git(t, "rev-parse", "topic"), onto, ann)
	g.Expect(err).NotTo(HaveOccurred())
	bare := &gittest.Client{Dir: r.Dir()}
	kept := bare.Git(t, "rev-list", onto+".."+head)
	g.Expect(kept).To(Or(ContainSubstring(topic), ContainSubstring(side)), "one side of the merge")
	g.Expect(bare.Git(t, "rev-list", "--count", "--no-merges", onto+".."+head)).To(Equal("3"))
}

func TestRebase_refusesLongBranches(t *testing.T) {
	c := gittest.New(t, "sha1")
	head := c.Commit(t, "a", "1\n")
	for i := range merge.MaxRebase + 1 {
		head = c.Git(t, "commit-tree", "-p", head, "-m", fmt.Sprint(i), "main^{tree}")
	}
	c.Git(t, "update-ref", "refs/heads/long", head)
	c.Commit(t, "b", "1\n")
	_, err := merge.Rebase(t.Context(), gittest.Bare(t, c), head, c.Git(t, "rev-parse", "main"), ann)
	NewWithT(t).Expect(err).To(MatchError(merge.ErrTooMany))
}
