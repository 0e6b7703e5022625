package mergerequests_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/item"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/apiserver/v4/mergerequests"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/internal/mergerequest"
)

// diffWorld is a shop with merge requests of web from topic into main.
type diffWorld struct {
	*familytest.Shop
	t      *testing.T
	client *gittest.Client
	web    database.Subject
}

// newDiffWorld returns a world in which topic has two commits that main does not have, and main one that topic does not have.
func newDiffWorld(t *testing.T) diffWorld {
	t.Helper()
	c := gittest.New(t, "sha1")
	c.Commit(t, "a", "1\n")
	c.Git(t, "checkout", "--quiet", "-b", "topic")
	c.Commit(t, "b", "1\n")
	c.Commit(t, "sp ace", "2\n")
	c.Git(t, "checkout", "--quiet", "main")
	c.Commit(t, "a", "2\n")
	s := familytest.NewShop(t, c)
	s.Activity = familytest.Activity(t, s.Clock)
	s.Serve(mergerequests.New(s.Kit).Table())
	p, err := catalog.ByID[*v1alpha1.Project](t.Context(), s.Catalog, 20)
	if err != nil {
		t.Fatal(err)
	}
	return diffWorld{s, t, c, item.Place(catalog.Scope{Project: p})}
}

func (w diffWorld) id(revision string) string { return w.client.Git(w.t, "rev-parse", revision) }

// create creates a merge request of topic into a branch.
func (w diffWorld) create(into string) mergerequest.MergeRequest {
	w.t.Helper()
	m := mergerequest.MergeRequest{In: w.web, Source: w.web, SourceBranch: "topic", TargetBranch: into, Title: "Topic"}
	if err := w.Activity.MergeRequests.Create(w.t.Context(), &m); err != nil {
		w.t.Fatal(err)
	}
	return m
}

// version records a version of a merge request.
func (w diffWorld) version(m mergerequest.MergeRequest, base, head string) mergerequest.Version {
	w.t.Helper()
	v := mergerequest.Version{MergeRequestID: m.ID, Head: head, Base: base, Start: w.id("main")}
	if err := w.Activity.MergeRequests.AddVersion(w.t.Context(), &v, "2"); err != nil {
		w.t.Fatal(err)
	}
	return v
}

// got decodes the answer to a request below merge request 1 of web.
func got[T any](w diffWorld, path string) T {
	w.t.Helper()
	a := w.As("", "GET /projects/20/merge_requests/1"+path, "")
	if a.Code != 200 {
		w.t.Fatalf("%s: %s", path, a)
	}
	return familytest.Decode[T](w.t, a)
}

// diffShown and pushed have the fields of diffs and commits that the tests check.
type diffShown struct {
	NewPath string `json:"new_path"`
	Diff    string
	NewFile bool `json:"new_file"`
}

type pushed struct{ ID string }

func TestDiffs_showTheLatestVersion(t *testing.T) {
	w := newDiffWorld(t)
	m := w.create("main")
	w.version(m, w.id("main~1"), w.id("topic~1"))
	w.version(m, w.id("main~1"), w.id("topic"))
	const plain, named = "@@ -0,0 +1 @@\n+2\n", "--- /dev/null\n+++ b/sp ace\t\n@@ -0,0 +1 @@\n+2\n"
	for path, want := range map[string][]diffShown{
		"/diffs":                                {{"b", "@@ -0,0 +1 @@\n+1\n", true}, {"sp ace", plain, true}},
		"/diffs?page=2&per_page=1":              {{"sp ace", plain, true}},
		"/diffs?page=2&unidiff=true&per_page=1": {{"sp ace", named, true}},
	} {
		if diffs := got[[]diffShown](w, path); fmt.Sprint(diffs) != fmt.Sprint(want) {
			t.Errorf("%s: got %+v, want %+v", path, diffs, want)
		}
	}
	changed := got[struct {
		Title        string
		ChangesCount string `json:"changes_count"`
		Changes      []diffShown
		Overflow     *bool
	}](w, "/changes?access_raw_diffs=true&unidiff=true")
	if changed.Title != "Topic" || changed.ChangesCount != "2" || len(changed.Changes) != 2 || changed.Changes[1].Diff != named || changed.Overflow == nil || *changed.Overflow {
		t.Errorf("got %+v", changed)
	}
	for path, want := range map[string][]pushed{
		"/commits": {{w.id("topic")}, {w.id("topic~1")}}, "/commits?per_page=1&page=2": {{w.id("topic~1")}},
	} {
		if commits := got[[]pushed](w, path); fmt.Sprint(commits) != fmt.Sprint(want) {
			t.Errorf("%s: got %v, want %v", path, commits, want)
		}
	}
}

