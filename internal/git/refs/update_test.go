package refs_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/internal/git/refs"
	"github.com/forgeplane/forgeplane/internal/git/update"
)

// refsOf returns the refs of a repository, as git lists them.
func refsOf(t *testing.T, r *git.Repository, args ...string) []refs.Ref {
	t.Helper()
	c := &gittest.Client{Dir: r.Dir()}
	out := c.Git(t, append([]string{"for-each-ref", "--format=%(objectname) %(objecttype) %(refname)"}, args...)...)
	var all []refs.Ref
	for line := range strings.Lines(out) {
		var ref refs.Ref
		if _, err := fmt.Sscan(line, &ref.Object, &ref.Type, &ref.Name); err != nil {
			t.Fatal(err)
		}
		all = append(all, ref)
	}
	return all
}

func TestApply_changesAllRefsOrNone(t *testing.T) {
	for _, format := range []string{"sha1", "sha256"} {
		t.Run(format, func(t *testing.T) {
			c := gittest.New(t, format)
			one := c.Commit(t, "a", "1")
			two := c.Commit(t, "a", "2")
			tree := c.Git(t, "rev-parse", "HEAD^{tree}")
			c.Git(t, "branch", "old")
			c.Git(t, "branch", "moving", one)
			r := gittest.Bare(t, c)
			zero := strings.Repeat("0", len(one))
			for _, tt := range []struct {
				about   string
				updates []update.Ref
				want    error // errAny for one of no kind
			}{
				{"nothing", nil, nil},
				{"all kinds", []update.Ref{
					{Name: "refs/heads/new/ümläut", New: one}, {Name: "refs/heads/old", Old: two}, {Name: "refs/heads/moving", Old: one, New: two},
				}, nil},
				{"back, with zeros", []update.Ref{
					{Name: "refs/heads/new/ümläut", Old: one, New: zero}, {Name: "refs/heads/old", Old: zero, New: two}, {Name: "refs/heads/moving", Old: two, New: one},
				}, nil},
				{"one is there", []update.Ref{{Name: "refs/heads/a", New: one}, {Name: "refs/heads/main", New: one}}, refs.ErrMoved},
				{"one has moved", []update.Ref{{Name: "refs/heads/a", New: one}, {Name: "refs/heads/main", Old: one, New: two}}, refs.ErrMoved},
				{"one to delete has moved", []update.Ref{{Name: "refs/heads/a", New: one}, {Name: "refs/heads/main", Old: one}}, refs.ErrMoved},
				{"one is gone", []update.Ref{{Name: "refs/heads/a", New: one}, {Name: "refs/heads/gone", Old: one}}, refs.ErrMoved},
				{"a parent is in the way", []update.Ref{{Name: "refs/heads/a", New: one}, {Name: "refs/heads/main/a", New: one}}, refs.ErrInTheWay},
				{"a branch that is no commit", []update.Ref{{Name: "refs/heads/a", New: one}, {Name: "refs/heads/tree", New: tree}}, errAny},
				{"an object that is not there", []update.Ref{{Name: "refs/heads/a", New: strings.Repeat("1", len(one))}}, errAny},
				{"a malformed name", []update.Ref{{Name: "refs/heads/a", New: one}, {Name: "refs/heads/-x", New: one}}, errAny},
				{"a second command", []update.Ref{{Name: "refs/heads/a\x00" + one + "\x00delete refs/heads/main", New: one}}, errAny},
				{"no ref", []update.Ref{{Name: "HEAD", Old: two, New: one}}, errAny},
				{"a revision", []update.Ref{{Name: "refs/heads/a", New: "main"}}, errAny},
				{"nothing to delete", []update.Ref{{Name: "refs/heads/a"}}, errAny},
			} {
				before := refsOf(t, r)
				err := refs.Apply(t.Context(), r, tt.updates...)
				if errors.Is(tt.want, errAny) != (err != nil && !errors.Is(err, refs.ErrMoved) && !errors.Is(err, refs.ErrInTheWay)) ||
					!errors.Is(tt.want, errAny) && !errors.Is(err, tt.want) {
					t.Errorf("%s: %v", tt.about, err)
				}
				after := refsOf(t, r)
				if err != nil && !slices.Equal(after, before) {
					t.Errorf("%s: %v, and yet there are %v", tt.about, err, after)
				}
				for _, u := range tt.updates {
					i := slices.IndexFunc(after, func(ref refs.Ref) bool { return ref.Name == u.Name })
					if gone := u.New == "" || u.New == zero; err == nil && (gone != (i < 0) || !gone && after[i].Object != u.New) {
						t.Errorf("%s: after %v there are %v", tt.about, u, after)
					}
				}
			}
		})
	}
}

var errAny = errors.New("some error")

func TestApply_waitsForALock(t *testing.T) {
	c := gittest.New(t, "sha1")
	id := c.Commit(t, "a", "1")
	r := gittest.Bare(t, c)
	lock := filepath.Join(r.Dir(), "refs", "heads", "busy.lock")
	if err := os.WriteFile(lock, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	// By default, git waits 100 ms.
	freed := time.AfterFunc(500*time.Millisecond, func() { _ = os.Remove(lock) })
	defer freed.Stop()
	if err := refs.Apply(t.Context(), r, update.Ref{Name: "refs/heads/busy", New: id}); err != nil {
		t.Error(err)
	}
}

func TestSorted_agreesWithGit(t *testing.T) {
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
	r := gittest.Bare(t, c)
	for _, by := range []refs.Order{refs.ByName, refs.ByDate, refs.ByVersion} {
		for sign, descending := range map[string]bool{"": false, "-": true} {
			got, err := refs.Sorted(t.Context(), r, "refs/tags/", by, descending)
			if want := refsOf(t, r, "--sort="+sign+string(by), "refs/tags/"); err != nil || !slices.Equal(got, want) || len(got) != 6 {
				t.Errorf("%s%s: %v (%v), want %v", sign, by, got, err, want)
			}
		}
	}
	for _, into := range []string{"main", "apart", "v1.9"} {
		id := c.Git(t, "rev-parse", "refs/heads/"+into)
		for _, names := range [][]string{{"refs/heads/"}, {"refs/heads/apart", "refs/heads/v1.10", "refs/heads/v2"}} {
			got, err := refs.Merged(t.Context(), r, id, names...)
			if want := refsOf(t, r, append([]string{"--merged=" + id}, names...)...); err != nil || !slices.Equal(got, want) || len(got) == 0 {
				t.Errorf("merged into %s: %v (%v), want %v", into, got, err, want)
			}
		}
	}
	if got, err := refs.Merged(t.Context(), r, "main", "refs/heads/"); err == nil {
		t.Errorf("a name is an id: %v", got)
	}
}
