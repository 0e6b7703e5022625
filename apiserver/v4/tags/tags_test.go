package tags_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/ref"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	. "github.com/forgeplane/forgeplane/apiserver/v4/tags"
	"github.com/forgeplane/forgeplane/internal/change"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
)

// shop is a forge with the public project web, whose repository has the refs of client. The project "empty" has an empty repository, "new" has
// none, and "archived" has the same as web. Dora is a Developer and rita a Reporter.
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
	web, empty, archived := project("web", 20), project("empty", 21), project("archived", 23)
	archived.Spec.Archived = true
	f := familytest.New(t,
		familytest.User("dora", 3, func(s *v1alpha1.UserSpec) { s.Name = "Dora <D> Ümläut." }), familytest.User("rita", 4),
		familytest.Group("acme", "acme", 10, "", v1alpha1.VisibilityPublic),
		familytest.InGroup("acme", "acme", "dora", v1alpha1.RoleDeveloper),
		familytest.InGroup("acme", "acme", "rita", v1alpha1.RoleReporter),
		familytest.Shard(t, web, empty, archived), web, empty, project("new", 22), archived,
	)
	repos := familytest.Limited(t, f.Catalog, o)
	s := &shop{Forge: f, client: c, git: familytest.Push(t, repos, web, c)}
	w := ref.NewUpdater(f.Guard, repos, func(e change.Event) { s.pushed = append(s.pushed, e.Project) })
	f.Repositories, f.Refs = repos, w
	f.Serve(New(f.Kit).Table())
	familytest.Push(t, repos, archived, c)
	familytest.Init(t, repos, empty, "sha1")
	return s
}

// history returns a client with lightweight and annotated tags.
func history(t *testing.T, format string) *gittest.Client {
	t.Helper()
	c := gittest.New(t, format)
	for i, name := range []string{"v1.10", "v1.9", "v2", "Nightly/1"} {
		date := fmt.Sprintf("@%d +0200", 1_700_000_000+(i*7)%4)
		c.Env = []string{"GIT_COMMITTER_DATE=" + date, "GIT_AUTHOR_DATE=" + date}
		c.Commit(t, "a", name)
		if i%2 == 0 {
			c.Git(t, "tag", "--annotate", "--message=About "+name+"\n\nMore", name)
		} else {
			c.Git(t, "tag", name)
		}
	}
	return c
}

type asks struct{ who, request, body, want string }

func (s *shop) expect(t *testing.T, all ...asks) {
	t.Helper()
	for _, a := range all {
		if got := s.As(a.who, a.request, a.body).String(); got != a.want {
			t.Errorf("%s: %s %s\ngot  %.900s\nwant %.900s", a.who, a.request, a.body, got, a.want)
		}
	}
}

const at = "/projects/20/repository/tags"

func TestGetTag_returnsGitLabFields(t *testing.T) {
	for _, format := range []string{"sha1", "sha256"} {
		c := history(t, format)
		c.Git(t, "tag", "--annotate", "--message=again", "nested", "v2")
		c.Git(t, "tag", "file", "HEAD:a")
		s := newShop(t, c)
		light := c.Git(t, "rev-parse", "v1.9")
		parent := c.Git(t, "rev-parse", "v1.9^")
		s.expect(t, asks{"", "GET " + at + "/v1.9", "", `200 {"name":"v1.9","message":null,"target":"` + light + `","commit":{"id":"` + light +
			`","short_id":"` + light[:8] + `","created_at":"2023-11-15T00:13:23.000+02:00","parent_ids":["` + parent +
			`"],"title":"Change \"a\"","message":"Change \"a\"\n","author_name":"Ann Author","author_email":"ann@example.com",` +
			`"authored_date":"2023-11-15T00:13:23.000+02:00","committer_name":"Ann Author","committer_email":"ann@example.com",` +
			`"committed_date":"2023-11-15T00:13:23.000+02:00","trailers":{},"web_url":"https://forge.example/acme/web/-/commit/` + light +
			`"},"release":null,"protected":false,"created_at":null}`})
		for name, message := range map[string]string{"v2": "About v2\n\nMore", "nested": "again"} {
			answer := s.As("", "GET "+at+"/"+name, "")
			tag := familytest.Decode[Tag](t, answer)
			if *tag.Message != message || tag.Target != c.Git(t, "rev-parse", name) || tag.Commit.ID != c.Git(t, "rev-parse", name+"^{commit}") ||
				!strings.Contains(answer.Body, `"created_at":"2023-11-15T00:13:2`) || !strings.HasSuffix(answer.Body, `+02:00"}`) {
				t.Errorf("%s is %s", name, answer)
			}
		}
		s.expect(t, asks{"", "GET " + at + "/file", "", `200 {"name":"file","message":null,"target":"` + c.Git(t, "rev-parse", "HEAD:a") +
			`","commit":null,"release":null,"protected":false,"created_at":null}`})
	}
}

