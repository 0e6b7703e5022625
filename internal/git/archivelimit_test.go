package git_test

import (
	"bytes"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
)

// A file of 1.2 KB and a message of 1 MB made 100 MB: each placeholder became the whole message.
func TestArchive_placeholdersStay(t *testing.T) {
	for _, format := range formats {
		t.Run(format, func(t *testing.T) {
			g := NewWithT(t)
			c := gittest.New(t, format)
			placeholders := strings.Repeat("$Format:%B$\n", 100)
			c.Commit(t, "a.txt", placeholders)
			c.Commit(t, "sub/b.txt", placeholders)
			c.Commit(t, "left-out", "")
			c.Commit(t, "sub/.gitattributes", "*.txt export-subst\n")
			c.Commit(t, ".gitattributes", "[attr]often export-subst\n*.txt often\n/a.txt export-subst\nleft-out export-ignore\n")
			tree := c.Git(t, "rev-parse", "HEAD^{tree}")
			commit := c.Write(t, "commit", "tree "+tree+"\nauthor a <a> 0 +0000\ncommitter a <a> 0 +0000\n\n"+strings.Repeat("long ", 200_000)+"\n")
			c.Git(t, "update-ref", "refs/heads/long", commit)
			r := bare(t, c)
			for _, f := range []git.ArchiveFormat{git.Tar, git.Zip} {
				var out bytes.Buffer
				g.Expect(r.Archive(t.Context(), git.Archive{Commit: commit, Prefix: "x", Format: f}, &out)).To(Succeed())
				g.Expect(out.Len()).To(BeNumerically("<", 20_000), "%s", f)
				got := unpack(t, f, out.Bytes())
				g.Expect(got["x/a.txt"]).To(Equal(placeholders))
				g.Expect(got["x/sub/b.txt"]).To(Equal(placeholders))
				g.Expect(got).NotTo(HaveKey("x/left-out"))
			}
		})
	}
}

func TestArchive_exceedsItsLimit(t *testing.T) {
	const most = 1 << 20
	g := NewWithT(t)
	c := gittest.New(t, "sha1")
	small, large := c.Commit(t, "small", "small"), c.Commit(t, "zeros", strings.Repeat("\x00", 64<<20))
	r := repository(t, limited(t, "", git.Limits{Archive: most}), bareStorage(t, c), "b.git")
	for _, f := range []git.ArchiveFormat{git.Tar, git.TarGzip, git.TarBzip2} {
		var out bytes.Buffer
		err := r.Archive(t.Context(), git.Archive{Commit: large, Prefix: "x", Format: f}, &out)
		g.Expect(git.LimitReached(err)).To(Equal("The archive has more than the 1 MiB that the server allows."), "%s: %v", f, err)
		g.Expect(out.Len()).To(BeNumerically("<=", most))
	}
	g.Expect(r.Archive(t.Context(), git.Archive{Commit: small, Prefix: "x", Format: git.Tar}, &bytes.Buffer{})).To(Succeed())
}

// A few small trees have 10^9 paths below them, which git holds in memory before it writes the first.
func TestArchive_ofANest(t *testing.T) {
	g := NewWithT(t)
	c := gittest.New(t, "sha1")
	commit := c.Nest(t, 10, 9)
	r := repository(t, limited(t, "", git.Limits{Memory: 64 << 20}), bareStorage(t, c), "b.git")
	var out bytes.Buffer
	err := r.Archive(t.Context(), git.Archive{Commit: commit, Prefix: "x", Format: git.TarGzip}, &out)
	g.Expect(git.LimitReached(err)).To(Equal("This takes more than the 64 MiB of memory that the server allows a Git process."), "%v", err)
	g.Expect(out.Len()).To(BeZero())
}
