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

// A crash comes between setting a repository aside and looking at it once more.
func TestPutBack_bringsBackOnlyWhatIsUsed(t *testing.T) {
	newAside := func(t *testing.T, fill func(r *git.Repository)) (r *git.Repository, storage string) {
		t.Helper()
		g, storage := NewWithT(t), t.TempDir()
		r = repository(t, newEngine(t), storage, "a.git")
		g.Expect(r.Init(t.Context(), git.InitOptions{})).To(Succeed())
		fill(r)
		g.Expect(r.SetAside()).To(Succeed())
		g.Expect(r.Check()).To(MatchError(git.ErrNotFound))
		return r, storage
	}

	t.Run("pushed", func(t *testing.T) {
		g, c := NewWithT(t), gittest.New(t, "sha1")
		id := c.Commit(t, "README.md", "Hello.\n")
		r, storage := newAside(t, func(r *git.Repository) { c.Git(t, "push", "--quiet", r.Dir(), "main") })
		g.Expect(r.PutBack()).To(BeTrue())
		g.Expect(names(t, storage)).To(Equal([]string{"a.git"}))
		g.Expect(r.Head(t.Context())).To(HaveField("Commit", id))
		g.Expect(r.PutBack()).To(BeFalse(), "there is nothing any more")
		g.Expect(r.RemoveUnused()).To(BeFalse())
		g.Expect(r.Check()).To(Succeed())
	})

	for name, fill := range map[string]func(g *WithT, r *git.Repository){
		"unused": func(*WithT, *git.Repository) {},
		"unused, half removed": func(g *WithT, r *git.Repository) {
			g.Expect(os.RemoveAll(filepath.Join(r.Dir(), "objects"))).To(Succeed())
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r, storage := newAside(t, func(r *git.Repository) { fill(g, r) })
			g.Expect(r.PutBack()).To(BeFalse())
			g.Expect(r.Check()).To(MatchError(git.ErrNotFound))
			g.Expect(r.Remove()).To(Succeed())
			g.Expect(os.ReadDir(storage)).To(BeEmpty())
		})
	}

	g := NewWithT(t)
	g.Expect(repository(t, newEngine(t), filepath.Join(t.TempDir(), "unmounted"), "a.git").PutBack()).To(BeFalse())
}
