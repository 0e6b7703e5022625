package commits_test

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	. "github.com/forgeplane/forgeplane/apiserver/v4/commits"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/internal/pipeline"
)

// shop is a familytest.Shop whose project web has the refs of client.
type shop struct {
	*familytest.Shop

	client *gittest.Client
}

func newShop(t *testing.T, c *gittest.Client) *shop {
	t.Helper()
	s := &shop{Shop: familytest.NewShop(t, c), client: c}
	s.Activity = familytest.Activity(t, s.Clock)
	s.Serve(New(s.Kit).Table())
	return s
}

type asks = familytest.Asks

// history returns a client with five commits on two branches, one of them a merge, and a tag.
func history(t *testing.T, format string) *gittest.Client {
	t.Helper()
	c := gittest.New(t, format)
	at := func(n int) {
		c.Env = []string{fmt.Sprintf("GIT_COMMITTER_DATE=@%d +0200", 1_700_000_000+n), fmt.Sprintf("GIT_AUTHOR_DATE=@%d +0200", 1_700_000_000+n)}
	}
	at(0)
	c.Commit(t, "a", "1\n2\n")
	c.Git(t, "checkout", "--quiet", "-b", "topic/one")
	at(1)
	c.Commit(t, "b", "1\n")
	c.Git(t, "checkout", "--quiet", "main")
	at(2)
	c.Commit(t, "a", "1\n3\n4\n")
	at(3)
	c.Git(t, "merge", "--quiet", "--no-edit", "topic/one")
	at(4)
	c.Git(t, "commit", "--quiet", "--allow-empty", "--author=Bo <bo@example.com>", "--message=Nothing\n\nWhy\n\nCc: One\nCc: Two")
	c.Git(t, "tag", "v1", "main~1")
	return c
}

const at = "/projects/20/repository/commits"

func TestGetCommit_hasLastPipeline(t *testing.T) {
	g, s := NewWithT(t), newShop(t, history(t, "sha1"))
	id := s.client.Git(t, "rev-parse", "main")
	for _, p := range []pipeline.Pipeline{
		{Ref: "main", SHA: id, Status: pipeline.Failed}, {Ref: "main", SHA: id, Status: pipeline.Skipped},
		{Ref: "main", SHA: id, Status: pipeline.Failed, Source: pipeline.SourceParent}, {Ref: "main", SHA: s.client.Git(t, "rev-parse", "main~1"), Status: pipeline.Failed},
	} {
		p.In = s.ProjectRow(20)
		g.Expect(s.Activity.Pipelines.Create(t.Context(), &p, nil, nil)).To(Succeed())
	}
	d := familytest.Decode[Detail](t, s.As("", "GET "+at+"/main", ""))
	g.Expect(d.Status).To(HaveValue(Equal(pipeline.Skipped)))
	g.Expect(d.LastPipeline).To(HaveValue(And(HaveField("ID", int64(2)), HaveField("Ref", "main"), HaveField("WebURL", HaveSuffix("/-/pipelines/2")))))
}

func TestGetCommit_returnsGitLabFields(t *testing.T) {
	for _, format := range []string{"sha1", "sha256"} {
		c := history(t, format)
		s := newShop(t, c)
		id := c.Git(t, "rev-parse", "main")
		parent := c.Git(t, "rev-parse", "main~1")
		shown := func(trailers, more string) string {
			return `{"id":"` + id + `","short_id":"` + id[:8] + `","created_at":"2023-11-15T00:13:24.000+02:00","parent_ids":["` + parent +
				`"],"title":"Nothing","message":"Nothing\n\nWhy\n\nCc: One\nCc: Two\n","author_name":"Bo","author_email":"bo@example.com",` +
				`"authored_date":"2023-11-15T00:13:24.000+02:00","committer_name":"Ann Author","committer_email":"ann@example.com",` +
				`"committed_date":"2023-11-15T00:13:24.000+02:00","trailers":` + trailers + `,"web_url":"https://forge.example/acme/web/-/commit/` + id + `"` + more + `}`
		}
		const stats = `,"stats":{"additions":0,"deletions":0,"total":0}`
		const rest = `,"status":null,"last_pipeline":null,"project_id":20`
		s.Expect(t,
			asks{"GET " + at + "/main", "200 " + shown(`{"Cc":"Two"}`, stats+rest)},
			asks{"GET " + at + "/" + id[:9] + "?stats=false", "200 " + shown(`{"Cc":"Two"}`, rest)},
			asks{"GET " + at + "?per_page=1", "200 [" + shown(`{}`, "") + "]"},
			asks{"GET " + at + "?per_page=1&trailers=true&with_stats=true", "200 [" + shown(`{"Cc":"Two"}`, stats) + "]"},
		)
		for name, want := range map[string]Stats{
			"v1": {Additions: 1, Total: 1}, "topic%2Fone": {Additions: 1, Total: 1}, "v1~1": {Additions: 2, Deletions: 1, Total: 3},
			"main~3": {Additions: 2, Total: 2},
		} {
			if got := familytest.Decode[Detail](t, s.As("", "GET "+at+"/"+name, "")); got.Stats == nil || *got.Stats != want {
				t.Errorf("%s has changed %+v, want %+v", name, got.Stats, want)
			}
		}
	}
}

