package repositories_test

import (
	"strings"
	"testing"

	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	. "github.com/forgeplane/forgeplane/apiserver/v4/repositories"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
)

// forked returns a client with the branches "left" and "right", which diverge at main, and "apart", which has no commits in common with them.
func forked(t *testing.T) *gittest.Client {
	t.Helper()
	c := gittest.New(t, "sha1")
	c.Env = append(c.Env, "GIT_COMMITTER_DATE=1700000000 +0200", "GIT_AUTHOR_DATE=1700000000 +0200")
	c.Commit(t, "file", "1\n2\n3\n")
	for _, branch := range []string{"left", "right"} {
		c.Git(t, "checkout", "--quiet", "-b", branch, "main")
		c.Commit(t, branch, branch+"\n")
		c.Git(t, "commit", "--quiet", "--allow-empty", "--author=Zoe <a@"+branch+">", "--message=More\n\nChangelog: added")
	}
	c.Git(t, "checkout", "--quiet", "--orphan", "apart")
	c.Commit(t, "other", "1")
	c.Git(t, "checkout", "--quiet", "left")
	return c
}

func TestMergeBase_returnsACommit(t *testing.T) {
	s := newShop(t, forked(t))
	id := s.client.Git(t, "rev-parse", "main")
	base := `200 {"id":"` + id + `","short_id":"` + id[:8] + `","created_at":"2023-11-15T00:13:20.000+02:00","parent_ids":[],` +
		`"title":"Change \"file\"","message":"Change \"file\"\n","author_name":"Ann Author","author_email":"ann@example.com",` +
		`"authored_date":"2023-11-15T00:13:20.000+02:00","committer_name":"Ann Author","committer_email":"ann@example.com",` +
		`"committed_date":"2023-11-15T00:13:20.000+02:00","trailers":{},"web_url":"https://forge.example/acme/web/-/commit/` + id + `"}`
	s.Expect(t,
		asks{"GET /projects/20/repository/merge_base?refs[]=left&refs[]=right", base},
		asks{"GET /projects/20/repository/merge_base?refs=left,right,main", base},
		asks{"GET /projects/20/repository/merge_base?refs[]=left&refs[]=" + id, base},
		asks{"GET /projects/20/repository/merge_base", `400 {"error":"refs is missing"}`},
		asks{"GET /projects/20/repository/merge_base?refs[]=left", `400 {"message":"Provide at least 2 refs"}`},
		asks{"GET /projects/20/repository/merge_base?refs[]=left&refs[]=x", `400 {"message":"Could not find ref: x"}`},
		asks{"GET /projects/20/repository/merge_base?refs=x,left,--y", `400 {"message":"Could not find refs: x, --y"}`},
		asks{"GET /projects/21/repository/merge_base?refs=left,right", `400 {"message":"Could not find refs: left, right"}`},
		asks{"GET /projects/22/repository/merge_base?refs=left,right", `400 {"message":"Could not find refs: left, right"}`},
		asks{"GET /projects/20/repository/merge_base?refs=left,apart", `404 {"message":"404 Merge Base Not Found"}`},
		asks{"GET /projects/20/repository/merge_base?refs=" + strings.Repeat("left,", 101), `400 {"error":"refs does not have a valid value"}`},
	)
}

func TestContributors_areSorted(t *testing.T) {
	c := gittest.New(t, "sha1")
	for _, author := range []string{"Cy <b@x>", "ann <c@x>", "ann <c@x>", "ann <c@x>", "Bo <a@x>", "Bo <a@x>"} {
		c.Git(t, "commit", "--quiet", "--allow-empty", "--author="+author, "--message=one")
	}
	s := newShop(t, c)
	const target = "GET /projects/20/repository/contributors"
	const ann, bo, cy = `{"name":"ann","email":"c@x","commits":3,"additions":0,"deletions":0}`,
		`{"name":"Bo","email":"a@x","commits":2,"additions":0,"deletions":0}`,
		`{"name":"Cy","email":"b@x","commits":1,"additions":0,"deletions":0}`
	all := func(of ...string) string { return "200 [" + strings.Join(of, ",") + "]" }
	s.Expect(t,
		asks{target, all(cy, bo, ann)},
		asks{target + "?sort=desc", all(ann, bo, cy)},
		asks{target + "?order_by=name", all(ann, bo, cy)},
		asks{target + "?order_by=email&sort=desc", all(ann, cy, bo)},
		asks{target + "?ref=main~5", all(cy)},
		asks{target + "?per_page=1&page=2", all(bo)},
		asks{target + "?order_by=age", `400 {"error":"order_by does not have a valid value"}`},
		asks{target + "?sort=up", `400 {"error":"sort does not have a valid value"}`},
		asks{target + "?ref=other", `404 {"message":"404 Not Found"}`},
		asks{"GET /projects/21/repository/contributors", `404 {"message":"404 Not Found"}`},
		asks{"GET /projects/22/repository/contributors", `404 {"message":"404 Not Found"}`},
	)
	if link := s.As("", target, "").Header.Get("Link"); !strings.Contains(link, "order_by=commits") || !strings.Contains(link, "sort=asc") {
		t.Errorf("the link is %s", link)
	}
	if found := familytest.Decode[[]Contributor](t, s.As("dora", target, "")); len(found) != 3 {
		t.Errorf("there are %v", found)
	}
}
