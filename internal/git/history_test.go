package git_test

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
)

func TestTheContributorsAreTheAuthors(t *testing.T) {
	for _, format := range formats {
		t.Run(format, func(t *testing.T) {
			g := NewWithT(t)
			c := gittest.New(t, format)
			c.Commit(t, "a", "1")
			c.Commit(t, ".mailmap", "Somebody Else <else@example.com> <ann@example.com>\n")
			for _, who := range []string{"Bo <bo@example.com>", "Bo Boss <bo@example.com>", "Bo Boss <bo@example.com>", "Ann <ANN@example.com>", "ö x <>"} {
				c.Git(t, "commit", "--quiet", "--allow-empty", "--author="+who, "--message=more")
			}
			r := bare(t, c)
			for range 2 { // found, and remembered
				g.Expect(r.Contributors(t.Context(), c.Git(t, "rev-parse", "HEAD"))).To(Equal([]git.Contributor{
					{Name: "ö x", Commits: 1}, {Name: "Ann", Email: "ANN@example.com", Commits: 1},
					{Name: "Ann Author", Email: "ann@example.com", Commits: 2}, {Name: "Bo Boss", Email: "bo@example.com", Commits: 3},
				}))
			}
			g.Expect(r.Contributors(t.Context(), c.Git(t, "rev-parse", "HEAD~5"))).To(Equal([]git.Contributor{
				{Name: "Ann Author", Email: "ann@example.com", Commits: 2},
			}))
			_, err := r.Contributors(t.Context(), strings.Repeat("0", 40))
			g.Expect(err).To(HaveOccurred())
			_, err = r.Contributors(t.Context(), "--all")
			g.Expect(err).To(HaveOccurred())
		})
	}
}

func TestTheCommonAncestorIsThatOfGit(t *testing.T) {
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
	r := bare(t, c)
	refs := []string{"main", "b0", "b1", "b2", "b3", "c0", "c1", "c2", "c3"}
	for _, one := range refs {
		for _, two := range refs {
			for _, three := range []string{"main", "c1"} {
				ids := strings.Split(c.Git(t, "rev-parse", one, two, three), "\n")
				want := c.Git(t, "merge-base", one, two, three)
				g.Expect(r.CommonAncestor(t.Context(), ids[0], ids[1:]...)).To(Equal(want), "%s %s %s", one, two, three)
			}
		}
	}
	ids := strings.Split(c.Git(t, "rev-parse", "main", "apart"), "\n")
	for range 2 {
		g.Expect(r.CommonAncestor(t.Context(), ids[0], ids[1])).To(BeEmpty())
	}
	_, err := r.CommonAncestor(t.Context(), ids[0], "--all")
	g.Expect(err).To(HaveOccurred())
}

func TestMergedCommitsAreThoseThatGitFinds(t *testing.T) {
	for _, format := range formats {
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
			r := bare(t, c)
			for _, into := range all {
				merged, err := r.Merged(t.Context(), into, all...)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(merged).To(HaveKey(into))
				for _, id := range all {
					_, err := c.Try("merge-base", "--is-ancestor", id, into)
					g.Expect(merged[id]).To(Equal(err == nil), "%s into %s", id, into)
				}
			}
			_, err := r.Merged(t.Context(), "main", all...)
			g.Expect(err).To(HaveOccurred())
			_, err = r.Merged(t.Context(), strings.Repeat("0", len(all[0])), all...)
			g.Expect(err).To(HaveOccurred())
		})
	}
}
