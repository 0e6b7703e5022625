package branches_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/ref"
	. "github.com/forgeplane/forgeplane/apiserver/v4/branches"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/internal/change"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/internal/git/refs"
)

// shop is a forge with the public project web, whose repository has the refs of client, and which protects main, locked and release/*.
// Its other projects are empty, without a repository, archived and read-only. Mary is a Maintainer of all projects, dora a Developer and
// rita a Reporter.
type shop struct {
	*familytest.Forge

	client *gittest.Client
	git    *git.Repository
	pushed []types.NamespacedName
}

func newShop(t *testing.T, c *gittest.Client) *shop { return newShopWith(t, c, git.Options{}) }

// newShopWith is newShop with other options for Git.
func newShopWith(t *testing.T, c *gittest.Client, o git.Options) *shop {
	t.Helper()
	project := func(name string, id int64) *v1alpha1.Project {
		return familytest.Project("acme", name, id, "acme", v1alpha1.VisibilityPublic)
	}
	web, empty, archived, readOnly := project("web", 20), project("empty", 21), project("archived", 23), project("read-only", 24)
	archived.Spec.Archived, readOnly.Spec.ReadOnly = true, true
	f := familytest.New(t,
		familytest.User("mary", 2), familytest.User("dora", 3), familytest.User("rita", 4), familytest.User("otto", 5),
		familytest.Group("acme", "acme", 10, "", v1alpha1.VisibilityPublic),
		familytest.InGroup("acme", "acme", "mary", v1alpha1.RoleMaintainer),
		familytest.InGroup("acme", "acme", "dora", v1alpha1.RoleDeveloper),
		familytest.InGroup("acme", "acme", "rita", v1alpha1.RoleReporter),
		familytest.Shard(t, web, empty, archived, readOnly), web, empty, project("new", 22), archived, readOnly,
		protect("main", 30, v1alpha1.AccessDeveloper, v1alpha1.AccessMaintainer),
		protect("release/*", 31, v1alpha1.AccessMaintainer, v1alpha1.AccessDeveloper),
		protect("locked", 32, v1alpha1.AccessNoOne, v1alpha1.AccessNoOne),
	)
	repos := familytest.Limited(t, f.Catalog, o)
	s := &shop{Forge: f, client: c, git: familytest.Push(t, repos, web, c)}
	pushed := func(e change.Event) { s.pushed = append(s.pushed, e.Project) }
	f.Repositories, f.Refs = repos, ref.NewUpdater(f.Guard, repos, pushed)
	f.Serve(New(f.Kit).Table())
	for _, p := range []*v1alpha1.Project{archived, readOnly} {
		familytest.Push(t, repos, p, c)
	}
	familytest.Init(t, repos, empty, "sha1")
	return s
}

func TestCreateBranch_isRefusedAboveTheRefLimit(t *testing.T) {
	c := gittest.New(t, "sha1")
	c.Commit(t, "a", "1")
	c.Git(t, "branch", "topic")
	s := newShopWith(t, c, git.Options{Limits: git.Limits{Refs: 2}})
	const at, more = "/projects/20/repository/branches", `{"branch":"more","ref":"main"}`
	if got := s.As("dora", "POST "+at, more); got.Code != 413 || !strings.Contains(got.Body, "more than the 2 that the server allows.") {
		t.Errorf("one too many: %s", got)
	}
	if got := s.As("dora", "DELETE "+at+"/topic", ""); got.Code != 204 {
		t.Errorf("removing one: %s", got)
	}
	if got := s.As("dora", "POST "+at, more); got.Code != 201 {
		t.Errorf("making one then: %s", got)
	}
}

// protect returns a protection for branches of web.
func protect(branch string, id int64, push, merge v1alpha1.AccessRole) *v1alpha1.ProtectedBranch {
	return &v1alpha1.ProtectedBranch{
		ObjectMeta: metav1.ObjectMeta{Namespace: "acme", Name: fmt.Sprintf("protection-%d", id)},
		Spec: v1alpha1.ProtectedBranchSpec{
			ID: id, ProjectRef: &v1alpha1.Reference{Name: "web"}, Branch: branch,
			Push: []v1alpha1.AccessLevel{{Role: push}}, Merge: []v1alpha1.AccessLevel{{Role: merge}},
		},
	}
}

