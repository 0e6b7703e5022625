package snapshot_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/internal/git/internal/process"
	"github.com/forgeplane/forgeplane/internal/git/object"
	"github.com/forgeplane/forgeplane/internal/git/snapshot"
)

// oddTree commits files of all kinds, with names of all kinds.
func oddTree(t *testing.T, format string) (c *gittest.Client, commit string) {
	t.Helper()
	c = gittest.New(t, format)
	c.Commit(t, "README", "hello\n")
	for _, name := range []string{"dir/a", "dir/b/c", "dir.txt", "dir.d/x", "dir-d/x", "dir/b.d/x", "tab\there", "line\nbreak", `"quoted"`, "ümläut", "not-\xff-utf8", "-dash", "sp ace/x", ":colon"} {
		c.Commit(t, name, name)
	}
	if err := os.Symlink("README", filepath.Join(c.Dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(c.Dir, "run"), []byte("#!"), 0o755); err != nil {
		t.Fatal(err)
	}
	c.Git(t, "add", "link", "run")
	c.Git(t, "update-index", "--add", "--cacheinfo", "160000,"+c.Git(t, "rev-parse", "HEAD")+",module")
	c.Git(t, "commit", "--quiet", "--message=odd")
	commit = c.Git(t, "rev-parse", "HEAD")
	return c, commit
}

// listed returns git's list of a directory, with directories first and submodules last.
func listed(t *testing.T, c *gittest.Client, commit, directory string, args ...string) []object.TreeEntry {
	t.Helper()
	args = append([]string{"ls-tree", "-z"}, append(args, "--full-tree", commit+":"+directory)...)
	var entries []object.TreeEntry
	for line := range strings.SplitSeq(strings.TrimSuffix(c.Git(t, args...), "\x00"), "\x00") {
		meta, name, _ := strings.Cut(line, "\t")
		var e object.TreeEntry
		if _, err := fmt.Sscan(meta, &e.Mode, &e.Type, &e.ID); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if e.Path = name; directory != "" {
			e.Path = directory + "/" + name
		}
		entries = append(entries, e)
	}
	slices.SortStableFunc(entries, func(a, b object.TreeEntry) int { return rank[a.Type] - rank[b.Type] })
	return entries
}

// rank is the position of entries of a type in a list.
var rank = map[string]int{"tree": 0, "blob": 1, "commit": 2}

func TestTree_agreesWithGit(t *testing.T) {
	for _, format := range gittest.Formats {
		t.Run(format, func(t *testing.T) {
			g := NewWithT(t)
			c, commit := oddTree(t, format)
			r := gittest.Bare(t, c)
			for _, directory := range []string{"", "dir", "dir/b", "sp ace"} {
				for range 2 { // the second time, from memory
					g.Expect(snapshot.Tree(t.Context(), r, commit, directory, false)).To(Equal(listed(t, c, commit, directory)))
					all := listed(t, c, commit, directory, "-r", "-t")
					g.Expect(snapshot.Tree(t.Context(), r, commit, "/"+directory+"/", true)).To(Equal(all))
					g.Expect(slices.IsSortedFunc(all, object.TreeEntry.Compare)).To(BeTrue())
				}
			}
			for _, missing := range []string{"README", "nothing", "dir/nothing", "module", "link", "..", "a/../dir", "dir//b", "a\x00b", "line\nbreak"} {
				for _, recursive := range []bool{false, true} {
					_, err := snapshot.Tree(t.Context(), r, commit, missing, recursive)
					g.Expect(err).To(MatchError(git.ErrObjectNotFound), "%q", missing)
				}
			}
			empty := c.Git(t, "commit-tree", "-m", "empty", c.Git(t, "mktree", "--missing"))
			c.Git(t, "push", "--quiet", r.Dir(), empty+":refs/heads/empty")
			g.Expect(snapshot.Tree(t.Context(), r, empty, "", false)).To(BeEmpty())
			g.Expect(snapshot.Tree(t.Context(), r, empty, "", true)).To(BeEmpty())
		})
	}
}

func TestTree_limitsWhatIsBelow(t *testing.T) {
	g := NewWithT(t)
	c := gittest.New(t, "sha1")
	commit := c.Nest(t, 20, 5)
	r := gittest.Bare(t, c)
	for range 2 { // the result is not remembered
		_, err := snapshot.Tree(t.Context(), r, commit, "", true)
		g.Expect(err).To(MatchError(process.ErrOutputTooLarge))
	}
	g.Expect(snapshot.Tree(t.Context(), r, commit, "", false)).To(HaveLen(20))
	g.Expect(snapshot.Tree(t.Context(), r, commit, "0001/0002", true)).To(HaveLen(20 + 20*20 + 20*20*20))
}

func TestFirstBelow_agreesWithTree(t *testing.T) {
	g := NewWithT(t)
	c := gittest.New(t, "sha1")
	commit := c.Nest(t, 20, 4)
	r := gittest.Bare(t, c)
	for directory, remembered := range map[string]bool{"": false, "/0003/": true} {
		all, err := snapshot.Tree(t.Context(), r, commit, directory, true)
		g.Expect(err).NotTo(HaveOccurred())
		trees := slices.IndexFunc(all, func(e object.TreeEntry) bool { return e.Type == "blob" })
		// Everything is listed, because the size is not known yet.
		g.Expect(snapshot.FirstBelow(t.Context(), r, commit, directory, nil, 7)).To(HaveLen(len(all)))
		if remembered {
			g.Expect(snapshot.FirstBelow(t.Context(), r, commit, directory, nil, 7)).To(HaveLen(len(all)))
			continue
		}
		g.Expect(snapshot.FirstBelow(t.Context(), r, commit, directory, nil, 7)).To(Equal(all[:7]))
		for _, i := range []int{0, trees - 50, trees - 1, trees, len(all) / 2, len(all) - 3, len(all) - 1} {
			past := func(e object.TreeEntry) bool { return e.Compare(all[i]) > 0 }
			got, err := snapshot.FirstBelow(t.Context(), r, commit, directory, past, 101)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(slices.Equal(got, all[i+1:min(i+102, len(all))])).To(BeTrue(), "%d", i)
			named := func(e object.TreeEntry) bool { return e.ID == all[i].ID }
			g.Expect(snapshot.FirstBelow(t.Context(), r, commit, directory, named, 1)).To(Equal(all[slices.IndexFunc(all, named):][:1]))
		}
	}
}

func TestReadCommit_agreesWithGit(t *testing.T) {
	for _, format := range gittest.Formats {
		t.Run(format, func(t *testing.T) {
			g := NewWithT(t)
			c := gittest.New(t, format)
			first := c.Commit(t, "a", "1")
			c.Env = append(c.Env, "GIT_AUTHOR_NAME=Ärne <A>", "GIT_AUTHOR_EMAIL=arne@example.com", "GIT_AUTHOR_DATE=1700000000 +0530",
				"GIT_COMMITTER_NAME=Bo", "GIT_COMMITTER_EMAIL=bo@example.com", "GIT_COMMITTER_DATE=1700000001 -0330")
			c.Git(t, "commit", "--quiet", "--allow-empty", "--message=A title\nof two lines\n\nAnd a body.\n\nWith: a trailer")
			id := c.Git(t, "rev-parse", "HEAD")
			r := gittest.Bare(t, c)
			got, err := r.ReadCommit(t.Context(), id)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got.ID).To(Equal(id))
			g.Expect(got.Tree).To(Equal(c.Git(t, "rev-parse", "HEAD^{tree}")))
			g.Expect(got.Parents).To(Equal([]string{first}))
			g.Expect(got.Author.Name).To(Equal(c.Git(t, "show", "--no-patch", "--format=%an")))
			g.Expect(got.Author.Email).To(Equal("arne@example.com"))
			g.Expect(got.Author.When.Format(time.RFC3339)).To(Equal(c.Git(t, "show", "--no-patch", "--format=%aI")))
			g.Expect(got.Committer.When.Format(time.RFC3339)).To(Equal(c.Git(t, "show", "--no-patch", "--format=%cI")))
			g.Expect(got.Title()).To(Equal(c.Git(t, "show", "--no-patch", "--format=%s")))
			g.Expect(got.Message).To(Equal(c.Git(t, "show", "--no-patch", "--format=%B")))
			for _, other := range []string{got.Tree, strings.Repeat("0", len(id))} {
				_, err := r.ReadCommit(t.Context(), other)
				g.Expect(err).To(MatchError(git.ErrObjectNotFound))
			}
		})
	}
}
