package history_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/internal/git/history"
	"github.com/forgeplane/forgeplane/internal/git/object"
)

func TestContributors_areTheAuthors(t *testing.T) {
	for _, format := range gittest.Formats {
		t.Run(format, func(t *testing.T) {
			g := NewWithT(t)
			c := gittest.New(t, format)
			c.Commit(t, "a", "1")
			c.Commit(t, ".mailmap", "Somebody Else <else@example.com> <ann@example.com>\n")
			for _, who := range []string{"Bo <bo@example.com>", "Bo Boss <bo@example.com>", "Bo Boss <bo@example.com>", "Ann <ANN@example.com>", "ö x <>"} {
				c.Git(t, "commit", "--quiet", "--allow-empty", "--author="+who, "--message=more")
			}
			r := gittest.Bare(t, c)
			for range 2 { // the second time, from memory
				g.Expect(history.Contributors(t.Context(), r, c.Git(t, "rev-parse", "HEAD"))).To(Equal([]history.Contributor{
					{Name: "ö x", Commits: 1}, {Name: "Ann", Email: "ANN@example.com", Commits: 1},
					{Name: "Ann Author", Email: "ann@example.com", Commits: 2}, {Name: "Bo Boss", Email: "bo@example.com", Commits: 3},
				}))
			}
			g.Expect(history.Contributors(t.Context(), r, c.Git(t, "rev-parse", "HEAD~5"))).To(Equal([]history.Contributor{
				{Name: "Ann Author", Email: "ann@example.com", Commits: 2},
			}))
			_, err := history.Contributors(t.Context(), r, strings.Repeat("0", 40))
			g.Expect(err).To(HaveOccurred())
			_, err = history.Contributors(t.Context(), r, "--all")
			g.Expect(err).To(HaveOccurred())
		})
	}
}

func TestEmails_belongToAuthorsAndCommitters(t *testing.T) {
	for _, format := range gittest.Formats {
		t.Run(format, func(t *testing.T) {
			g := NewWithT(t)
			c := gittest.New(t, format)
			from := c.Commit(t, ".mailmap", "Somebody Else <else@example.com> <bo@example.com>\n")
			c.Env = []string{"GIT_COMMITTER_EMAIL=carl@example.com"}
			c.Git(t, "checkout", "--quiet", "-b", "topic")
			c.Git(t, "commit", "--quiet", "--allow-empty", "--author=Bo <bo@example.com>", "--message=more")
			c.Git(t, "checkout", "--quiet", "main")
			c.Git(t, "commit", "--quiet", "--allow-empty", "--author=Nobody <>", "--message=more")
			c.Git(t, "merge", "--quiet", "--no-edit", "topic")
			r, to := gittest.Bare(t, c), c.Git(t, "rev-parse", "HEAD")
			for range 2 { // the second time, from memory
				g.Expect(history.Emails(t.Context(), r, from, to)).To(Equal([]string{"", "ann@example.com", "bo@example.com", "carl@example.com"}))
			}
			g.Expect(history.Emails(t.Context(), r, from, c.Git(t, "rev-parse", "topic"))).To(Equal([]string{"bo@example.com", "carl@example.com"}))
			g.Expect(history.Emails(t.Context(), r, "", from)).To(Equal([]string{"ann@example.com"}))
			g.Expect(history.Emails(t.Context(), r, to, to)).To(BeEmpty())
			for _, invalid := range [][2]string{{"", strings.Repeat("0", len(to))}, {"", "--all"}, {"--all", to}} {
				_, err := history.Emails(t.Context(), r, invalid[0], invalid[1])
				g.Expect(err).To(HaveOccurred(), "%s", invalid)
			}
		})
	}
}