// history returns a client with two commits on main. The branches done, Done/too, locked and release/1 and the tag v1 are at the first
// commit. The branch topic/ümläut#1 has one commit more than main.
func history(t *testing.T, format string) *gittest.Client {
	t.Helper()
	c := gittest.New(t, format)
	c.Commit(t, "a", "1")
	for _, name := range []string{"done", "Done/too", "locked", "release/1"} {
		c.Git(t, "branch", name)
	}
	c.Git(t, "tag", "--annotate", "--message=x", "v1")
	c.Commit(t, "a", "2")
	c.Git(t, "checkout", "--quiet", "-b", "topic/ümläut#1")
	c.Commit(t, "b", "1")
	c.Git(t, "checkout", "--quiet", "main")
	return c
}

// asks is a request of a user and the expected answer.
type asks struct{ who, request, body, want string }

func (s *shop) expect(t *testing.T, all ...asks) {
	t.Helper()
	for _, a := range all {
		if got := s.As(a.who, a.request, a.body).String(); got != a.want {
			t.Errorf("%s: %s %s\ngot  %.700s\nwant %.700s", a.who, a.request, a.body, got, a.want)
		}
	}
}

const at = "/projects/20/repository/branches"

func named(t *testing.T, a familytest.Answer) (names []string) {
	t.Helper()
	for _, b := range familytest.Decode[[]Branch](t, a) {
		names = append(names, b.Name)
	}
	return names
}

func TestGetBranch_returnsGitLabFields(t *testing.T) {
	for _, format := range []string{"sha1", "sha256"} {
		c := history(t, format)
		c.Env = []string{"GIT_AUTHOR_DATE=@1700000000 +0200", "GIT_COMMITTER_DATE=@1700000000 +0200"}
		id := c.Commit(t, "x", "y")
		parent := c.Git(t, "rev-parse", "HEAD^")
		s := newShop(t, c)
		commit := `{"id":"` + id + `","short_id":"` + id[:8] + `","created_at":"2023-11-15T00:13:20.000+02:00","parent_ids":["` + parent +
			`"],"title":"Change \"x\"","message":"Change \"x\"\n","author_name":"Ann Author","author_email":"ann@example.com",` +
			`"authored_date":"2023-11-15T00:13:20.000+02:00","committer_name":"Ann Author","committer_email":"ann@example.com",` +
			`"committed_date":"2023-11-15T00:13:20.000+02:00","trailers":{},"web_url":"https://forge.example/acme/web/-/commit/` + id + `"}`
		s.expect(t, asks{"dora", "GET " + at + "/main", "", `200 {"name":"main","commit":` + commit + `,"merged":false,"protected":true,` +
			`"developers_can_push":true,"developers_can_merge":false,"can_push":true,"default":true,` +
			`"web_url":"https://forge.example/acme/web/-/tree/main"}`})
		for name, want := range map[string]string{
			"main": "default,protected,push", "done": "merged", "release/1": "merged,protected,merge", "topic/ümläut#1": "",
		} {
			b := familytest.Decode[Branch](t, s.As("", "GET "+at+"/"+strings.NewReplacer("/", "%2F", "#", "%23", "ü", "%C3%BC", "ä", "%C3%A4").Replace(name), ""))
			is := ""
			for _, flag := range []struct {
				name string
				set  bool
			}{
				{"default", b.Default},
				{"merged", b.Merged},
				{"protected", b.Protected},
				{"push", b.DevelopersCanPush},
				{"merge", b.DevelopersCanMerge},
				{"can push", b.CanPush},
			} {
				if flag.set {
					is += "," + flag.name
				}
			}
			if b.Name != name || strings.TrimPrefix(is, ",") != want || b.Commit.ID != c.Git(t, "rev-parse", name) {
				t.Errorf("%s is %q: %+v", name, is, b)
			}
		}
		if b := familytest.Decode[Branch](t, s.As("", "GET "+at+"/topic%2F%C3%BCml%C3%A4ut%231", "")); b.WebURL != "https://forge.example/acme/web/-/tree/topic/%C3%BCml%C3%A4ut%231" {
			t.Errorf("the address is %s", b.WebURL)
		}
		for who, want := range map[string]bool{"": false, "rita": false, "dora": false, "mary": true} {
			if b := familytest.Decode[Branch](t, s.As(who, "GET "+at+"/release%2F1", "")); b.CanPush != want {
				t.Errorf("%q can push: %t", who, b.CanPush)
			}
		}
	}
}

