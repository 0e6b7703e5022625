package landing_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"github.com/go-logr/logr/testr"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/landing"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/internal/watermark"
)

// browse returns a function that gets a path, with the token of a user or without one.
func browse(t *testing.T) func(username, path string) *httptest.ResponseRecorder {
	t.Helper()
	return browseAt(t, func(context.Context) (bool, error) { return false, nil })
}

// browseAt is browse for a server with a cache that may be outdated.
func browseAt(t *testing.T, outdated func(context.Context) (bool, error)) func(username, path string) *httptest.ResponseRecorder {
	t.Helper()
	web := familytest.Project("acme", "web", 20, "acme", v1alpha1.VisibilityPublic)
	web.Spec.Name, web.Spec.Description = "Web & more", `<script>alert("hi")</script>`
	team := familytest.Group("acme", "team", 11, "acme", v1alpha1.VisibilityPublic)
	team.Spec.Name, team.Spec.Description = "A & B", "<b>Bakers</b>"
	personal := familytest.Group("forgeplane-system", "gus", 13, "", v1alpha1.VisibilityPublic)
	personal.Labels = map[string]string{v1alpha1.LabelPersonal: "4"}
	gus := familytest.User("gus", 4)
	gus.Spec.Name = "Gus & Co"
	f := familytest.New(t,
		familytest.User("root", 1, familytest.Admin), gus, familytest.User("otto", 5),
		familytest.Group("acme", "acme", 10, "", v1alpha1.VisibilityPublic), team, web,
		familytest.Group("hidden", "hidden", 12, "", v1alpha1.VisibilityPrivate), personal,
		familytest.Group("numbers", "2026", 14, "", v1alpha1.VisibilityPublic), familytest.User("007", 6),
		familytest.Project("numbers", "12", 23, "2026", v1alpha1.VisibilityPublic),
		familytest.Project("acme", "inner", 21, "acme", v1alpha1.VisibilityInternal),
		familytest.Project("acme", "secret", 22, "acme", v1alpha1.VisibilityPrivate),
		familytest.InProject("acme", "secret", "gus", v1alpha1.RoleGuest),
	)
	external, err := url.Parse(familytest.WebURL)
	if err != nil {
		t.Fatal(err)
	}
	h := landing.New(landing.Options{
		Guard: f.Guard, External: external, Outdated: outdated, Log: testr.New(t),
	})
	return func(username, path string) *httptest.ResponseRecorder {
		t.Helper()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody)
		if username != "" {
			r.Header.Set("PRIVATE-TOKEN", familytest.Value(username))
		}
		if !landing.Serves(r) {
			t.Fatalf("%s is not served", path)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
}

func TestServes_leavesGitAlone(t *testing.T) {
	for request, want := range map[string]bool{
		"GET /": true, "HEAD /": true, "GET /api": true, "GET /api/v4": true, "GET /acme": true, "GET /groups/acme/team": true,
		"GET /acme/web": true, "GET /acme/web/": true, "HEAD /acme/web/-/commit/abc": true, "GET /acme/web/-/tree/main": true,
		"GET //": true, "GET /acme/../web": true, "GET /acme%2Fweb": true, "GET /-/nowhere": true,

		"POST /": false, "POST /acme/web": false, "OPTIONS /acme/web": false,
		"GET /acme/web.git": false, "GET /acme/web.git/": false, "GET /acme/web.git/HEAD": false,
		"GET /acme/web.git/info/refs?service=git-upload-pack": false, "GET /acme/web/info/refs?service=git-upload-pack": false,
		"GET /acme/web/git-upload-pack": false, "GET /acme/web/git-receive-pack": false, "GET /info/refs?service=git-upload-pack": false,
	} {
		method, path, _ := strings.Cut(request, " ")
		if got := landing.Serves(httptest.NewRequestWithContext(t.Context(), method, path, http.NoBody)); got != want {
			t.Errorf("%s: got %t", request, got)
		}
	}
}

func TestRoot_linksReference(t *testing.T) {
	get := browse(t)
	for _, path := range []string{"/", "/api", "/api/", "/api/v4"} {
		got := get("", path)
		for _, want := range []string{`<a href="https://forge.example/-/docs">API reference</a>`, "<code>https://forge.example/api/v4</code>"} {
			if got.Code != http.StatusOK || !strings.Contains(got.Body.String(), want) {
				t.Errorf("%s: got %d %s", path, got.Code, got.Body)
			}
		}
	}
}

func TestWebURL_leadsToPage(t *testing.T) {
	get := browse(t)
	const project, group, user = "<h1>acme / Web &amp; more</h1>", "<h1>acme / A &amp; B</h1>\n<p>&lt;b&gt;Bakers&lt;/b&gt;</p>", "<h1>Gus &amp; Co</h1>\n<p>gus</p>"
	for _, tt := range []struct{ username, path, holds string }{
		{"", "/acme", "<h1>acme</h1>"}, {"", "/groups/acme", "<h1>acme</h1>"}, {"", "/groups/acme/team", group}, {"", "/acme/team", group},
		{"", "/acme/web/-/commit/0123456789abcdef0123456789abcdef01234567", project}, {"", "/acme/web/-/tree/topic/a%23b", project},
		{"", "/acme/web/-/compare/main...topic", project}, {"otto", "/gus", user}, {"otto", "/Gus/", user},
		{"", "/2026", "<h1>2026</h1>"}, {"", "/groups/2026", "<h1>2026</h1>"}, {"", "/2026/12", "<h1>2026 / 12</h1>"}, {"otto", "/007", "<p>007</p>"},
	} {
		if got := get(tt.username, tt.path); got.Code != http.StatusOK || !strings.Contains(got.Body.String(), tt.holds) {
			t.Errorf("%s as %q: got %d %s", tt.path, tt.username, got.Code, got.Body)
		}
	}
}

func TestProject_isEscapedAndContained(t *testing.T) {
	got := browse(t)("", "/acme/web")
	for _, want := range []string{
		"<h1>acme / Web &amp; more</h1>", "&lt;script&gt;alert(&#34;hi&#34;)&lt;/script&gt;", "git clone https://forge.example/acme/web.git",
		`<a href="https://forge.example/-/docs">`,
	} {
		if !strings.Contains(got.Body.String(), want) {
			t.Errorf("there is no %s in %s", want, got.Body)
		}
	}
	if strings.Contains(got.Body.String(), "<script") {
		t.Errorf("the description is not escaped: %s", got.Body)
	}
	for name, want := range map[string]string{
		"Content-Type": "text/html; charset=utf-8", "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store",
		"Content-Security-Policy": "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
	} {
		if is := got.Header().Get(name); is != want {
			t.Errorf("%s is %q", name, is)
		}
	}
}

func TestProject_isForThoseWhoSeeIt(t *testing.T) {
	get := browse(t)
	for _, tt := range []struct {
		username, path string
		status         int
	}{
		{"", "/acme/web", 200}, {"", "/ACME/Web/", 200}, {"", "/acme/inner", 404}, {"", "/acme/secret", 404}, {"", "/acme/none", 404}, {"", "/20/21", 404},
		{"otto", "/acme/inner", 200}, {"otto", "/acme/secret", 404}, {"gus", "/acme/secret", 200}, {"root", "/acme/secret", 200},
		{"nobody", "/acme/web", 401}, {"nobody", "/acme/none", 401},
	} {
		if got := get(tt.username, tt.path); got.Code != tt.status {
			t.Errorf("%s as %q: got %d", tt.path, tt.username, got.Code)
		}
	}
}

func TestHidden_looksLikeMissing(t *testing.T) {
	get := browse(t)
	missing := get("", "/acme/none")
	for _, tt := range []struct{ username, path string }{
		{"otto", "/acme/secret"}, {"otto", "/acme/none"}, {"", "/acme/secret"}, {"", "/acme/secret/-/commit/0123456789abcdef"}, {"", "/acme/none/-/commit/0123456789abcdef"},
		{"", "/hidden"}, {"", "/groups/hidden"}, {"otto", "/groups/hidden"}, {"", "/none"}, {"", "/groups/none"}, {"", "/groups"},
		{"", "/gus"}, {"", "/otto"}, {"otto", "/nobody"}, {"otto", "/4"}, {"", "/10"}, {"", "/groups/10"},
		{"", "/acme/web/-/issues"}, {"", "/acme/-/commit/0123456789abcdef"}, {"", "/-/nowhere"}, {"", "/api/v5"}, {"", "/acme/../acme/web"}, {"", "//acme/web"},
	} {
		got := get(tt.username, tt.path)
		if got.Code != http.StatusNotFound || got.Body.String() != missing.Body.String() || !reflect.DeepEqual(got.Header(), missing.Header()) {
			t.Errorf("%s as %q: got %d %v %s", tt.path, tt.username, got.Code, got.Header(), got.Body)
		}
	}
}

func TestPage_isUnavailableWhileTheServerIsBehind(t *testing.T) {
	got := browseAt(t, func(context.Context) (bool, error) { return false, watermark.ErrBehind })("", "/acme/none")
	if got.Code != http.StatusServiceUnavailable || got.Header().Get("Retry-After") != "10" || !strings.Contains(got.Body.String(), watermark.Behind) {
		t.Errorf("got %d %v %s", got.Code, got.Header(), got.Body)
	}
}
