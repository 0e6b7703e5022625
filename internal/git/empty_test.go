package git_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
)

func TestEmpty_isTrueUntilThereIsABranch(t *testing.T) {
	g := NewWithT(t)
	e := newEngine(t)
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