func TestListBranches_searchesSortsAndPages(t *testing.T) {
	c := history(t, "sha1")
	s := newShop(t, c)
	all := []string{"Done/too", "done", "locked", "main", "release/1", "topic/ümläut#1"}
	for query, want := range map[string][]string{
		"": all, "search=O": {"Done/too", "done", "locked", "topic/ümläut#1"}, "search=%5Edone": {"Done/too", "done"},
		"search=E$": {"done"}, "search=%5Edone$": {"done"}, "search=x": nil, "search=.*": nil, "regex=%5E%5Bdl%5D": {"done", "locked"},
		"regex=/": {"Done/too", "release/1", "topic/ümläut#1"}, "search=&regex=main": {"main"}, "per_page=2&page=2": {"locked", "main"},
		"sort=name_asc": all, "pagination=keyset&per_page=2": all[:2], "pagination=keyset&page_token=locked&per_page=2": all[3:5],
		"pagination=keyset&page_token=gone": all[2:], "pagination=keyset&page_token=topic/%C3%BCml%C3%A4ut%231": nil,
	} {
		answer := s.As("", "GET "+at+"?"+query, "")
		if got := named(t, answer); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", query, got, want)
		}
	}
	var paged []string
	for token := ""; ; {
		answer := s.As("", "GET "+at+"?sort=updated_asc&pagination=keyset&per_page=4&page_token="+token, "")
		names := named(t, answer)
		paged = append(paged, names...)
		if answer.Header.Get("Link") == "" {
			break
		}
		token = strings.ReplaceAll(names[len(names)-1], "/", "%2F")
	}
	if want := strings.Fields(c.Git(t, "for-each-ref", "--sort=creatordate", "--format=%(refname:lstrip=2)", "refs/heads/")); !slices.Equal(paged, want) {
		t.Errorf("by date there are %v, want %v", paged, want)
	}
	if total := s.As("", "GET "+at+"?per_page=4", "").Header.Get("X-Total"); total != "6" {
		t.Errorf("there are %s", total)
	}
	s.expect(t,
		asks{"", "GET " + at + "?regex=(", "", `400 {"error":"regex is an invalid regexp"}`},
		asks{"", "GET " + at + "?search=a&regex=a", "", `400 {"error":"search, regex are mutually exclusive"}`},
		asks{"", "GET " + at + "?sort=x", "", `400 {"error":"sort does not have a valid value"}`},
		asks{"", "GET " + at + "?pagination=keyset&sort=updated_asc&page_token=gone", "", `400 {"error":"page_token is invalid"}`},
		asks{"", "GET /projects/21/repository/branches", "", `200 []`},
		asks{"", "GET /projects/22/repository/branches", "", `200 []`},
		asks{"", "GET /projects/21/repository/branches/main", "", `404 {"message":"404 Branch Not Found"}`},
		asks{"", "GET /projects/22/repository/branches/main", "", `404 {"message":"404 Branch Not Found"}`},
		asks{"", "GET " + at + "/gone", "", `404 {"message":"404 Branch Not Found"}`},
		asks{"", "GET " + at + "/v1", "", `404 {"message":"404 Branch Not Found"}`},
		asks{"", "GET " + at + "/-x", "", `400 {"message":"The branch refname is invalid"}`},
		asks{"", "GET " + at + "/main~1", "", `400 {"message":"The branch refname is invalid"}`},
	)
}

