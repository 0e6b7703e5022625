package route

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"
)

// routes is a selection of the routes of the REST API that has a route of each shape.
var routes = []Pattern{
	{Method: "GET", Path: "/version"},
	{Method: "GET", Path: "/user"},
	{Method: "GET", Path: "/users/{id}"},
	{Method: "GET", Path: "/projects"},
	{Method: "POST", Path: "/projects"},
	{Method: "GET", Path: "/projects/{id}"},
	{Method: "DELETE", Path: "/projects/{id}"},
	{Method: "POST", Path: "/projects/{id}/archive"},
	{Method: "GET", Path: "/projects/{id}/labels"},
	{Method: "GET", Path: "/projects/{id}/labels/{label_id}"},
	{Method: "PUT", Path: "/projects/{id}/labels/{label_id}/promote"},
	{Method: "GET", Path: "/projects/{id}/members"},
	{Method: "GET", Path: "/projects/{id}/members/all"},
	{Method: "GET", Path: "/projects/{id}/members/all/{user_id}"},
	{Method: "GET", Path: "/projects/{id}/members/{user_id}"},
	{Method: "GET", Path: "/projects/{id}/protected_branches"},
	{Method: "GET", Path: "/projects/{id}/protected_branches/{name}"},
	{Method: "PATCH", Path: "/projects/{id}/protected_branches/{name}"},
	{Method: "GET", Path: "/projects/{id}/repository/files/{file_path}"},
	{Method: "GET", Path: "/projects/{id}/repository/files/{file_path}/raw"},
	{Method: "GET", Path: "/projects/{id}/jobs/artifacts/{ref_name}/raw/{artifact_path}"},
	{Method: "GET", Path: "/groups"},
	{Method: "GET", Path: "/groups/{id}"},
	{Method: "GET", Path: "/groups/{id}/projects"},
	{Method: "GET", Path: "/groups/{id}/badges"},
	{Method: "POST", Path: "/groups/{id}/badges"},
	{Method: "GET", Path: "/groups/{id}/badges/{badge_id}"},
	{Method: "GET", Path: "/namespaces/{id}"},
	{Method: "GET", Path: "/namespaces/{id}/exists"},
}

var tree = map[string]Kind{
	"acme": Group, "acme/web": Group, "acme/badges": Group, "acme/web/projects": Group,
	"acme/site": Project, "acme/web/labels": Project, "acme/web/site": Project,
}

func known(_ context.Context, path string) Kind { return tree[path] }

// aggregated returns a path as kube-apiserver forwards it.
func aggregated(t testing.TB, path string) string {
	t.Helper()
	parsed, err := url.Parse("https://cluster.example" + path)
	if err != nil {
		t.Fatal(err)
	}
	return (&url.URL{Path: parsed.Path}).EscapedPath()
}