func TestCommitDates_areAlwaysValid(t *testing.T) {
	c := history(t, "sha1")
	for _, date := range []string{
		"@253402214400 +0000", "@253402300799 -2359", "@253402300800 +0000", "@999999999999 +0000", "@1700000000 +2399", "@253402214399 +2359",
	} {
		c.Env = []string{"GIT_COMMITTER_DATE=" + date, "GIT_AUTHOR_DATE=" + date}
		c.Git(t, "commit", "--quiet", "--allow-empty", "--message="+date)
	}
	var years []int
	for _, c := range familytest.Decode[[]struct {
		Created  time.Time `json:"created_at"`
		Authored time.Time `json:"authored_date"`
	}](t, newShop(t, c).As("", "GET "+at+"?order=topo&per_page=6", "")) {
		if _, err := c.Created.MarshalJSON(); err != nil || !c.Authored.Equal(c.Created) {
			t.Errorf("%s and %s: %v", c.Created, c.Authored, err)
		}
		years = append(years, c.Created.UTC().Year())
	}
	if want := []int{9999, 2023, 1970, 1970, 1970, 1970}; !slices.Equal(years, want) {
		t.Errorf("the years are %v, want %v", years, want)
	}
}

func ids(t *testing.T, a familytest.Answer) (all []string) {
	t.Helper()
	for _, c := range familytest.Decode[[]Listed](t, a) {
		all = append(all, c.ID)
	}
	return all
}

func TestListCommits_filtersAndOrders(t *testing.T) {
	c := history(t, "sha1")
	s := newShop(t, c)
	for query, want := range map[string]string{
		"": "main", "ref_name=": "main", "ref_name=HEAD": "main", "ref_name=topic/one": "topic/one", "ref_name=v1": "v1",
		"ref_name=topic/one..main": "topic/one..main", "ref_name=topic/one...v1~1": "topic/one...v1~1", "ref_name=v1..": "v1..main",
		"ref_name=refs/heads/main~1": "main~1", "all=true": "--all", "all=true&ref_name=gone": "--all",
		"first_parent=true": "--first-parent main", "order=topo": "--topo-order main", "order=default": "main",
		"since=2023-11-14T22:13:22%2B0000": "--since=@1700000002 main", "since=20231114T221322Z": "--since=@1700000002 main",
		"since=2023-11-15T00:13%2B02:00": "--since=@1699999980 main", "since=2023-11-14%2022:13:22": "--since=@1700000002 main",
		"since=2023-11-14T22:13:22Z": "--since=@1700000002 main", "since=2023-11-14T22:13:21.5Z": "--since=@1700000002 main",
		"until=2023-11-14T22:13:22Z": "--until=@1700000002 main", "until=2023-11-15T00:13:22.9%2B02:00": "--until=@1700000002 main",
		"since=2023-11-14&until=2023-11-15": "main", "since=2023-11-15": "--max-count=0 main",
		"author=bo": "--author=bo main", "author=Bo+%3C": "--author=Bo.< main", "author=B.": "--max-count=0 main",
		"path=a": "main -- a", "path=/a/": "main -- a", "path=gone": "main -- gone", "path=..": "--max-count=0 main", "path=*": "--max-count=0 main",
	} {
		answer := s.As("", "GET "+at+"?"+query, "")
		if got, want := ids(t, answer), strings.Fields(c.Git(t, append([]string{"log", "--format=%H"}, strings.Fields(want)...)...)); !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", query, got, want)
		}
	}
}