func TestCommonAncestor_agreesWithGit(t *testing.T) {
	g := NewWithT(t)
	c := gittest.New(t, "sha1")
	c.Commit(t, "a", "1")
	for i := range 4 {
		c.Git(t, "checkout", "--quiet", "-b", fmt.Sprint("b", i))
		c.Commit(t, fmt.Sprint(i), "x")
		c.Git(t, "checkout", "--quiet", "-b", fmt.Sprint("c", i), "HEAD~1")
		c.Commit(t, fmt.Sprint(i), "y")
	}
	c.Git(t, "checkout", "--quiet", "--orphan", "apart")
	c.Commit(t, "b", "1")
	r := gittest.Bare(t, c)
	refs := []string{"main", "b0", "b1", "b2", "b3", "c0", "c1", "c2", "c3"}
	for _, one := range refs {
		for _, two := range refs {
			for _, three := range []string{"main", "c1"} {
				ids := strings.Split(c.Git(t, "rev-parse", one, two, three), "\n")
				want := c.Git(t, "merge-base", one, two, three)
				g.Expect(history.CommonAncestor(t.Context(), r, ids[0], ids[1:]...)).To(Equal(want), "%s %s %s", one, two, three)
			}
		}
	}
	ids := strings.Split(c.Git(t, "rev-parse", "main", "apart"), "\n")
	for range 2 {
		g.Expect(history.CommonAncestor(t.Context(), r, ids[0], ids[1])).To(BeEmpty())
	}
	_, err := history.CommonAncestor(t.Context(), r, ids[0], "--all")
	g.Expect(err).To(HaveOccurred())
}

func TestMerged_agreesWithGit(t *testing.T) {
	for _, format := range gittest.Formats {
		t.Run(format, func(t *testing.T) {
			g := NewWithT(t)
			c := gittest.New(t, format)
			for n := range 30 {
				c.Commit(t, fmt.Sprint(n), "x")
				if n%3 == 0 {
					c.Git(t, "branch", fmt.Sprint("branch-", n))
				}
				if n%7 == 3 {
					c.Git(t, "checkout", "--quiet", fmt.Sprint("branch-", n/3*3))
				}
				if n%9 == 5 {
					c.Git(t, "merge", "--quiet", "--no-edit", "main")
				}
			}
			c.Git(t, "checkout", "--quiet", "--orphan", "other")
			c.Commit(t, "other", "x")
			all := strings.Fields(c.Git(t, "for-each-ref", "--format=%(objectname)", "refs/heads"))
			r := gittest.Bare(t, c)
			for _, into := range all {
				merged, err := history.Merged(t.Context(), r, into, all...)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(merged).To(HaveKey(into))
				for _, id := range all {
					_, err := c.Try("merge-base", "--is-ancestor", id, into)
					g.Expect(merged[id]).To(Equal(err == nil), "%s into %s", id, into)
				}
			}
			_, err := history.Merged(t.Context(), r, "main", all...)
			g.Expect(err).To(HaveOccurred())
			_, err = history.Merged(t.Context(), r, strings.Repeat("0", len(all[0])), all...)
			g.Expect(err).To(HaveOccurred())
		})
	}
}

// talkative returns a client with a commit without a message, followed by n commits with messages of a length, each the child of the
// previous one.
func talkative(t *testing.T, n, length int) *gittest.Client {
	t.Helper()
	var stream strings.Builder
	commit := func(message string) {
		fmt.Fprintf(&stream, "commit refs/heads/main\ncommitter Ann Author <ann@example.com> 1700000000 +0000\ndata %d\n%s\n", len(message), message)
	}
	commit("")
	for range n {
		commit(strings.Repeat("ä", length/2))
	}
	c := gittest.New(t, "sha1")
	c.Import(t, strings.NewReader(stream.String()))
	return c
}

func TestCommitsBetween_abridgesLongMessages(t *testing.T) {
	g := NewWithT(t)
	c := talkative(t, 1_100, 17<<10)
	r := gittest.Bare(t, c)
	ids := strings.Fields(c.Git(t, "rev-list", "--reverse", "main"))
	last := len(ids) - 1
	between, err := history.CommitsBetween(t.Context(), r, ids[0], ids[last])
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(between).To(HaveLen(last))
	text := 0
	for _, found := range between {
		text += len(found.Message)
	}
	g.Expect(text).To(BeNumerically("<", 17<<20))
	g.Expect(between[0].Message).To(Equal(strings.Repeat("ä", 8<<10) + "..."))
	g.Expect(between[last-1].Message).To(Equal(strings.Repeat("ä", 512) + "..."))

	logged, _, err := history.List(t.Context(), r, history.Log{Tips: ids[last:], Limit: 2})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(logged[1].Message).To(Equal(between[0].Message))
	alone, err := r.ReadCommit(t.Context(), ids[last])
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(alone.Message).To(HaveLen(17 << 10))
	g.Expect(alone.Listed().Message).To(Equal(between[0].Message))
}