func TestResolve(t *testing.T) {
	resolver := NewResolver(known, routes)
	for _, test := range []struct{ method, sent, want string }{
		// Unambiguous paths.
		{"GET", "/version", "/version"},
		{"GET", "/projects", "/projects"},
		{"GET", "/projects/17", "/projects/17"},
		{"GET", "/projects/17/labels", "/projects/17/labels"},
		{"GET", "/api/v4/projects/17/labels", "/projects/17/labels"},
		{"GET", "/projects/17/members/all", "/projects/17/members/all"},
		{"GET", "/projects/17/members/all/3", "/projects/17/members/all/3"},
		// Full paths.
		{"GET", "/projects/acme%2Fsite", "/projects/acme%2Fsite"},
		{"GET", "/projects/acme%2Fsite/labels", "/projects/acme%2Fsite/labels"},
		{"GET", "/api/v4/projects/acme%2Fweb%2Fsite/labels", "/projects/acme%2Fweb%2Fsite/labels"},
		{"GET", "/projects/acme%2Fweb%2Flabels/labels", "/projects/acme%2Fweb%2Flabels/labels"},
		{"GET", "/projects/acme%2Fweb%2Flabels", "/projects/acme%2Fweb%2Flabels"},
		{"GET", "/groups/acme%2Fweb", "/groups/acme%2Fweb"},
		{"GET", "/groups/acme%2Fweb/badges", "/groups/acme%2Fweb/badges"},
		{"GET", "/namespaces/acme%2Fweb/exists", "/namespaces/acme%2Fweb/exists"},
		// Paths that are encoded twice are decoded once and used without a lookup.
		{"GET", "/projects/acme%252Fsite/labels", "/projects/acme%2Fsite/labels"},
		{"GET", "/projects/no%252Fone/labels", "/projects/no%2Fone/labels"},
		{"GET", "/projects/acme%252Fsite/protected_branches/feat%252F%252A", "/projects/acme%2Fsite/protected_branches/feat%2F%2A"},
		// Parameters with slashes.
		{"GET", "/projects/1/protected_branches/feat%2F%2A", "/projects/1/protected_branches/feat%2F%2A"},
		{"PATCH", "/projects/acme%2Fsite/protected_branches/a%2Fb%2Fc", "/projects/acme%2Fsite/protected_branches/a%2Fb%2Fc"},
		{"GET", "/projects/1/protected_branches/100%25", "/projects/1/protected_branches/100%25"},
		{"GET", "/projects/1/protected_branches/50%2525", "/projects/1/protected_branches/50%2525"},
		{"GET", "/projects/1/protected_branches/v1.0%2B%20%C3%A4", "/projects/1/protected_branches/v1.0+%20%C3%A4"},
		{"GET", "/projects/1/repository/files/lib%2Fa.go", "/projects/1/repository/files/lib%2Fa.go"},
		{"GET", "/projects/1/repository/files/lib%2Fa.go/raw", "/projects/1/repository/files/lib%2Fa.go/raw"},
		{"HEAD", "/projects/1/repository/files/lib%2Fa.go/raw", "/projects/1/repository/files/lib%2Fa.go/raw"},
		{"HEAD", "/projects/acme%2Fsite/repository/files/lib%2Fa.go", "/projects/acme%2Fsite/repository/files/lib%2Fa.go"},
		{"HEAD", "/projects/acme%2Fweb%2Flabels/labels", "/projects/acme%2Fweb%2Flabels/labels"},
		{"GET", "/projects/1/repository/files/%2E%2E", "/projects/1/repository/files/%2E%2E"},
		{"GET", "/projects/1/jobs/artifacts/feat%2Fx/raw/out%2Fraw%2Fa", "/projects/1/jobs/artifacts/feat%2Fx/raw/out%2Fraw%2Fa"},
		// A group whose name is also a word of the API: the longest path wins, if its endpoint has the method.
		{"GET", "/groups/acme/badges", "/groups/acme%2Fbadges"},
		{"POST", "/groups/acme/badges", "/groups/acme/badges"},
		{"GET", "/groups/acme/badges/5", "/groups/acme/badges/5"},
		{"GET", "/groups/acme%2Fweb%2Fprojects/projects", "/groups/acme%2Fweb%2Fprojects/projects"},
		// A path that exists only for another method is found too, so that the answer is 405.
		{"POST", "/projects/acme%2Fsite/labels", "/projects/acme%2Fsite/labels"},
		// Unknown projects and groups resolve like existing ones, so that the answer does not reveal which ones exist.
		{"GET", "/projects/no%2Fone", "/projects/no%2Fone"},
		{"GET", "/projects/no%2Fone/labels", "/projects/no%2Fone/labels"},
		{"GET", "/projects/acme%2Fsite/nothing", "/projects/acme%2Fsite%2Fnothing"},
		{"GET", "/projects/no%2Fone/nothing", "/projects/no%2Fone%2Fnothing"},
		{"GET", "/projects/17/nothing", "/projects/17/nothing"},
		{"GET", "/nothing/at/all", "/nothing/at/all"},
		// The result has no empty segments and no unescaped dot segments, because a router would redirect such a path.
		{"GET", "//projects//17/labels/", "/projects/17/labels"},
		{"GET", "/projects/17/../18", "/projects/17/%2E%2E/18"},
		{"GET", "/", ""},
		{"GET", "/projects/1" + strings.Repeat("/x", 200), "/projects/1" + strings.Repeat("/x", 200)},
	} {
		if got, _ := resolver.Resolve(t.Context(), test.method, aggregated(t, test.sent)); got != test.want && decoded(got) != decoded(test.want) {
			t.Errorf("%s %s is %s, and is to be %s", test.method, test.sent, got, test.want)
		}
	}
}

func TestResolve_keepsEncodedPaths(t *testing.T) {
	resolver := NewResolver(known, routes)
	for _, path := range []string{"/projects/no%2Fone/labels", "/projects/acme%2Fsite/protected_branches/feat%2Fx", "/projects/1/repository/files/a%2Fraw"} {
		if got, _ := resolver.Resolve(t.Context(), "GET", path); got != path {
			t.Errorf("%s became %s", path, got)
		}
	}
}