var link = regexp.MustCompile(`<https://forge.example/api/v4([^>]*)>; rel="(\w+)"`)

func TestListCommits_pagesWithoutATotal(t *testing.T) {
	c := history(t, "sha1")
	s := newShop(t, c)
	for _, by := range []string{"", "&path=a", "&all=true", "&pagination=keyset"} {
		var got []string
		pages := 0
		for target := at + "?per_page=2" + by; target != ""; pages++ {
			answer := s.As("", "GET "+target, "")
			got = append(got, ids(t, answer)...)
			links := map[string]string{}
			for _, l := range link.FindAllStringSubmatch(answer.Header.Get("Link"), -1) {
				links[l[2]] = l[1]
			}
			target = links["next"]
			prev := map[bool]string{true: fmt.Sprint(pages)}[pages > 0]
			next := map[bool]string{true: fmt.Sprint(pages + 2)}[target != ""]
			h := answer.Header
			if h.Get("X-Page") != fmt.Sprint(pages+1) || h.Get("X-Per-Page") != "2" || h.Get("X-Prev-Page") != prev || h.Get("X-Next-Page") != next ||
				h["X-Next-Page"] == nil || h["X-Total"] != nil || h["X-Total-Pages"] != nil || links["last"] != "" || links["first"] == "" {
				t.Errorf("page %d%s has the headers %v", pages+1, by, h)
			}
		}
		args := map[string]string{"&path=a": "-- a", "&all=true": "--all"}[by]
		want := strings.Fields(c.Git(t, append([]string{"log", "--format=%H"}, strings.Fields(args)...)...))
		if !slices.Equal(got, want) || pages != (len(want)+1)/2 {
			t.Errorf("%d pages%s have %v, want %v", pages, by, got, want)
		}
	}
	for _, page := range []string{"4", "2000000000", "9000000000000000000"} {
		answer := s.As("", "GET "+at+"?per_page=2&page="+page, "")
		if answer.String() != "200 []" || answer.Header.Get("X-Next-Page") != "" || answer.Header.Get("X-Prev-Page") != "" {
			t.Errorf("page %s is %s, with %v", page, answer, answer.Header)
		}
	}
}

func TestCommits_handleMissingRefsAndRepositories(t *testing.T) {
	s := newShop(t, history(t, "sha1"))
	const notFound = `404 {"message":"404 Commit Not Found"}`
	s.Expect(t,
		asks{"GET /projects/21/repository/commits", "200 []"},
		asks{"GET /projects/21/repository/commits?all=true&with_stats=true", "200 []"},
		asks{"GET /projects/22/repository/commits", "200 []"},
		asks{"GET /projects/22/repository/commits?all=true", "200 []"},
		asks{"GET /projects/21/repository/commits?ref_name=main", notFound},
		asks{"GET /projects/22/repository/commits?ref_name=main", notFound},
		asks{"GET " + at + "?order=other", `400 {"error":"order does not have a valid value"}`},
		asks{"GET " + at + "?since=yesterday", `400 {"error":"since is invalid"}`},
		asks{"GET " + at + "?path=%00", `400 {"error":"path is invalid"}`},
		asks{"GET " + at + "?per_page=0", `400 {"error":"per_page has a value not allowed"}`},
		asks{"GET " + at + "/main/refs?type=other", `400 {"error":"type does not have a valid value"}`},
	)
	for _, name := range []string{"gone", "--all", "main:a", "v1..gone", "gone..v1", "main....v1", "^main", s.client.Git(t, "rev-parse", "main:a")} {
		s.Expect(t, asks{"GET " + at + "?ref_name=" + url.QueryEscape(name), notFound})
		for _, suffix := range []string{"", "/diff", "/refs"} {
			s.Expect(t, asks{"GET " + at + "/" + url.PathEscape(name) + suffix, notFound})
			s.Expect(t, asks{"GET /projects/21/repository/commits/main" + suffix, notFound})
			s.Expect(t, asks{"GET /projects/22/repository/commits/main" + suffix, notFound})
		}
	}
}

