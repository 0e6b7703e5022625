package git_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
)

// refsOf returns the refs of a repository, as git lists them.
func refsOf(t *testing.T, r *git.Repository, args ...string) []git.Ref {
	t.Helper()
	c := &gittest.Client{Dir: r.Dir()}
	out := c.Git(t, append([]string{"for-each-ref", "--format=%(objectname) %(objecttype) %(refname)"}, args...)...)
	var all []git.Ref
	for line := range strings.Lines(out) {
		var ref git.Ref
		if _, err := fmt.Sscan(line, &ref.Object, &ref.Type, &ref.Name); err != nil {
			t.Fatal(err)
		}
		all = append(all, ref)
	}
	return all
}

func TestUpdatesOfRefsAreMadeAllOrNone(t *testing.T) {
	for _, format := range []string{"sha1", "sha256"} {
		t.Run(format, func(t *testing.T) {
			c := gittest.New(t, format)
			one := c.Commit(t, "a", "1")
			two := c.Commit(t, "a", "2")
			tree := c.Git(t, "rev-parse", "HEAD^{tree}")
			c.Git(t, "branch", "old")
			c.Git(t, "branch", "moving", one)
			r := bare(t, c)
			zero := strings.Repeat("0", len(one))
			for _, tt := range []struct {
				about   string
				updates []git.RefUpdate
				want    error // errAny for one of no kind
			}{
				{"nothing", nil, nil},
				{"all kinds", []git.RefUpdate{
					{Ref: "refs/heads/new/ümläut", New: one}, {Ref: "refs/heads/old", Old: two}, {Ref: "refs/heads/moving", Old: one, New: two},
				}, nil},
				{"back, with zeros", []git.RefUpdate{
					{Ref: "refs/heads/new/ümläut", Old: one, New: zero}, {Ref: "refs/heads/old", Old: zero, New: two}, {Ref: "refs/heads/moving", Old: two, New: one},
				}, nil},
				{"one is there", []git.RefUpdate{{Ref: "refs/heads/a", New: one}, {Ref: "refs/heads/main", New: one}}, git.ErrRefMoved},
				{"one has moved", []git.RefUpdate{{Ref: "refs/heads/a", New: one}, {Ref: "refs/heads/main", Old: one, New: two}}, git.ErrRefMoved},
				{"one to delete has moved", []git.RefUpdate{{Ref: "refs/heads/a", New: one}, {Ref: "refs/heads/main", Old: one}}, git.ErrRefMoved},
				{"one is gone", []git.RefUpdate{{Ref: "refs/heads/a", New: one}, {Ref: "refs/heads/gone", Old: one}}, git.ErrRefMoved},
				{"a parent is in the way", []git.RefUpdate{{Ref: "refs/heads/a", New: one}, {Ref: "refs/heads/main/a", New: one}}, git.ErrRefInTheWay},
				{"a branch that is no commit", []git.RefUpdate{{Ref: "refs/heads/a", New: one}, {Ref: "refs/heads/tree", New: tree}}, errAny},
				{"an object that is not there", []git.RefUpdate{{Ref: "refs/heads/a", New: strings.Repeat("1", len(one))}}, errAny},
				{"a malformed name", []git.RefUpdate{{Ref: "refs/heads/a", New: one}, {Ref: "refs/heads/-x", New: one}}, errAny},
				{"a second command", []git.RefUpdate{{Ref: "refs/heads/a\x00" + one + "\x00delete refs/heads/main", New: one}}, errAny},
				{"no ref", []git.RefUpdate{{Ref: "HEAD", Old: two, New: one}}, errAny},
				{"a revision", []git.RefUpdate{{Ref: "refs/heads/a", New: "main"}}, errAny},
				{"nothing to delete", []git.RefUpdate{{Ref: "refs/heads/a"}}, errAny},
			} {
				before := refsOf(t, r)
				err := r.UpdateRefs(t.Context(), tt.updates...)
				if errors.Is(tt.want, errAny) != (err != nil && !errors.Is(err, git.ErrRefMoved) && !errors.Is(err, git.ErrRefInTheWay)) ||
					!errors.Is(tt.want, errAny) && !errors.Is(err, tt.want) {
					t.Errorf("%s: %v", tt.about, err)
				}
				after := refsOf(t, r)
				if err != nil && !slices.Equal(after, before) {
					t.Errorf("%s: %v, and yet there are %v", tt.about, err, after)
				}
				for _, u := range tt.updates {
					i := slices.IndexFunc(after, func(ref git.Ref) bool { return ref.Name == u.Ref })
					if gone := u.New == "" || u.New == zero; err == nil && (gone != (i < 0) || !gone && after[i].Object != u.New) {
						t.Errorf("%s: after %v there are %v", tt.about, u, after)
					}
				}
			}
		})
	}
}

var errAny = errors.New("some error")

func TestRefsAreListedAsGitSortsThem(t *testing.T) {
	c := gittest.New(t, "sha1")
	for i, name := range []string{"v1.10", "v1.9", "v1.9-rc1", "v2", "a/b", "ümläut"} {
		c.Env = []string{fmt.Sprintf("GIT_COMMITTER_DATE=@%d +0000", 1_700_000_000+(i*7)%4)}
		c.Commit(t, "a", name)
		if i%2 == 0 {
			c.Git(t, "tag", "--annotate", "--message=x", name)
		} else {
			c.Git(t, "tag", name)
		}
		c.Git(t, "branch", name)
	}
	c.Git(t, "checkout", "--quiet", "v1.9")
	c.Git(t, "checkout", "--quiet", "-b", "apart")
	c.Commit(t, "b", "b")
	r := bare(t, c)
	for _, by := range []git.RefOrder{git.ByName, git.ByDate, git.ByVersion} {
		for sign, descending := range map[string]bool{"": false, "-": true} {
			got, err := r.SortedRefs(t.Context(), "refs/tags/", by, descending)
			if want := refsOf(t, r, "--sort="+sign+string(by), "refs/tags/"); err != nil || !slices.Equal(got, want) || len(got) != 6 {
				t.Errorf("%s%s: %v (%v), want %v", sign, by, got, err, want)
			}
		}
	}
	for _, into := range []string{"main", "apart", "v1.9"} {
		id := c.Git(t, "rev-parse", "refs/heads/"+into)
		for _, names := range [][]string{{"refs/heads/"}, {"refs/heads/apart", "refs/heads/v1.10", "refs/heads/v2"}} {
			got, err := r.MergedRefs(t.Context(), id, names...)
			if want := refsOf(t, r, append([]string{"--merged=" + id}, names...)...); err != nil || !slices.Equal(got, want) || len(got) == 0 {
				t.Errorf("merged into %s: %v (%v), want %v", into, got, err, want)
			}
		}
	}
	if got, err := r.MergedRefs(t.Context(), "main", "refs/heads/"); err == nil {
		t.Errorf("a name is an id: %v", got)
	}
}
