package snapshot_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/internal/git/history"
	"github.com/forgeplane/forgeplane/internal/git/snapshot"
)

// A file of 1.2 KB with a message of 1 MB once made an archive of 100 MB, because each placeholder expanded to the whole message.
func TestArchive_placeholdersStay(t *testing.T) {
	for _, format := range gittest.Formats {
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
			r := gittest.Bare(t, c)
			for _, f := range []snapshot.ArchiveFormat{snapshot.Tar, snapshot.Zip} {
				var out bytes.Buffer
				g.Expect(snapshot.WriteArchive(t.Context(), r, snapshot.Archive{Commit: commit, Prefix: "x", Format: f}, &out)).To(Succeed())
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
	r := gittest.Repository(t, gittest.Limited(t, "", git.Limits{Archive: most}), gittest.Storage(t, c), "b.git")
	for _, f := range []snapshot.ArchiveFormat{snapshot.Tar, snapshot.TarGzip, snapshot.TarBzip2} {
		var out bytes.Buffer
		err := snapshot.WriteArchive(t.Context(), r, snapshot.Archive{Commit: large, Prefix: "x", Format: f}, &out)
		g.Expect(git.LimitReached(err)).To(Equal("The archive has more than the 1 MiB that the server allows."), "%s: %v", f, err)
		g.Expect(out.Len()).To(BeNumerically("<=", most))
	}
	g.Expect(snapshot.WriteArchive(t.Context(), r, snapshot.Archive{Commit: small, Prefix: "x", Format: snapshot.Tar}, &bytes.Buffer{})).To(Succeed())
}

// A few small trees can have 10^9 paths below them, which git would hold in memory before it writes the first.
func TestArchive_ofANest(t *testing.T) {
	g := NewWithT(t)
	c := gittest.New(t, "sha1")
	commit := c.Nest(t, 10, 9)
	r := gittest.Repository(t, gittest.Limited(t, "", git.Limits{Memory: 64 << 20}), gittest.Storage(t, c), "b.git")
	var out bytes.Buffer
	err := snapshot.WriteArchive(t.Context(), r, snapshot.Archive{Commit: commit, Prefix: "x", Format: snapshot.TarGzip}, &out)
	g.Expect(git.LimitReached(err)).To(Equal("This takes more than the 64 MiB of memory that the server allows a Git process."), "%v", err)
	g.Expect(out.Len()).To(BeZero())
}

// Git matches every pattern of a .gitattributes with every file, and holds all of them in memory. Only archives read them.
func TestArchive_ofManyAttributes(t *testing.T) {
	const files = 1000
	for name, tt := range map[string]struct {
		patterns int
		limits   git.Limits
		want     string
	}{
		"time":   {200_000, git.Limits{CPU: 2 * time.Second}, "This takes more than the 2s of processor time that the server allows a Git process."},
		"memory": {500_000, git.Limits{Memory: 64 << 20}, "This takes more than the 64 MiB of memory that the server allows a Git process."},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			c := gittest.New(t, "sha1")
			var attributes strings.Builder
			for i := range tt.patterns {
				if i%50 == 0 {
					fmt.Fprintf(&attributes, "[attr]macro%d export-ignore\n", i)
				}
				fmt.Fprintf(&attributes, "*%07d*x*y attribute%d\n", i, i%1000)
			}
			small := c.Commit(t, "a", "a")
			// A client that checks out such a file takes as long.
			raw := func(name, id string) string {
				bytes, err := hex.DecodeString(id)
				if err != nil {
					t.Fatal(err)
				}
				return "100644 " + name + "\x00" + string(bytes)
			}
			blob := c.Git(t, "rev-parse", small+":a")
			tree := raw(".gitattributes", c.Write(t, "blob", attributes.String()))
			for i := range files {
				tree += raw(fmt.Sprintf("file%04d", i), blob)
			}
			head := c.Git(t, "commit-tree", "-p", small, "-m", "attributes", c.Write(t, "tree", tree))
			c.Git(t, "update-ref", "refs/heads/attributes", head)
			r := gittest.Repository(t, gittest.Limited(t, "", tt.limits), gittest.Storage(t, c), "b.git")
			err := snapshot.WriteArchive(t.Context(), r, snapshot.Archive{Commit: head, Prefix: "x", Format: snapshot.Tar}, io.Discard)
			g.Expect(git.LimitReached(err)).To(Equal(tt.want), "%v", err)

			diff, err := history.Compare(t.Context(), r, small, head, time.Minute)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(diff.TimedOut).To(BeFalse())
			_, err = snapshot.Tree(t.Context(), r, head, "", true)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(snapshot.WriteArchive(t.Context(), r, snapshot.Archive{Commit: small, Prefix: "x", Format: snapshot.Tar}, io.Discard)).To(Succeed())
		})
	}
}
