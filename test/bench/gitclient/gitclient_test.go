package gitclient

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/test/history"
)

func newClient(t *testing.T) *Client {
	t.Helper()
	c, err := New(filepath.Join(t.TempDir(), "home"), "ann", "secret")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return c
}

func TestHistory_isCompleteAndReproducible(t *testing.T) {
	g := NewWithT(t)
	c := newClient(t)
	var heads []string
	for range 2 {
		directory := t.TempDir()
		g.Expect(c.History(t.Context(), directory, history.Options{Commits: 40, Branches: []string{"topic/1", "topic/2"}})).To(Succeed())
		g.Expect(c.Run(t.Context(), directory, nil, "rev-list", "--count", "--all")).To(Equal("40"))
		g.Expect(c.Run(t.Context(), directory, nil, "for-each-ref", "--format=%(refname)")).
			To(Equal("refs/heads/main\nrefs/heads/topic/1\nrefs/heads/topic/2"))
		_, err := c.Run(t.Context(), directory, nil, "fsck", "--full", "--strict")
		g.Expect(err).NotTo(HaveOccurred())
		head, err := c.Run(t.Context(), directory, nil, "rev-parse", "main")
		g.Expect(err).NotTo(HaveOccurred())
		heads = append(heads, head)
	}
	g.Expect(heads[0]).To(Equal(heads[1]))
}

func TestCommit_continuesFromHEADOrTheBranch(t *testing.T) {
	g := NewWithT(t)
	c := newClient(t)
	directory := t.TempDir()
	g.Expect(c.History(t.Context(), directory, history.Options{Commits: 3})).To(Succeed())
	first, err := c.Commit(t.Context(), directory, "feature", 1)
	g.Expect(err).NotTo(HaveOccurred())
	second, err := c.Commit(t.Context(), directory, "feature", 2)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(c.Run(t.Context(), directory, nil, "rev-list", "--reverse", "main..feature")).To(Equal(first + "\n" + second))
	g.Expect(c.Run(t.Context(), directory, nil, "diff", "--name-only", first, second)).To(Equal("bench.txt"))
}

func TestClient_hidesThePasswordAndShowsErrorsOfGit(t *testing.T) {
	g := NewWithT(t)
	c := newClient(t)
	info, err := os.Stat(filepath.Join(c.home, ".netrc"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(info.Mode().Perm()).To(Equal(os.FileMode(0o600)))
	_, err = c.Run(t.Context(), t.TempDir(), nil, "rev-parse", "HEAD")
	g.Expect(err).To(MatchError(ContainSubstring("not a git repository")))
	_, err = c.Run(t.Context(), t.TempDir(), strings.NewReader("nonsense\n"), "fast-import", "--quiet")
	g.Expect(err).To(HaveOccurred())
}
