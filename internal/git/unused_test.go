package git_test

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/internal/git/upkeep"
	"github.com/forgeplane/forgeplane/test/patience"
)

func TestRemoveUnused_removesOnlyWhatNothingWasWrittenTo(t *testing.T) {
	for name, write := range map[string]func(t *testing.T, c *gittest.Client, dir string){
		"a branch": func(t *testing.T, c *gittest.Client, dir string) { c.Git(t, "push", "--quiet", dir, "main") },
		"a tag": func(t *testing.T, c *gittest.Client, dir string) {
			c.Git(t, "push", "--quiet", dir, "main:refs/tags/v1")
		},
		"a packed ref": func(t *testing.T, c *gittest.Client, dir string) {
			c.Git(t, "push", "--quiet", dir, "main:refs/keep/1")
			c.Git(t, "--git-dir="+dir, "pack-refs", "--all", "--prune")
		},
		"objects of a branch that is gone": func(t *testing.T, c *gittest.Client, dir string) {
			c.Git(t, "push", "--quiet", dir, "main")
			c.Git(t, "--git-dir="+dir, "update-ref", "-d", "refs/heads/main")
		},
		"a push that has just begun": func(t *testing.T, _ *gittest.Client, dir string) {
			NewWithT(t).Expect(os.Mkdir(filepath.Join(dir, "objects", "tmp_objdir-incoming-a"), 0o700)).To(Succeed())
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r, err := gittest.NewEngine(t).Repository(t.TempDir(), "a.git")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(r.Init(t.Context(), git.InitOptions{})).To(Succeed())
			c := gittest.New(t, "sha1")
			c.Commit(t, "README.md", "Hello.\n")
			write(t, c, r.Dir())
			g.Expect(r.RemoveUnused(t.Context())).To(BeFalse())
			g.Expect(r.Check()).To(Succeed())
		})
	}

	g := NewWithT(t)
	storage := t.TempDir()
	r, err := gittest.NewEngine(t).Repository(storage, "a.git")
	g.Expect(err).NotTo(HaveOccurred())
	_, err = r.RemoveUnused(t.Context())
	g.Expect(err).To(MatchError(git.ErrNotFound))
	g.Expect(r.Init(t.Context(), git.InitOptions{})).To(Succeed())
	g.Expect(upkeep.Maintain(t.Context(), r)).To(Succeed())
	g.Expect(r.RemoveUnused(t.Context())).To(BeTrue())
	g.Expect(os.ReadDir(storage)).To(BeEmpty())
}

func TestRemoveUnused_waitsForAWriteAndKeepsWhatItHasWritten(t *testing.T) {
	g := NewWithT(t)
	one, other := fenced(t)
	c := gittest.New(t, "sha1")
	c.Commit(t, "README.md", "Hello.\n")
	end := beginWrite(t, other)
	removed := make(chan bool, 1)
	go func() {
		gone, err := one.RemoveUnused(t.Context())
		g.Expect(err).NotTo(HaveOccurred())
		removed <- gone
	}()
	g.Eventually(one.Closed).Should(BeTrue())
	c.Git(t, "push", "--quiet", one.Dir(), "main")
	end()
	g.Eventually(removed).WithTimeout(patience.Wait).Should(Receive(BeFalse()))
	g.Expect(one.Check()).To(Succeed())
}

func TestRemoveUnused_refusesAWriteThatWasPrepared(t *testing.T) {
	g := NewWithT(t)
	one, other := fenced(t)
	w, err := other.PrepareWrite()
	g.Expect(err).NotTo(HaveOccurred())
	defer w.End()
	g.Expect(one.RemoveUnused(t.Context())).To(BeTrue())
	g.Expect(w.Begin()).To(MatchError(git.ErrClosed))
}
