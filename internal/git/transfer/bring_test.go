package transfer_test

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/internal/git/transfer"
)

// ahead adds a commit to the source, and returns its id.
func (f *forks) ahead(content string) string {
	f.Helper()
	id := f.c.Commit(f, "ahead", content)
	f.c.Git(f, "push", "--quiet", "--force", f.source.Dir(), "HEAD:refs/heads/ahead")
	return id
}

func TestBring_copiesWhatIsMissing(t *testing.T) {
	for _, format := range []string{"sha1", "sha256"} {
		t.Run(format, func(t *testing.T) {
			g, f := NewWithT(t), newForks(t, format)
			fork := f.fork("fork", transfer.ForkOptions{Branches: []string{"topic"}})
			id := f.ahead("more")
			g.Expect(transfer.Bring(t.Context(), fork, f.source, id)).To(Succeed())
			f.in(fork, "update-ref", "refs/heads/brought", id)
			f.in(fork, "fsck", "--strict", "--connectivity-only")
			g.Expect(f.in(fork, "log", "--format=%H", "brought")).To(Equal(f.in(f.source, "log", "--format=%H", "ahead")))

			// The fork needs nothing of the source.
			g.Expect(os.RemoveAll(f.source.Dir())).To(Succeed())
			g.Expect(f.in(fork, "fsck", "--strict", "--full")).NotTo(ContainSubstring("missing"))
			g.Expect(f.in(fork, "show", "brought:ahead")).To(Equal("more"))
		})
	}
}

func TestBring_addsNothingTwice(t *testing.T) {
	g, f := NewWithT(t), newForks(t, "sha1")
	fork := f.fork("fork", transfer.ForkOptions{})
	files := func() []string {
		all, err := filepath.Glob(filepath.Join(fork.Dir(), "objects/*/*"))
		g.Expect(err).NotTo(HaveOccurred())
		return all
	}
	before := files()
	g.Expect(transfer.Bring(t.Context(), fork, f.source, f.in(f.source, "rev-parse", "topic"))).To(Succeed())
	g.Expect(files()).To(Equal(before))
}

func TestBring_refusesWhatCannotBeBrought(t *testing.T) {
	g, f := NewWithT(t), newForks(t, "sha1")
	fork := f.fork("fork", transfer.ForkOptions{})
	for _, id := range []string{f.in(f.source, "rev-parse", "main^{tree}"), "1234567890123456789012345678901234567890"} {
		g.Expect(transfer.Bring(t.Context(), fork, f.source, id)).To(MatchError(git.ErrObjectNotFound), id)
	}
	other := newForks(t, "sha256")
	g.Expect(transfer.Bring(t.Context(), fork, other.source, other.in(other.source, "rev-parse", "main"))).To(MatchError(git.ErrObjectNotFound))
}

func TestBring_isLimitedLikeAPush(t *testing.T) {
	noise := make([]byte, 256<<10)
	_, _ = rand.Read(noise)
	for name, limits := range map[string]git.Limits{"push": {Push: 100 << 10}, "repository": {Repository: 200 << 10}} {
		t.Run(name, func(t *testing.T) {
			g, f := NewWithT(t), newForks(t, "sha1")
			f.fork("fork", transfer.ForkOptions{})
			id := f.ahead(string(noise))
			fork := gittest.Repository(t, gittest.EngineOf(t, git.Options{Limits: limits}), f.storage, "fork.git")
			g.Expect(git.LimitReached(transfer.Bring(t.Context(), fork, f.source, id))).NotTo(BeEmpty())
		})
	}
}

func TestBring_saysThatItsOwnDirectoryIsFull(t *testing.T) {
	g, f := NewWithT(t), newForks(t, "sha1")
	fork := f.fork("fork", transfer.ForkOptions{})
	id := f.ahead(gittest.Incompressible(2 << 20))
	t.Setenv("TMPDIR", gittest.Mount(t, "size=1m"))
	g.Expect(transfer.Bring(t.Context(), fork, f.source, id)).To(And(MatchError(git.ErrScratch), WithTransform(git.NoSpace, BeTrue())))
}
