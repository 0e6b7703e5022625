package tags_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	. "github.com/forgeplane/forgeplane/apiserver/v4/tags"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
	generator "github.com/forgeplane/forgeplane/test/history"
	"github.com/forgeplane/forgeplane/test/seed"
	"github.com/forgeplane/forgeplane/test/soak"
)

// TestListTags_agreesWithGit lists the tags of a large history, and of one with annotated tags, and compares them with the output of git.
func TestListTags_agreesWithGit(t *testing.T) {
	large := gittest.New(t, "sha1")
	size := soak.Times(500, 5000)
	large.Import(t, generator.Stream(generator.Options{Commits: size, Topics: size / 10}))
	for name, c := range map[string]*gittest.Client{"many commits": large, "tags of tags": history(t, "sha1")} {
		t.Run(name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed.Value(), 16))
			commits := strings.Fields(c.Git(t, "rev-list", "--all"))
			for i := range 30 {
				id := commits[random.IntN(len(commits))]
				c.Git(t, "tag", fmt.Sprintf("light/%d", i), id)
				c.Git(t, "tag", "--annotate", fmt.Sprintf("--message=About %d\n\nMore of %d", i, random.IntN(9)), fmt.Sprintf("drawn/%d", i), id)
			}
			s := newShop(t, c)
			const format = "--format=%(refname:lstrip=2)|%(objectname)|%(if:equals=tag)%(objecttype)%(then)%(contents:subject)%(end)"
			var want []string
			for line := range strings.SplitSeq(c.Git(t, "for-each-ref", format, "refs/tags/"), "\n") {
				name, _, _ := strings.Cut(line, "|")
				want = append(want, line+"|"+c.Git(t, "rev-parse", "refs/tags/"+name+"^{commit}"))
			}
			var got []string
			for page := "1"; page != ""; {
				answer := s.As("", "GET "+at+"?order_by=name&sort=asc&per_page=25&page="+page, "")
				for _, tag := range familytest.Decode[[]Tag](t, answer) {
					subject := ""
					if tag.Message != nil {
						subject, _, _ = strings.Cut(*tag.Message, "\n")
					}
					got = append(got, strings.Join([]string{tag.Name, tag.Target, subject, tag.Commit.ID}, "|"))
				}
				page = answer.Header.Get("X-Next-Page")
			}
			if !slices.Equal(got, want) {
				t.Errorf("the tags are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		})
	}
}