// decoded returns a form of a path in which two paths are equal if their segments are equal.
func decoded(escaped string) string { return strings.Join(split(escaped), "\x00") }

// router finds the endpoint that door B serves a path with.
func router() *http.ServeMux {
	mux := http.NewServeMux()
	for _, r := range routes {
		mux.HandleFunc(r.Method+" "+r.Path, func(http.ResponseWriter, *http.Request) {})
	}
	return mux
}

// FuzzResolve resolves hostile paths. A router must serve the result without a redirect.
func FuzzResolve(f *testing.F) {
	for _, path := range []string{
		"/projects/acme/site/labels", "/api/v4/projects/1/protected_branches/feat/%2A", "/projects/acme%2Fsite/labels",
		"/groups/acme/badges/5", "//..//.", "/projects/%252F/%25", "/projects/1/repository/files/a/raw/raw", "/projects/%zz",
	} {
		f.Add("GET", path)
	}
	resolver, mux := NewResolver(known, routes), router()
	f.Fuzz(func(t *testing.T, method, path string) {
		if _, err := url.PathUnescape(path); err != nil || strings.ContainsAny(path, "?#") {
			return // no server receives such a path
		}
		got, _ := resolver.Resolve(t.Context(), method, path)
		if got == "" {
			return
		}
		plain, err := url.PathUnescape(got)
		if err != nil {
			t.Fatalf("%q became %q: %v", path, got, err)
		}
		r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
		r.URL = &url.URL{Path: plain, RawPath: got}
		if r.URL.EscapedPath() != got {
			t.Fatalf("%q became %q, which is not how %q is escaped", path, got, plain)
		}
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		if w.Code/100 == 3 {
			t.Fatalf("%q became %q, which is redirected to %q", path, got, w.Header().Get("Location"))
		}
	})
}

// FuzzRoundTrip sends a project and a branch through the aggregation layer and expects them back.
func FuzzRoundTrip(f *testing.F) {
	for _, branch := range []string{"main", "feat/*", "100%", "a%b", "a+b c", "ä/ö", "..", "protected_branches/x", "raw", "labels"} {
		f.Add(branch)
	}
	resolver, mux := NewResolver(known, routes), router()
	f.Fuzz(func(t *testing.T, branch string) {
		if branch == "" || !utf8.ValidString(branch) || strings.Count(branch, "/") > maxSegments-5 ||
			strings.HasPrefix(branch, "/") || strings.HasSuffix(branch, "/") || strings.Contains(branch, "//") {
			return // not a valid branch name
		}
		for _, id := range []string{"17", "acme%2Fsite", "acme%2Fweb%2Flabels", "acme%252Fsite"} {
			name := url.PathEscape(branch)
			if strings.Contains(id, "%25") {
				name = url.PathEscape(name)
			}
			got, _ := resolver.Resolve(t.Context(), "PATCH", aggregated(t, "/projects/"+id+"/protected_branches/"+name))
			r := httptest.NewRequest(http.MethodPatch, "/", http.NoBody)
			plain, _ := url.PathUnescape(got)
			r.URL = &url.URL{Path: plain, RawPath: got}
			_, pattern := mux.Handler(r)
			values := split(got)
			want := strings.Join([]string{"projects", strings.ReplaceAll(unescape(id), "%2F", "/"), "protected_branches", branch}, "\x00")
			if pattern != "PATCH /projects/{id}/protected_branches/{name}" || strings.Join(values, "\x00") != want {
				t.Fatalf("%s of %s became %s, for %q", branch, id, got, pattern)
			}
		}
	})
}

func TestResolve_reportsPolls(t *testing.T) {
	resolver := NewResolver(func(context.Context, string) Kind { return Project }, []Pattern{
		{Method: "POST", Path: "/jobs/request", Polls: true}, {Method: "GET", Path: "/jobs/{id}"}, {Method: "GET", Path: "/projects/{id}/events", Polls: true},
	})
	for request, want := range map[string]bool{
		"POST jobs/request": true, "POST api/v4/jobs/request": true, "GET jobs/request": false, "GET jobs/7": false, "POST jobs/7": false,
		"GET projects/a/b/events": true, "HEAD projects/7/events": true, "DELETE projects/7/events": false, "POST nothing": false, "POST ": false,
	} {
		method, path, _ := strings.Cut(request, " ")
		if _, got := resolver.Resolve(t.Context(), method, path); got != want {
			t.Errorf("%s: got %t", request, got)
		}
	}
}
