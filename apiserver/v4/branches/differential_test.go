package branches_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	. "github.com/forgeplane/forgeplane/apiserver/v4/branches"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
	generator "github.com/forgeplane/forgeplane/test/history"
	"github.com/forgeplane/forgeplane/test/seed"
	"github.com/forgeplane/forgeplane/test/soak"
)

// TestListBranches_agreesWithGit lists the branches of a large history with many branches, and of one with odd names, and compares them with the output of git.
func TestListBranches_agreesWithGit(t *testing.T) {
	large := gittest.New(t, "sha1")
	size := soak.Times(500, 5000)
	large.Import(t, generator.Stream(generator.Options{Commits: size, Topics: size / 10}))
	for name, c := range map[string]*gittest.Client{"many branches": large, "odd names": history(t, "sha1")} {
		t.Run(name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed.Value(), 14))
			commits := strings.Fields(c.Git(t, "rev-list", "--all"))
			for i := range 20 {
				c.Git(t, "branch", fmt.Sprintf("drawn/%d", i), commits[random.IntN(len(commits))])
			}
			s := newShop(t, c)
			refs := func(options ...string) []string {
				return strings.Split(c.Git(t, append([]string{"for-each-ref", "--format=%(refname:lstrip=2) %(objectname)"}, options...)...), "\n")
			}
			merged := refs("--merged=main", "refs/heads/")
			var want []string
			for _, r := range refs("refs/heads/") {
				want = append(want, fmt.Sprint(r, " ", slices.Contains(merged, r) && !strings.HasPrefix(r, "main ")))
			}
			if got := s.pages(t, ""); !slices.Equal(got, want) {
				t.Errorf("the branches are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			for _, search := range []string{"1", "drawn", "ic/4", "DRAWN", "nothing"} {
				found := slices.DeleteFunc(slices.Clone(want), func(r string) bool {
					name, _, _ := strings.Cut(r, " ")
					return !strings.Contains(name, strings.ToLower(search))
				})
				if got := s.pages(t, search); !slices.Equal(got, found) {
					t.Errorf("with %q in their names there are\n%s\nwant\n%s", search, strings.Join(got, "\n"), strings.Join(found, "\n"))
				}
			}
		})
	}
}

// pages returns the branches of all pages, each with its commit and whether it is merged.
func (s *shop) pages(t *testing.T, search string) (all []string) {
	t.Helper()
	for page := "1"; page != ""; {
		answer := s.As("", "GET "+at+"?per_page=70&page="+page+"&search="+search, "")
		for _, b := range familytest.Decode[[]Branch](t, answer) {
			all = append(all, fmt.Sprint(b.Name, " ", b.Commit.ID, " ", b.Merged))
		}
		page = answer.Header.Get("X-Next-Page")
	}
	return all
}