// TestRawDiffs_areAPatch applies the patch to the merge base with git.
func TestRawDiffs_areAPatch(t *testing.T) {
	w := newDiffWorld(t)
	w.version(w.create("main"), w.id("main~1"), w.id("topic"))
	a := w.As("", "GET /projects/20/merge_requests/1/raw_diffs", "")
	if kind := a.Header.Get("Content-Type"); a.Code != 200 || kind != "text/plain" {
		t.Fatalf("got %s as %s", a, kind)
	}
	file := filepath.Join(t.TempDir(), "patch")
	if err := os.WriteFile(file, []byte(a.Body), 0o600); err != nil {
		t.Fatal(err)
	}
	w.client.Git(t, "checkout", "--quiet", "main~1")
	w.client.Git(t, "apply", "--index", file)
	if tree, want := w.client.Git(t, "write-tree"), w.id("topic^{tree}"); tree != want {
		t.Errorf("the patch makes another tree:\n%s", a.Body)
	}
}

func TestDiffs_areEmptyWithoutVersion(t *testing.T) {
	w := newDiffWorld(t)
	w.create("absent")
	for _, list := range []string{"diffs", "commits", "versions"} {
		w.Expect(t, familytest.Asks{"GET /projects/20/merge_requests/1/" + list, "200 []"})
	}
	w.Expect(t, familytest.Asks{"GET /projects/20/merge_requests/1/raw_diffs", "200"})
	if a := w.As("", "GET /projects/20/merge_requests/1/changes", ""); a.Code != 200 || !strings.Contains(a.Body, `"changes":[],"overflow":false`) {
		t.Errorf("got %s", a)
	}
}

