package branches_test

import (
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	. "github.com/forgeplane/forgeplane/apiserver/v4/branches"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/test/patience"
)

// listing is a shop that counts the Git processes of its lists. Lists come from memory while the refs do not change.
type listing struct {
	*shop
	processes func() int
}

func newListing(t *testing.T) *listing {
	t.Helper()
	c := history(t, "sha1")
	binary, starts := gittest.Logged(t)
	return &listing{newShopWith(t, c, git.Options{Binary: binary}), func() int { return starts("for-each-ref") + starts("rev-list") }}
}

// await repeats the requests until they start no process.
func (l *listing) await(t *testing.T, requests ...string) {
	t.Helper()
	NewWithT(t).Eventually(func() int {
		before := l.processes()
		for _, r := range requests {
			if got := l.As("", "GET "+r, ""); got.Code != 200 {
				t.Fatalf("%s: %s", r, got)
			}
		}
		return l.processes() - before
	}).WithTimeout(patience.Wait).WithPolling(100 * time.Millisecond).Should(BeZero())
}

func TestCachedBranches_showEachCallersPermissions(t *testing.T) {
	l := newListing(t)
	all := []string{"Done/too", "done", "locked", "main", "release/1", "topic/ümläut#1"}
	l.await(t, at)
	before := l.processes()
	for who, want := range map[string][]string{
		"": nil, "rita": nil, "dora": {"Done/too", "done", "main", "topic/ümläut#1"},
		"mary": {"Done/too", "done", "main", "release/1", "topic/ümläut#1"},
	} {
		var may, names []string
		for _, b := range familytest.Decode[[]Branch](t, l.As(who, "GET "+at, "")) {
			if names = append(names, b.Name); b.CanPush {
				may = append(may, b.Name)
			}
		}
		if !slices.Equal(names, all) || !slices.Equal(may, want) {
			t.Errorf("%q sees %v and may push to %v, want %v", who, names, may, want)
		}
	}
	for _, asks := range []struct {
		query string
		want  []string
	}{
		{"search=e$", []string{"done"}},
		{"regex=/", []string{"Done/too", "release/1", "topic/ümläut#1"}},
		{"per_page=2&page=3", all[4:]},
		{"pagination=keyset&page_token=locked&per_page=2", all[3:5]},
		{"", all},
	} {
		if got := named(t, l.As("", "GET "+at+"?"+asks.query, "")); !slices.Equal(got, asks.want) {
			t.Errorf("%s: %v, want %v", asks.query, got, asks.want)
		}
	}
	if after := l.processes(); after != before+4 { // one per list of other branches: which of them are merged
		t.Errorf("%d processes were started", after-before)
	}
}

func TestCachedBranches_followEveryChangeImmediately(t *testing.T) {
	l := newListing(t)
	store := &gittest.Client{Dir: l.git.Dir()}
	is := func(about string, want ...string) {
		t.Helper()
		if got := named(t, l.As("dora", "GET "+at, "")); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", about, got, want)
		}
		l.await(t, at, at+"?sort=updated_desc")
	}
	is("at first", "Done/too", "done", "locked", "main", "release/1", "topic/ümläut#1")
	l.expect(t, asks{"dora", "DELETE " + at + "/done", "", "204"})
	is("a branch was deleted", "Done/too", "locked", "main", "release/1", "topic/ümläut#1")
	store.Git(t, "update-ref", "refs/heads/made/on/disk", "main")
	is("one was made by hand", "Done/too", "locked", "made/on/disk", "main", "release/1", "topic/ümläut#1")
	l.client.Git(t, "push", "--quiet", l.git.Dir(), "main:refs/heads/pushed", ":refs/heads/Done/too")
	is("a push", "locked", "made/on/disk", "main", "pushed", "release/1", "topic/ümläut#1")

	moved := l.client.Commit(t, "z", "newest")
	store.Git(t, "fetch", "--quiet", l.client.Dir, "main:locked")
	if got := familytest.Decode[[]Branch](t, l.As("", "GET "+at+"?search=locked", "")); len(got) != 1 || got[0].Commit.ID != moved || got[0].Merged {
		t.Errorf("a branch that has moved is %+v", got)
	}
	l.await(t, at)
	store.Git(t, "symbolic-ref", "HEAD", "refs/heads/locked")
	for _, b := range familytest.Decode[[]Branch](t, l.As("", "GET "+at, "")) {
		if b.Default != (b.Name == "locked") || b.Merged != (b.Name != "locked" && b.Name != "topic/ümläut#1") {
			t.Errorf("with another default branch it is %+v", b)
		}
	}
}