func TestCreateTag_isRefusedAboveTheRefLimit(t *testing.T) {
	c := gittest.New(t, "sha1")
	c.Commit(t, "a", "1")
	c.Git(t, "tag", "v1")
	s := newShopWith(t, c, git.Options{Limits: git.Limits{Refs: 2}})
	sentence := `413 {"message":"The repository would have 3 branches and tags, more than the 2 that the server allows. Delete some of them first."}`
	s.expect(t,
		asks{"dora", "POST " + at, `{"tag_name":"v2","ref":"main"}`, sentence},
		asks{"dora", "POST " + at, `{"tag_name":"v2","ref":"main","message":"about"}`, sentence},
	)
	if got := s.As("dora", "DELETE "+at+"/v1", ""); got.Code != 204 {
		t.Errorf("removing one: %s", got)
	}
	if got := s.As("dora", "POST "+at, `{"tag_name":"v2","ref":"main"}`); got.Code != 201 {
		t.Errorf("making one then: %s", got)
	}
}

func TestTagDate_isNullInTheDistantFuture(t *testing.T) {
	c := history(t, "sha1")
	c.Env = []string{"GIT_COMMITTER_DATE=@999999999999 +0000"}
	c.Git(t, "tag", "--annotate", "--message=far", "far")
	got := familytest.Decode[map[string]any](t, newShop(t, c).As("", "GET "+at+"/far", ""))
	if created, ok := got["created_at"]; !ok || created != nil || got["message"] != "far" {
		t.Errorf("it is %v", got)
	}
}

func TestLongMessages_areTruncated(t *testing.T) {
	c := gittest.New(t, "sha1")
	c.Commit(t, "a", "1")
	long := strings.Repeat("x", 17<<10)
	c.Git(t, "commit", "--quiet", "--amend", "--message="+long)
	c.Git(t, "tag", "--annotate", "--message="+long, "v1")
	s := newShop(t, c)
	for _, tag := range familytest.Decode[[]Tag](t, s.As("", "GET /projects/acme%2Fweb/repository/tags", "")) {
		if want := long[:16<<10] + "..."; *tag.Message != want || tag.Commit.Message != want || tag.Commit.Title != want {
			t.Errorf("the messages have %d and %d bytes", len(*tag.Message), len(tag.Commit.Message))
		}
	}
}

func named(t *testing.T, a familytest.Answer) (names []string) {
	t.Helper()
	for _, tag := range familytest.Decode[[]Tag](t, a) {
		names = append(names, tag.Name)
	}
	return names
}