func TestDiffs_remainWithoutSourceBranch(t *testing.T) {
	w := newDiffWorld(t)
	m := w.create("main")
	w.version(m, w.id("main~1"), w.id("topic"))
	_, err := w.Activity.MergeRequests.Update(t.Context(), w.web.UID, m.IID, func(m *mergerequest.MergeRequest) error {
		m.Head, m.Base, m.Start = "", "", ""
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if diffs, commits := got[[]diffShown](w, "/diffs"), got[[]pushed](w, "/commits"); len(diffs) != 2 || len(commits) != 2 {
		t.Errorf("got %v and %v", diffs, commits)
	}
}

func TestDiffs_beginWithTheEmptyTreeWithoutMergeBase(t *testing.T) {
	w := newDiffWorld(t)
	w.version(w.create("absent"), "", w.id("topic"))
	if diffs, commits := got[[]diffShown](w, "/diffs"), got[[]pushed](w, "/commits"); len(diffs) != 3 || len(commits) != 3 {
		t.Errorf("got %v and %v", diffs, commits)
	}
}

func TestVersions_listTheNewestFirst(t *testing.T) {
	w := newDiffWorld(t)
	m := w.create("main")
	first := w.version(m, w.id("main~1"), w.id("topic~1"))
	last := w.version(m, w.id("main~1"), w.id("topic"))
	show := func(v mergerequest.Version, more string) string {
		return fmt.Sprintf(`{"id":%d,"head_commit_sha":"%s","base_commit_sha":"%s","start_commit_sha":"%s","created_at":"2026-06-15T12:00:00.000Z",`+
			`"merge_request_id":%d,"state":"collected","real_size":"2","patch_id_sha":null%s}`, v.ID, v.Head, v.Base, v.Start, m.ID, more)
	}
	const at = "GET /projects/20/merge_requests/1/versions"
	w.Expect(t, familytest.Asks{at, "200 [" + show(last, "") + "," + show(first, "") + "]"}, familytest.Asks{at + "?per_page=1&page=2", "200 [" + show(first, "") + "]"})
	one := got[struct {
		ID      int64
		Commits []pushed
		Diffs   []diffShown
	}](w, fmt.Sprintf("/versions/%d?unidiff=true", first.ID))
	if one.ID != first.ID || fmt.Sprint(one.Commits) != fmt.Sprint([]pushed{{w.id("topic~1")}}) ||
		fmt.Sprint(one.Diffs) != fmt.Sprint([]diffShown{{"b", "--- /dev/null\n+++ b/b\n@@ -0,0 +1 @@\n+1\n", true}}) {
		t.Errorf("got %+v", one)
	}
}

func TestVersions_areNotFoundIfTheyDoNotExist(t *testing.T) {
	w := newDiffWorld(t)
	w.create("main")
	other := w.version(w.create("release"), w.id("main~1"), w.id("topic"))
	gone := w.version(w.create("gone"), w.id("main~1"), strings.Repeat("1", 40))
	w.Expect(t,
		familytest.Asks{fmt.Sprintf("GET /projects/20/merge_requests/1/versions/%d", other.ID), `404 {"message":"404 Not found"}`},
		familytest.Asks{"GET /projects/20/merge_requests/1/versions/999", `404 {"message":"404 Not found"}`},
		familytest.Asks{"GET /projects/20/merge_requests/1/versions/x", `400 {"error":"version_id is invalid"}`},
		familytest.Asks{"GET /projects/20/merge_requests/9/versions", `404 {"message":"404 Not found"}`},
		// The commits of a version can be removed after a forced push.
		familytest.Asks{fmt.Sprintf("GET /projects/20/merge_requests/3/versions/%d", gone.ID), `404 {"message":"404 Commit Not Found"}`},
		familytest.Asks{"GET /projects/20/merge_requests/3/diffs", `404 {"message":"404 Commit Not Found"}`},
		familytest.Asks{"GET /projects/20/merge_requests/3/raw_diffs", `404 {"message":"404 Commit Not Found"}`},
	)
}

func TestMergeRequestsOfCommit_haveIt(t *testing.T) {
	w := newDiffWorld(t)
	w.version(w.create("main"), w.id("main~1"), w.id("topic"))
	w.version(w.create("release"), w.id("main~1"), w.id("topic~1"))
	merged := w.create("squashed")
	_, err := w.Activity.MergeRequests.Update(t.Context(), w.web.UID, merged.IID, func(m *mergerequest.MergeRequest) error {
		m.State, m.MergeCommit, m.SquashCommit = mergerequest.Merged, w.id("main"), w.id("main")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	w.version(w.create("gone"), w.id("main~1"), strings.Repeat("1", 40))
	for path, want := range map[string]string{
		"topic/merge_requests": "[1]", "topic~1/merge_requests": "[2 1]", "main/merge_requests": "[3]", "main~1/merge_requests": "[]",
		w.id("topic~1") + "/merge_requests?per_page=1&page=2": "[1]",
	} {
		var iids []int64
		for _, m := range familytest.Decode[[]struct{ IID int64 }](t, w.As("", "GET /projects/20/repository/commits/"+path, "")) {
			iids = append(iids, m.IID)
		}
		if fmt.Sprint(iids) != want {
			t.Errorf("%s: got %v, want %s", path, iids, want)
		}
	}
	w.Expect(t, familytest.Asks{"GET /projects/20/repository/commits/unknown/merge_requests", `404 {"message":"404 Commit Not Found"}`})
}
