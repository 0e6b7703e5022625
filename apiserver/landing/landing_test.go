package landing_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/go-logr/logr/testr"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/landing"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
)

// browse returns a function that gets a path, with the token of a user or without one.
func browse(t *testing.T) func(username, path string) *httptest.ResponseRecorder {
	t.Helper()
	web := familytest.Project("acme", "web", 20, "acme", v1alpha1.VisibilityPublic)
	web.Spec.Name, web.Spec.Description = "Web & more", `<script>alert("hi")</script>`
	f := familytest.New(t,
		familytest.User("root", 1, familytest.Admin), familytest.User("gus", 4), familytest.User("otto", 5),
		familytest.Group("acme", "acme", 10, "", v1alpha1.VisibilityPublic), web,
		familytest.Project("acme", "inner", 21, "acme", v1alpha1.VisibilityInternal),
		familytest.Project("acme", "secret", 22, "acme", v1alpha1.VisibilityPrivate),
		familytest.InProject("acme", "secret", "gus", v1alpha1.RoleGuest),
	)
	external, err := url.Parse(familytest.WebURL)
	if err != nil {
		t.Fatal(err)
	}
	h := landing.New(landing.Options{
		Guard: f.Guard, External: external, Outdated: func(context.Context) (bool, error) { return false, nil }, Log: testr.New(t),
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

func TestServes_leavesOtherPathsAlone(t *testing.T) {
	for request, want := range map[string]bool{
		"GET /": true, "HEAD /": true, "GET /?private_token=x": true, "GET /acme/web": true, "GET /acme/web/": true,
		"GET /acme/team/web.site": true, "GET /acme/api": true,

		"POST /": false, "POST /acme/web": false, "GET /acme": false, "GET //": false, "GET /acme//web": false, "GET /acme/../web": false,
		"GET /acme%2Fweb": false, "GET /acme/web%20": false, "GET /acme/-/web": false,
		"GET /acme/web.git": false, "GET /acme/web.git/": false, "GET /acme/web.git/HEAD": false,
		"GET /acme/web.git/info/refs?service=git-upload-pack": false, "GET /acme/web/info/refs?service=git-upload-pack": false,
		"GET /acme/web/git-upload-pack": false, "GET /acme/web/git-receive-pack": false,
		"GET /api/v4": false, "GET /API/v4": false, "GET /jwt/auth": false, "GET /v2/acme/web": false, "GET /-/docs": false, "GET /-/health": false,
	} {
		method, path, _ := strings.Cut(request, " ")
		if got := landing.Serves(httptest.NewRequestWithContext(t.Context(), method, path, http.NoBody)); got != want {
			t.Errorf("%s: got %t", request, got)
		}
	}
}

func TestRoot_linksReference(t *testing.T) {
	got := browse(t)("", "/")
	if got.Code != http.StatusOK || !strings.Contains(got.Body.String(), `<a href="https://forge.example/-/docs">API reference</a>`) {
		t.Errorf("got %d %s", got.Code, got.Body)
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
	hidden, missing := get("otto", "/acme/secret"), get("otto", "/acme/none")
	if hidden.Body.String() != missing.Body.String() || len(hidden.Header()) != len(missing.Header()) {
		t.Errorf("a hidden project differs from a missing one: %v %s, %v %s", hidden.Header(), hidden.Body, missing.Header(), missing.Body)
	}
}
