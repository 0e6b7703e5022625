package git_test

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
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
			r, err := newEngine(t).Repository(t.TempDir(), "a.git")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(r.Init(t.Context(), git.InitOptions{})).To(Succeed())
			c := gittest.New(t, "sha1")
			c.Commit(t, "README.md", "Hello.\n")
			write(t, c, r.Dir())
			g.Expect(r.RemoveUnused()).To(BeFalse())
			g.Expect(r.Check()).To(Succeed())
		})
	}

	g := NewWithT(t)
	storage := t.TempDir()
	r, err := newEngine(t).Repository(storage, "a.git")
	g.Expect(err).NotTo(HaveOccurred())
	_, err = r.RemoveUnused()
	g.Expect(err).To(MatchError(git.ErrNotFound))
	g.Expect(r.Init(t.Context(), git.InitOptions{})).To(Succeed())
	g.Expect(r.Maintain(t.Context())).To(Succeed())
	g.Expect(r.RemoveUnused()).To(BeTrue())
	g.Expect(os.ReadDir(storage)).To(BeEmpty())
}