func TestListTags_searchesSortsAndPages(t *testing.T) {
	c := history(t, "sha1")
	s := newShop(t, c)
	sorted := func(by string) []string {
		return strings.Fields(c.Git(t, "for-each-ref", "--sort="+by, "--format=%(refname:lstrip=2)", "refs/tags/"))
	}
	for query, want := range map[string][]string{
		"": sorted("-creatordate"), "sort=asc": sorted("creatordate"), "order_by=name": sorted("-refname"),
		"order_by=name&sort=asc": sorted("refname"), "order_by=version": sorted("-version:refname"),
		"order_by=version&sort=asc": sorted("version:refname"), "search=V1.&order_by=name": {"v1.9", "v1.10"},
		"search=%5Enight": {"Nightly/1"}, "search=2$": {"v2"}, "search=x": nil,
		"order_by=name&pagination=keyset&page_token=v1.9&per_page=2":      {"v1.10", "Nightly/1"},
		"order_by=name&sort=asc&pagination=keyset&page_token=v1.91":       {"v2"},
		"order_by=version&sort=asc&pagination=keyset&page_token=v1.9":     {"v1.10", "v2"},
		"order_by=name&sort=asc&per_page=3&page=2":                        {"v2"},
		"order_by=name&sort=asc&pagination=keyset&page_token=&per_page=1": {"Nightly/1"},
	} {
		if got := named(t, s.As("", "GET "+at+"?"+query, "")); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", query, got, want)
		}
	}
	answer := s.As("", "GET "+at+"?order_by=name&sort=asc&pagination=keyset&per_page=1", "")
	if link := answer.Header.Get("Link"); !strings.Contains(link, "page_token=Nightly%2F1") || answer.Header.Get("X-Total") != "" {
		t.Errorf("the link is %s", link)
	}
	s.expect(t,
		asks{"", "GET " + at + "?order_by=x", "", `400 {"error":"order_by does not have a valid value"}`},
		asks{"", "GET " + at + "?sort=x", "", `400 {"error":"sort does not have a valid value"}`},
		asks{"", "GET " + at + "?pagination=keyset&page_token=x", "", `400 {"error":"page_token is invalid"}`},
		asks{"", "GET /projects/21/repository/tags", "", `200 []`},
		asks{"", "GET /projects/22/repository/tags", "", `200 []`},
		asks{"", "GET /projects/21/repository/tags/v1", "", `404 {"message":"404 Tag Not Found"}`},
		asks{"", "GET /projects/22/repository/tags/v1", "", `404 {"message":"404 Tag Not Found"}`},
		asks{"", "GET " + at + "/gone", "", `404 {"message":"404 Tag Not Found"}`},
		asks{"", "GET " + at + "/-x", "", `404 {"message":"404 Tag Not Found"}`},
		asks{"", "GET " + at + "/v2%5E%7B%7D", "", `404 {"message":"404 Tag Not Found"}`},
	)
}

