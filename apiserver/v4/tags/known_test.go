package tags_test

import (
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/test/patience"
)

func TestCachedTags_followEveryChangeImmediately(t *testing.T) {
	binary, starts := gittest.Logged(t)
	c := history(t, "sha1")
	s := newShopWith(t, c, git.Options{Binary: binary})
	is := func(about string, want ...string) {
		t.Helper()
		if got := named(t, s.As("dora", "GET "+at+"?order_by=name&sort=asc", "")); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", about, got, want)
		}
		NewWithT(t).Eventually(func() int {
			before := starts("for-each-ref")
			for _, query := range []string{"", "?order_by=name&sort=asc", "?search=v1"} {
				if got := s.As("", "GET "+at+query, ""); got.Code != 200 {
					t.Fatalf("%s: %s", query, got)
				}
			}
			return starts("for-each-ref") - before
		}).WithTimeout(patience.Wait).WithPolling(100 * time.Millisecond).Should(BeZero())
	}
	is("at first", "Nightly/1", "v1.10", "v1.9", "v2")
	s.expect(t, asks{"dora", "DELETE " + at + "/v1.9", "", "204"})
	is("a tag was deleted", "Nightly/1", "v1.10", "v2")
	if got := s.As("dora", "POST "+at, `{"tag_name":"v3","ref":"main","message":"new"}`); got.Code != 201 {
		t.Errorf("made: %s", got)
	}
	is("one was made", "Nightly/1", "v1.10", "v2", "v3")
	(&gittest.Client{Dir: s.git.Dir()}).Git(t, "update-ref", "-d", "refs/tags/v1.10")
	is("one was removed by hand", "Nightly/1", "v2", "v3")
	c.Git(t, "push", "--quiet", s.git.Dir(), "main:refs/tags/pushed/one", ":refs/tags/v2")
	is("a push", "Nightly/1", "pushed/one", "v3")
}
