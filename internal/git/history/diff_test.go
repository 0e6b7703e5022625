package history_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/internal/git/history"
)

// patience is longer than any comparison of these tests takes.
const patience = time.Minute

// texts returns git's patches for a comparison, in order, each beginning with the lines that name the files.
func texts(t *testing.T, c *gittest.Client, from, to string) (all []string) {
	t.Helper()
	whole := c.Git(t, "-c", "core.quotePath=true", "diff", "--find-renames", "--no-color", "--submodule=short", from, to) + "\n"
	for i, patch := range regexp.MustCompile(`(?m)^diff --git .*\n`).Split(whole, -1) {
		if i == 0 {
			continue
		}
		at := regexp.MustCompile(`(?m)^(--- |Binary files )`).FindStringIndex(patch)
		if at == nil {
			all = append(all, "")
			continue
		}
		all = append(all, patch[at[0]:])
	}
	return all
}

// odd commits changes of all kinds, and returns the commits before and after.
func odd(t *testing.T, format string) (c *gittest.Client, before, after string) {
	t.Helper()
	c = gittest.New(t, format)
	long := strings.Repeat("a line that is the same\n", 40)
	write := func(name, content string) {
		full := filepath.Join(c.Dir, name)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(full); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"changed", "removed", "tab\there", "line\nbreak", `"quoted"`, "ümläut", "not-\xff-utf8", "sp ace/x", "becomes-link", "mode"} {
		write(name, name+"\n"+long+"--- a line like a name\n+++ another\ndiff --git a/x b/x\n@@ -1 +1 @@\n")
	}
	write("renamed", strings.Repeat("something else\n", 30))
	write("renamed-and-changed", strings.Repeat("and something else\n", 30))
	write("binary", "a\x00b")
	write("no-newline", "one\ntwo")
	write("crlf", "one\r\ntwo\r\n")
	c.Git(t, "add", ".")
	c.Git(t, "update-index", "--add", "--cacheinfo", "160000,"+strings.Repeat("1", len(c.Git(t, "write-tree")))+",module")
	c.Git(t, "commit", "--quiet", "--message=before")
	before = c.Git(t, "rev-parse", "HEAD")

	for _, name := range []string{"changed", "tab\there", "line\nbreak", `"quoted"`, "ümläut", "not-\xff-utf8", "sp ace/x"} {
		write(name, name+" is changed\n"+long+"---- a line like a name\n+++ another one\ndiff --git a/y b/y\n@@ -2 +2 @@\n")
	}
	c.Git(t, "rm", "--quiet", "removed")
	c.Git(t, "mv", "renamed", "renamed to")
	c.Git(t, "mv", "renamed-and-changed", "moved")
	write("moved", strings.Repeat("and something else\n", 29)+"or not\n")
	write("binary", "a\x00c")
	write("no-newline", "one\nthree")
	write("crlf", "one\r\nthree\r\n")
	write("added", "new\n")
	write("empty", "")
	if err := os.Remove(filepath.Join(c.Dir, "becomes-link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("changed", filepath.Join(c.Dir, "becomes-link")); err != nil {
		t.Fatal(err)
	}
	c.Git(t, "add", ".")
	c.Git(t, "update-index", "--chmod=+x", "mode")
	c.Git(t, "update-index", "--add", "--cacheinfo", "160000,"+strings.Repeat("2", len(before))+",module")
	c.Git(t, "commit", "--quiet", "--message=after")
	after = c.Git(t, "rev-parse", "HEAD")
	return c, before, after
}

func TestCompare_agreesWithGit(t *testing.T) {
	for _, format := range gittest.Formats {
		t.Run(format, func(t *testing.T) {
			g := NewWithT(t)
			c, before, after := odd(t, format)
			r := gittest.Bare(t, c)
			for _, pair := range [][2]string{{before, after}, {after, before}, {"", before}, {before, before}} {
				from := pair[0]
				if from == "" {
					from = c.Git(t, "hash-object", "-t", "tree", "/dev/null")
				}
				want := texts(t, c, from, pair[1])
				for range 2 { // the second time, from memory
					d, err := history.Compare(t.Context(), r, pair[0], pair[1], patience)
					g.Expect(err).NotTo(HaveOccurred())
					g.Expect(d.TimedOut).To(BeFalse())
					var got []string
					for _, change := range d.Changes {
						g.Expect(change.TooLarge).To(BeFalse())
						got = append(got, change.Names+change.Text)
					}
					g.Expect(got).To(Equal(want))
				}
			}
			d, err := history.Compare(t.Context(), r, before, after, patience)
			g.Expect(err).NotTo(HaveOccurred())
			of := func(path string) (found []history.Change) {
				for _, change := range d.Changes {
					if change.NewPath == path {
						change.Text, change.Names = "", ""
						found = append(found, change)
					}
				}
				return found
			}
			g.Expect(of("added")).To(Equal([]history.Change{{OldPath: "added", NewPath: "added", NewMode: "100644"}}))
			g.Expect(of("removed")).To(Equal([]history.Change{{OldPath: "removed", NewPath: "removed", OldMode: "100644"}}))
			g.Expect(of("renamed to")).To(Equal([]history.Change{{OldPath: "renamed", NewPath: "renamed to", OldMode: "100644", NewMode: "100644"}}))
			g.Expect(of("mode")).To(Equal([]history.Change{{OldPath: "mode", NewPath: "mode", OldMode: "100644", NewMode: "100755"}}))
			g.Expect(of("module")).To(Equal([]history.Change{{OldPath: "module", NewPath: "module", OldMode: "160000", NewMode: "160000"}}))
			g.Expect(of("becomes-link")).To(Equal([]history.Change{
				{OldPath: "becomes-link", NewPath: "becomes-link", OldMode: "100644"}, {OldPath: "becomes-link", NewPath: "becomes-link", NewMode: "120000"},
			}))
			g.Expect(of("line\nbreak")).To(HaveLen(1))
			g.Expect(of("not-\xff-utf8")).To(HaveLen(1))
		})
	}
}

func TestCompare_endsInTime(t *testing.T) {
	g := NewWithT(t)
	c := gittest.New(t, "sha1")
	from, to := c.Commit(t, "a", "1"), c.Commit(t, "a", "2")
	r := gittest.Bare(t, c)
	slow := gittest.Repository(t, gittest.EngineWith(t, `case "$1" in diff-tree) exec sleep 600;; esac`), filepath.Dir(filepath.Dir(r.Dir())), "a/b.git")
	d, err := history.Compare(t.Context(), slow, from, to, 50*time.Millisecond)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(d.TimedOut).To(BeTrue())
	d, err = history.Compare(t.Context(), r, from, to, patience)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(d.Changes).To(HaveLen(1))
}

func TestCompare_refusesOtherObjects(t *testing.T) {
	g := NewWithT(t)
	c := gittest.New(t, "sha1")
	id := c.Commit(t, "a", "1")
	r := gittest.Bare(t, c)
	for _, pair := range [][2]string{{"--output=/tmp/x", id}, {id, "main"}, {id, strings.Repeat("0", 40)}, {strings.Repeat("1", 40), id}} {
		_, err := history.Compare(t.Context(), r, pair[0], pair[1], patience)
		g.Expect(err).To(HaveOccurred(), "%v", pair)
		_, err = history.CommitsBetween(t.Context(), r, pair[0], pair[1])
		g.Expect(err).To(HaveOccurred(), "%v", pair)
	}
}

func TestCommitsBetween_agreesWithGit(t *testing.T) {
	for _, format := range gittest.Formats {
		t.Run(format, func(t *testing.T) {
			g := NewWithT(t)
			c := gittest.New(t, format)
			var stream strings.Builder
			for i := range 300 { // more than one batch
				fmt.Fprintf(&stream, "commit refs/heads/main\ncommitter Ann Author <ann@example.com> 1700000000 +0000\ndata %d\n%s\n", i+1, strings.Repeat("x", i+1))
			}
			c.Import(t, strings.NewReader(stream.String()))
			c.Git(t, "branch", "side", "main~149")
			c.Git(t, "checkout", "--quiet", "side")
			c.Commit(t, "a", "1")
			c.Git(t, "merge", "--quiet", "--message=merge", "main~100")
			r := gittest.Bare(t, c)
			for _, pair := range [][2]string{{"main", "side"}, {"side", "main"}, {"main~299", "side"}, {"main", "main"}} {
				ids := strings.Fields(c.Git(t, "rev-parse", pair[0], pair[1]))
				want := strings.Fields(c.Git(t, "rev-list", "--reverse", pair[0]+".."+pair[1]))
				got, err := history.CommitsBetween(t.Context(), r, ids[0], ids[1])
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(slices.Collect(func(yield func(string) bool) {
					for _, one := range got {
						yield(one.ID)
					}
				})).To(HaveExactElements(want))
			}
		})
	}
}