func TestCreateTag_makesLightweightAndAnnotatedTags(t *testing.T) {
	c := history(t, "sha1")
	s := newShop(t, c)
	store := &gittest.Client{Dir: s.git.Dir()}
	post := func(who, project, body, want string) asks {
		return asks{who, "POST /projects/" + project + "/repository/tags", body, want}
	}
	before := store.Git(t, "show-ref") + store.Git(t, "count-objects")
	s.expect(t,
		post("", "20", `{"tag_name":"x","ref":"main"}`, `403 {"message":"403 Forbidden"}`),
		post("rita", "20", `{"tag_name":"x","ref":"main"}`, `403 {"message":"403 Forbidden"}`),
		post("dora", "20", `{}`, `400 {"error":"tag_name is missing, ref is missing"}`),
		post("dora", "20", `{"tag_name":"v2","ref":"main"}`, `400 {"message":"Tag v2 already exists"}`),
		post("dora", "20", `{"tag_name":"x","ref":"gone"}`, `400 {"message":"Target gone is invalid"}`),
		post("dora", "20", `{"tag_name":"x","ref":""}`, `400 {"message":"Target  is invalid"}`),
		post("dora", "20", `{"tag_name":"x","ref":"--all"}`, `400 {"message":"Target --all is invalid"}`),
		post("dora", "21", `{"tag_name":"x","ref":"main"}`, `400 {"message":"Target main is invalid"}`),
		post("dora", "22", `{"tag_name":"x","ref":"main"}`, `400 {"message":"Target main is invalid"}`),
		post("dora", "20", `{"tag_name":"-x","ref":"main"}`, `400 {"message":"Tag name invalid"}`),
		post("dora", "20", `{"tag_name":"","ref":"main"}`, `400 {"message":"Tag name invalid"}`),
		post("dora", "20", `{"tag_name":"a\nb","ref":"main"}`, `400 {"message":"Tag name invalid"}`),
		post("dora", "20", `{"tag_name":"v2/x","ref":"main"}`, `400 {"message":"Failed to create tag 'v2/x': another tag is in the way"}`),
		post("dora", "23", `{"tag_name":"x","ref":"main"}`, `403 {"message":"403 Forbidden - The project is archived"}`),
	)
	open, err := s.git.Close(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.expect(t, post("dora", "20", `{"tag_name":"x","ref":"main","message":"y"}`,
		`403 {"message":"403 Forbidden - The repository is temporarily read-only. Please try again later."}`))
	open()
	if after := store.Git(t, "show-ref") + store.Git(t, "count-objects"); after != before || s.pushed != nil {
		t.Errorf("after refusals there are\n%s; told of %v", after, s.pushed)
	}

	light := familytest.Decode[Tag](t, s.As("dora", "POST "+at, `{"tag_name":"light/ü","ref":"main","message":" "}`))
	if want := c.Git(t, "rev-parse", "main"); light.Name != "light/ü" || light.Target != want || light.Message != nil || store.Git(t, "rev-parse", "light/ü") != want {
		t.Errorf("made %+v", light)
	}
	answer := s.As("dora", "POST "+at, `{"tag_name":"v3","ref":"v2","message":"Third\n\ntagger x\n"}`)
	made := familytest.Decode[Tag](t, answer)
	commit := c.Git(t, "rev-parse", "v2^{commit}")
	want := "object " + commit + "\ntype commit\ntag v3\ntagger Dora D Ümläut <dora@forge.example> " + fmt.Sprint(s.Clock.Now().Unix()) +
		" +0000\n\nThird\n\ntagger x"
	if is := store.Git(t, "cat-file", "tag", "v3"); answer.Code != 201 || is != want || made.Target != store.Git(t, "rev-parse", "v3") ||
		*made.Message != "Third\n\ntagger x" || made.Commit.ID != commit || !strings.HasSuffix(answer.Body, `"created_at":"2026-06-15T12:00:00.000+00:00"}`) {
		t.Errorf("made %s\n%s", answer, is)
	}
	if web := (types.NamespacedName{Namespace: "acme", Name: "web"}); !slices.Equal(s.pushed, []types.NamespacedName{web, web}) {
		t.Errorf("told of %v", s.pushed)
	}
	store.Git(t, "fsck", "--strict")
}

func TestDeleteTag_requiresPushPermission(t *testing.T) {
	c := history(t, "sha1")
	c.Git(t, "tag", "file", "HEAD:a")
	s := newShop(t, c)
	s.expect(t,
		asks{"", "DELETE " + at + "/v2", "", `403 {"message":"403 Forbidden"}`},
		asks{"rita", "DELETE " + at + "/v2", "", `403 {"message":"403 Forbidden"}`},
		asks{"dora", "DELETE " + at + "/gone", "", `404 {"message":"404 Tag Not Found"}`},
		asks{"dora", "DELETE " + at + "/main", "", `404 {"message":"404 Tag Not Found"}`},
		asks{"dora", "DELETE /projects/23/repository/tags/v2", "", `403 {"message":"403 Forbidden - The project is archived"}`},
	)
	s.Header = map[string][]string{"If-Unmodified-Since": {time.Unix(1_000_000_000, 0).UTC().Format(http.TimeFormat)}}
	s.expect(t, asks{"dora", "DELETE " + at + "/v2", "", `412 {"message":"412 Precondition Failed"}`})
	s.Header = nil
	if got := named(t, s.As("", "GET "+at, "")); len(got) != 5 || s.pushed != nil {
		t.Errorf("after refusals there are %v; told of %v", got, s.pushed)
	}
	s.expect(t,
		asks{"dora", "DELETE " + at + "/v2", "", "204"},
		asks{"dora", "DELETE " + at + "/Nightly%2F1", "", "204"},
		asks{"dora", "DELETE " + at + "/file", "", "204"},
	)
	if got := named(t, s.As("", "GET "+at+"?order_by=version", "")); !slices.Equal(got, []string{"v1.10", "v1.9"}) || len(s.pushed) != 3 {
		t.Errorf("left are %v; told of %v", got, s.pushed)
	}
}
