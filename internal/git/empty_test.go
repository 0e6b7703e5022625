package git_test

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/test/seed"
)

func TestEmpty_isTrueUntilThereIsABranch(t *testing.T) {
	g := NewWithT(t)
	e := gittest.NewEngine(t)
	r, err := e.Repository(t.TempDir(), "a.git")
	g.Expect(err).NotTo(HaveOccurred())
	_, err = r.Empty()
	g.Expect(err).To(MatchError(git.ErrNotFound))
	g.Expect(r.Init(t.Context(), git.InitOptions{})).To(Succeed())
	g.Expect(r.Empty()).To(BeTrue())

	c := gittest.New(t, "sha1")
	c.Commit(t, "README.md", "Hello.\n")
	c.Git(t, "tag", "v1")
	push := func(what ...string) { c.Git(t, append([]string{"push", "--quiet", r.Dir()}, what...)...) }
	push("v1")
	g.Expect(r.Empty()).To(BeTrue(), "a tag is no branch")
	c.Git(t, "--git-dir="+r.Dir(), "pack-refs", "--all")
	g.Expect(r.Empty()).To(BeTrue(), "nor is a packed one")
	push("main:topic/a")
	g.Expect(r.Empty()).To(BeFalse())
	c.Git(t, "--git-dir="+r.Dir(), "pack-refs", "--all", "--prune")
	g.Expect(r.Empty()).To(BeFalse(), "it is packed")
	push("--delete", "topic/a")
	g.Expect(r.Empty()).To(BeTrue())
}

// For a repository whose files are older than a file system's tick, Empty looks at only one file.
func TestEmpty_followsEveryChangeOfARepositoryThatWasAtRest(t *testing.T) {
	g := NewWithT(t)
	r, err := gittest.NewEngine(t).Repository(t.TempDir(), "a.git")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(r.Init(t.Context(), git.InitOptions{})).To(Succeed())
	c := gittest.New(t, "sha1")
	commit := c.Commit(t, "README.md", "Hello.\n")
	in := func(args ...string) string { return c.Git(t, append([]string{"--git-dir=" + r.Dir()}, args...)...) }
	c.Git(t, "push", "--quiet", r.Dir(), "main:refs/tags/v1")

	// Every change has a distinct time, and all times are long ago.
	at := time.Now().Add(-time.Hour)
	settle := func(before map[string]time.Time) map[string]time.Time {
		after := map[string]time.Time{}
		for _, path := range []string{filepath.Join(r.Dir(), "refs/heads"), filepath.Join(r.Dir(), "packed-refs")} {
			info, err := os.Lstat(path)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			g.Expect(err).NotTo(HaveOccurred())
			if !info.ModTime().Equal(before[path]) {
				at = at.Add(time.Second)
				g.Expect(os.Chtimes(path, at, at)).To(Succeed())
				info, err = os.Lstat(path)
				g.Expect(err).NotTo(HaveOccurred())
			}
			after[path] = info.ModTime()
		}
		return after
	}
	random := rand.New(rand.NewPCG(seed.Value(), 0))
	branches := []string{"a", "b", "topic/a", "topic/deep/b"}
	times := settle(nil)
	for step := range 80 {
		ref := "refs/heads/" + branches[random.IntN(len(branches))]
		var did []string
		switch random.IntN(5) {
		case 0:
			did = []string{"update-ref", ref, commit}
		case 1, 2:
			did = []string{"update-ref", "-d", ref}
		case 3:
			did = []string{"pack-refs", "--all", "--prune"}
		case 4: // leftovers of a killed git
			did = []string{"version"}
			g.Expect(os.MkdirAll(filepath.Join(r.Dir(), "refs/heads/topic/deep"), 0o700)).To(Succeed())
		}
		in(did...)
		times = settle(times)
		for range 2 {
			g.Expect(r.Empty()).To(Equal(in("for-each-ref", "refs/heads") == ""), "step %d, after %v", step, did)
		}
	}
}

func BenchmarkEmpty(b *testing.B) {
	r, err := gittest.NewEngine(b).Repository(b.TempDir(), "a.git")
	if err != nil {
		b.Fatal(err)
	}
	if err := r.Init(b.Context(), git.InitOptions{}); err != nil {
		b.Fatal(err)
	}
	for name, age := range map[string]time.Duration{"at rest": time.Hour, "changing": 0} {
		b.Run(name, func(b *testing.B) {
			at := time.Now().Add(-age)
			if err := os.Chtimes(filepath.Join(r.Dir(), "refs/heads"), at, at); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := r.Empty(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