func TestReadCommit_truncatesHugeCommits(t *testing.T) {
	const author, more = "author Ann <ann@example.com> 1700000000 +0000\n", "committer Bo <bo@example.com> 1700000000 +0000\n"
	huge := strings.Repeat("x", 5<<20)
	for name, tt := range map[string]struct {
		headers, message, author, committer string
		length                              int
	}{
		"message": {author + more, huge, "Ann", "Bo", 4 << 20},
		"header":  {author + more + "gpgsig " + huge + "\n", "title", "Ann", "Bo", len("...")},
		"author":  {"author " + huge + " <ann@example.com> 1700000000 +0000\n" + more, "title", strings.Repeat("x", 1<<10) + "...", "", len("...")},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			c := gittest.New(t, "sha1")
			first := c.Commit(t, "a", "1")
			content := fmt.Sprintf("tree %s\nparent %s\n%s\n%s", c.Git(t, "rev-parse", "HEAD^{tree}"), first, tt.headers, tt.message)
			g.Expect(os.WriteFile(filepath.Join(c.Dir, "object"), []byte(content), 0o600)).To(Succeed())
			id := c.Git(t, "hash-object", "-t", "commit", "-w", "--literally", "object")
			c.Git(t, "update-ref", "refs/heads/main", id)
			r := gittest.Bare(t, c)
			listed, _, err := history.List(t.Context(), r, history.Log{Tips: []string{id}, Limit: 2})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(listed).To(HaveLen(2))
			g.Expect(listed[1].ID).To(Equal(first))
			found, err := r.ReadCommit(t.Context(), id)
			g.Expect(err).NotTo(HaveOccurred())
			for _, one := range []*object.Commit{listed[0], found} {
				g.Expect(one.Parents).To(Equal([]string{first}))
				g.Expect(one.Author.Name).To(Equal(tt.author))
				g.Expect(one.Committer.Name).To(Equal(tt.committer))
				g.Expect(one.Message).To(HaveSuffix("..."))
			}
			g.Expect(len(found.Message)).To(BeNumerically("~", tt.length, 1<<10))
			g.Expect(len(listed[0].Message)).To(BeNumerically("<", 17<<10))
		})
	}
}

func TestArrived_areReachableFromTheNewCommitAlone(t *testing.T) {
	g, c := NewWithT(t), gittest.New(t, "sha1")
	c.Commit(t, "a", "1")
	c.Git(t, "checkout", "--quiet", "-b", "side")
	c.Commit(t, "b", "1")
	c.Git(t, "checkout", "--quiet", "main")
	c.Commit(t, "a", "2")
	c.Git(t, "merge", "--quiet", "--no-edit", "side")
	r := gittest.Bare(t, c)
	id := func(revision string) string { return c.Git(t, "rev-parse", revision) }
	missing := strings.Repeat("1", 40)
	found, err := history.Arrived(t.Context(), r, id("main~1"), id("main"), id("main~2"), id("main~1"), id("side"), missing)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found).To(Equal(map[string]bool{id("side"): true}))
}

func TestDescendants_haveTheCommitAmongTheirAncestors(t *testing.T) {
	c := gittest.New(t, "sha1")
	c.Commit(t, "a", "1")
	c.Commit(t, "a", "2")
	c.Git(t, "checkout", "--quiet", "-b", "side")
	c.Commit(t, "b", "1")
	c.Git(t, "checkout", "--quiet", "main")
	c.Commit(t, "a", "3")
	c.Git(t, "merge", "--quiet", "--no-edit", "side")
	r := gittest.Bare(t, c)
	id := func(revision string) string { return c.Git(t, "rev-parse", revision) }
	all := []string{id("main"), id("main~1"), id("main~2"), id("main~3"), id("side"), strings.Repeat("1", 40)}
	for from, want := range map[string][]string{
		"side": {id("main"), id("side")}, "main~2": {id("main"), id("main~1"), id("main~2"), id("side")}, "main": {id("main")},
	} {
		found, err := history.Descendants(t.Context(), r, id(from), all...)
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range all {
			if found[one] != slices.Contains(want, one) {
				t.Errorf("%s: %s is among the descendants: %t", from, one, found[one])
			}
		}
	}
}