func TestCreateBranch_requiresPushPermission(t *testing.T) {
	c := history(t, "sha1")
	s := newShop(t, c)
	made := func(who, branch, from string) {
		t.Helper()
		want := c.Git(t, "rev-parse", from+"^{commit}")
		answer := s.As(who, "POST "+at, fmt.Sprintf(`{"branch":%q,"ref":%q}`, branch, from))
		if answer.Code != 201 {
			t.Errorf("%s of %s: %s", branch, from, answer)
			return
		}
		b := familytest.Decode[Branch](t, answer)
		if is, err := refs.Resolve(t.Context(), s.git, "refs/heads/"+branch); err != nil || b.Name != branch || b.Commit.ID != want || is != want {
			t.Errorf("%s of %s is %s (%v): %s", branch, from, is, err, answer)
		}
	}
	made("dora", "new/ümläut", "main")
	made("dora", "from-tag", "v1")
	made("dora", "from-id", c.Git(t, "rev-parse", "HEAD"))
	made("dora", "from-parent", "main~1")
	made("mary", "release/2", "release/1")
	web := types.NamespacedName{Namespace: "acme", Name: "web"}
	if len(s.pushed) != 5 || s.pushed[0] != web {
		t.Errorf("told of %v", s.pushed)
	}
	s.pushed = nil
	before := shownRefs(t, s)
	post := func(who, project, body, want string) asks {
		return asks{who, "POST /projects/" + project + "/repository/branches", body, want}
	}
	const invalidName = `400 {"message":"Branch name is invalid"}`
	s.expect(t,
		post("", "20", `{"branch":"x","ref":"main"}`, `403 {"message":"403 Forbidden"}`),
		post("rita", "20", `{"branch":"x","ref":"main"}`, `403 {"message":"403 Forbidden"}`),
		post("otto", "20", `{"branch":"x","ref":"main"}`, `403 {"message":"403 Forbidden"}`),
		post("dora", "20", `{}`, `400 {"error":"branch is missing, ref is missing"}`),
		post("dora", "20", `{"branch":"","ref":" "}`, `400 {"error":"branch is empty, ref is empty"}`),
		post("dora", "20", `{"branch":"done","ref":"main"}`, `400 {"message":"Branch already exists"}`),
		post("dora", "20", `{"branch":"x","ref":"gone"}`, `400 {"message":"Invalid reference name: gone"}`),
		post("dora", "20", `{"branch":"x","ref":"--all"}`, `400 {"message":"Invalid reference name: --all"}`),
		post("dora", "21", `{"branch":"x","ref":"main"}`, `400 {"message":"Invalid reference name: main"}`),
		post("dora", "22", `{"branch":"x","ref":"main"}`, `400 {"message":"Invalid reference name: main"}`),
		post("dora", "20", `{"branch":"-x","ref":"main"}`, invalidName),
		post("dora", "20", `{"branch":"a b","ref":"main"}`, invalidName),
		post("dora", "20", `{"branch":"a..b","ref":"main"}`, invalidName),
		post("dora", "20", `{"branch":"a\nb","ref":"main"}`, invalidName),
		post("dora", "20", `{"branch":"HEAD","ref":"main"}`, invalidName),
		post("dora", "20", `{"branch":"`+strings.Repeat("0a", 20)+`","ref":"main"}`, invalidName),
		post("dora", "20", `{"branch":"main/x","ref":"main"}`, `400 {"message":"Failed to create branch 'main/x': another branch is in the way"}`),
		post("dora", "20", `{"branch":"release","ref":"main"}`, `400 {"message":"Failed to create branch 'release': another branch is in the way"}`),
		post("dora", "20", `{"branch":"release/3","ref":"main"}`,
			`403 {"message":"Branch \"release/3\" is protected by \"release/*\" (acme/protection-31): only Maintainers may push to it. You have the Developer role."}`),
		post("mary", "23", `{"branch":"x","ref":"main"}`, `403 {"message":"403 Forbidden - The project is archived"}`),
		post("mary", "24", `{"branch":"x","ref":"main"}`, `403 {"message":"403 Forbidden - The repository is temporarily read-only. Please try again later."}`),
	)
	open, err := s.git.Close(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.expect(t, post("mary", "20", `{"branch":"x","ref":"main"}`, `403 {"message":"403 Forbidden - The repository is temporarily read-only. Please try again later."}`))
	open()
	if after := shownRefs(t, s); after != before || s.pushed != nil {
		t.Errorf("after refusals there are\n%s\nand before were\n%s; told of %v", after, before, s.pushed)
	}
}

// refs returns the refs of the repository with their ids.
func shownRefs(t *testing.T, s *shop) string {
	t.Helper()
	return (&gittest.Client{Dir: s.git.Dir()}).Git(t, "show-ref")
}

func TestDeleteBranch_requiresPushAndUnprotectPermission(t *testing.T) {
	c := history(t, "sha1")
	s := newShop(t, c)
	before := shownRefs(t, s)
	const isProtected = `403 {"message":"Protected branch can't be removed"}`
	s.expect(t,
		asks{"rita", "DELETE " + at + "/done", "", `403 {"message":"403 Forbidden"}`},
		asks{"", "DELETE " + at + "/done", "", `403 {"message":"403 Forbidden"}`},
		asks{"dora", "DELETE " + at + "/gone", "", `404 {"message":"404 Branch Not Found"}`},
		asks{"dora", "DELETE " + at + "/v1", "", `404 {"message":"404 Branch Not Found"}`},
		asks{"dora", "DELETE " + at + "/-x", "", `400 {"message":"The branch refname is invalid"}`},
		asks{"dora", "DELETE " + at + "/release%2F1", "", isProtected},
		asks{"dora", "DELETE " + at + "/locked", "", isProtected},
		asks{"dora", "DELETE " + at + "/main", "", `400 {"message":"The default branch of a project cannot be deleted."}`},
		asks{"mary", "DELETE " + at + "/main", "", `400 {"message":"The default branch of a project cannot be deleted."}`},
		asks{"mary", "DELETE /projects/23/repository/branches/done", "", `403 {"message":"403 Forbidden - The project is archived"}`},
		asks{"mary", "DELETE /projects/21/repository/branches/done", "", `404 {"message":"404 Branch Not Found"}`},
	)
	s.Header = map[string][]string{"If-Unmodified-Since": {time.Unix(1_000_000_000, 0).UTC().Format(http.TimeFormat)}}
	s.expect(t, asks{"dora", "DELETE " + at + "/done", "", `412 {"message":"412 Precondition Failed"}`})
	if after := shownRefs(t, s); after != before || s.pushed != nil {
		t.Errorf("after refusals there are\n%s\nand before were\n%s; told of %v", after, before, s.pushed)
	}
	s.Header = map[string][]string{"If-Unmodified-Since": {time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)}}
	s.expect(t,
		asks{"dora", "DELETE " + at + "/done", "", "204"},
		asks{"dora", "DELETE " + at + "/topic%2F%C3%BCml%C3%A4ut%231", "", "204"},
		asks{"mary", "DELETE " + at + "/release%2F1", "", "204"},
		asks{"dora", "GET " + at + "/done", "", `404 {"message":"404 Branch Not Found"}`},
	)
	if got := named(t, s.As("", "GET "+at, "")); !slices.Equal(got, []string{"Done/too", "locked", "main"}) || len(s.pushed) != 3 {
		t.Errorf("left are %v; told of %v", got, s.pushed)
	}
}

func TestDeleteMergedBranches_keepsProtectedBranches(t *testing.T) {
	s := newShop(t, history(t, "sha1"))
	const merged = "/repository/merged_branches"
	s.expect(t,
		asks{"rita", "DELETE /projects/20" + merged, "", `403 {"message":"403 Forbidden"}`},
		asks{"mary", "DELETE /projects/21" + merged, "", `202 {"message":"202 Accepted"}`},
		asks{"mary", "DELETE /projects/22" + merged, "", `202 {"message":"202 Accepted"}`},
		asks{"mary", "DELETE /projects/23" + merged, "", `403 {"message":"403 Forbidden - The project is archived"}`},
	)
	if s.pushed != nil {
		t.Errorf("told of %v", s.pushed)
	}
	s.expect(t,
		asks{"mary", "DELETE /projects/20" + merged, "", `202 {"message":"202 Accepted"}`},
		asks{"mary", "DELETE /projects/20" + merged, "", `202 {"message":"202 Accepted"}`},
	)
	if got := named(t, s.As("", "GET "+at, "")); !slices.Equal(got, []string{"locked", "main", "release/1", "topic/ümläut#1"}) || len(s.pushed) != 1 {
		t.Errorf("left are %v; told of %v", got, s.pushed)
	}
}