func TestCommitDiff_comparesWithTheFirstParent(t *testing.T) {
	c := history(t, "sha1")
	s := newShop(t, c)
	show := func(name, text, a, b string, added bool) string {
		return fmt.Sprintf(`{"diff":%q,"new_path":%q,"old_path":%q,"a_mode":%q,"b_mode":%q,"new_file":%t,"renamed_file":false,"deleted_file":false,"too_large":false}`,
			text, name, name, a, b, added)
	}
	s.Expect(t,
		asks{"GET " + at + "/v1~1/diff", "200 [" + show("a", "@@ -1,2 +1,3 @@\n 1\n-2\n+3\n+4\n", "100644", "100644", false) + "]"},
		asks{"GET " + at + "/v1~1/diff?unidiff=true", "200 [" + show("a", "--- a/a\n+++ b/a\n@@ -1,2 +1,3 @@\n 1\n-2\n+3\n+4\n", "100644", "100644", false) + "]"},
		asks{"GET " + at + "/main~3/diff", "200 [" + show("a", "@@ -0,0 +1,2 @@\n+1\n+2\n", "0", "100644", true) + "]"},
		asks{"GET " + at + "/v1/diff", "200 [" + show("b", "@@ -0,0 +1 @@\n+1\n", "0", "100644", true) + "]"},
		asks{"GET " + at + "/main/diff", "200 []"},
		asks{"GET " + at + "/v1/diff?page=2", "200 []"},
	)
	if got := s.As("", "GET "+at+"/v1/diff?per_page=1", "").Header; got.Get("X-Total") != "1" {
		t.Errorf("the headers are %v", got)
	}
}

func TestCommitDiff_omitsTheTotalWhenVeryLong(t *testing.T) {
	c := gittest.New(t, "sha1")
	c.Nest(t, 101, 2) // 10,201 files
	s := newShop(t, c)
	for page, next := range map[string]bool{"1": true, "500": false} {
		got := s.As("", "GET "+at+"/main/diff?page="+page, "")
		rows := familytest.Decode[[]map[string]any](t, got)
		if link := got.Header.Get("Link"); len(rows) != 20 || got.Header.Get("X-Total") != "" || strings.Contains(link, `rel="next"`) != next || strings.Contains(link, "last") {
			t.Errorf("page %s has %d rows and the headers %v", page, len(rows), got.Header)
		}
	}
}

func TestCommitRefs_listsBranchesAndTags(t *testing.T) {
	s := newShop(t, history(t, "sha1"))
	const main, topic, v1 = `{"type":"branch","name":"main"}`, `{"type":"branch","name":"topic/one"}`, `{"type":"tag","name":"v1"}`
	s.Expect(t,
		asks{"GET " + at + "/main~3/refs", "200 [" + main + "," + topic + "," + v1 + "]"},
		asks{"GET " + at + "/main~3/refs?type=all&per_page=1&page=2", "200 [" + topic + "]"},
		asks{"GET " + at + "/topic%2Fone/refs?type=branch", "200 [" + main + "," + topic + "]"},
		asks{"GET " + at + "/v1/refs?type=tag", "200 [" + v1 + "]"},
		asks{"GET " + at + "/main/refs?type=tag", "200 []"},
	)
}

func TestCommitSignature_isNotVerified(t *testing.T) {
	c := history(t, "sha1")
	tree := c.Git(t, "rev-parse", "HEAD^{tree}")
	for name, begin := range map[string]string{
		"pgp": "-----BEGIN PGP SIGNATURE-----", "ssh": "-----BEGIN SSH SIGNATURE-----", "x509": "-----BEGIN SIGNED MESSAGE-----", "other": "-----BEGIN-----",
	} {
		c.Git(t, "branch", name, c.Write(t, "commit", "tree "+tree+
			"\nauthor A <a@b> 0 +0000\ncommitter A <a@b> 0 +0000\ngpgsig "+begin+"\n \n AAAA\n -----END-----\n\nSigned\n"))
	}
	s := newShop(t, c)
	signed := func(form string) string {
		return `200 {"signature_type":"` + form + `","verification_status":"unknown_key","commit_source":"gitaly"}`
	}
	s.Expect(t,
		asks{"GET " + at + "/main/signature", `404 {"message":"404 Signature Not Found"}`},
		asks{"GET " + at + "/other/signature", `404 {"message":"404 Signature Not Found"}`},
		asks{"GET " + at + "/missing/signature", `404 {"message":"404 Commit Not Found"}`},
		asks{"GET " + at + "/pgp/signature", signed("PGP")},
		asks{"GET " + at + "/ssh/signature", signed("SSH")},
		asks{"GET " + at + "/x509/signature", signed("X509")},
	)
}
