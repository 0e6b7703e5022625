package router_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	urlpath "path"
	"strings"
	"testing"

	"github.com/forgeplane/forgeplane/apiserver/endpoint/router"
)

// served are methods and paths in which each kind of segment follows every other kind.
var served = strings.Fields(`
	GET /version GET /user GET /users POST /users GET /users/{id} PUT /users/{id} DELETE /users/{id} POST /users/{id}/block
	GET /groups POST /groups GET /groups/{id} PUT /groups/{id} DELETE /groups/{id} GET /groups/{id}/members GET /groups/{id}/members/all
	GET /groups/{id}/members/all/{user_id} GET /groups/{id}/members/{user_id} PUT /groups/{id}/members/{user_id}
	GET /projects POST /projects GET /projects/{id} PUT /projects/{id} DELETE /projects/{id} POST /projects/{id}/archive
	GET /projects/{id}/badges POST /projects/{id}/badges GET /projects/{id}/badges/render GET /projects/{id}/badges/{badge_id}
	PUT /projects/{id}/badges/{badge_id} DELETE /projects/{id}/badges/{badge_id}
	GET /projects/{id}/labels POST /projects/{id}/labels PUT /projects/{id}/labels DELETE /projects/{id}/labels PUT /projects/{id}/labels/promote
	GET /projects/{id}/labels/{label_id} PUT /projects/{id}/labels/{label_id} PUT /projects/{id}/labels/{label_id}/promote
	POST /projects/{id}/labels/{label_id}/subscribe POST /projects/{id}/labels/{label_id}/unsubscribe
	GET /projects/{id}/members GET /projects/{id}/members/all GET /projects/{id}/members/all/{user_id} GET /projects/{id}/members/{user_id}
	GET /projects/{id}/protected_branches POST /projects/{id}/protected_branches GET /projects/{id}/protected_branches/{name}
	PATCH /projects/{id}/protected_branches/{name} DELETE /projects/{id}/protected_branches/{name}
	GET /projects/{id}/repository/archive GET /projects/{id}/repository/archive.tar GET /projects/{id}/repository/archive.tar.gz
	GET /projects/{id}/repository/archive.zip GET /projects/{id}/repository/blobs/{sha} GET /projects/{id}/repository/blobs/{sha}/raw
	GET /projects/{id}/repository/branches GET /projects/{id}/repository/branches/{branch} GET /projects/{id}/repository/tree
	GET /projects/{id}/repository/files/{file_path} GET /projects/{id}/repository/files/{file_path}/raw
	POST /projects/{id}/repository/files/{file_path} GET /projects/{id}/repository/commits/{sha}/diff`)

// routers returns both kinds of routers with the served paths.
func routers() (*router.Router[string], *http.ServeMux) {
	r, mux := router.New[string](), http.NewServeMux()
	for i := 0; i < len(served); i += 2 {
		r.Add(served[i], served[i+1], served[i]+" "+served[i+1])
		names := router.Parameters(served[i+1])
		mux.HandleFunc(served[i]+" "+served[i+1], func(_ http.ResponseWriter, r *http.Request) {
			values := make(map[string]string, len(names))
			for _, name := range names {
				values[name] = r.PathValue(name)
			}
		})
	}
	return r, mux
}

func TestRouter_findsSameRouteAsServeMux(t *testing.T) {
	r, mux := routers()
	random := rand.New(rand.NewPCG(1, 2))
	segments := []string{
		"projects", "groups", "users", "user", "labels", "members", "all", "promote", "repository", "files", "raw", "archive", "archive.tar",
		"archive%2Etar", "%70rojects", "%6Cabels", "badges", "render", "branches", "17", "team%2Fsite", "a%252Fb", "%25", "v1%2E0", "x%20y",
		"%2E%2E", "*", "%2A", "%7Bid%7D", "a+b", "%C3%A4", "subscribe", "blobs", "commits", "diff", "version",
	}
	methods := []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND"}
	one := func(of []string) string { return of[random.IntN(len(of))] }
	found := map[string]bool{}
	for range 50_000 {
		at := 2 * random.IntN(len(served)/2)
		method := served[at]
		if random.IntN(3) == 0 {
			method = one(methods)
		}
		var path strings.Builder
		for _, segment := range strings.Split(served[at+1], "/")[1:] {
			if strings.HasPrefix(segment, "{") || random.IntN(10) == 0 {
				segment = one(segments)
			}
			path.WriteString("/" + segment)
		}
		if random.IntN(10) == 0 {
			path.WriteString("/" + one(segments))
		}
		address, err := url.Parse(path.String())
		if err != nil {
			t.Fatal(err)
		}
		request := &http.Request{Method: method, URL: address}
		_, want := mux.Handler(request)
		got, parameters, ok := r.Find(method, address.EscapedPath())
		if ok != (want != "") || got != want {
			t.Fatalf("%s %s: got %q, ServeMux has %q", method, path.String(), got, want)
		}
		if !ok {
			continue
		}
		found[got] = true
		mux.ServeHTTP(nil, request)
		for name, value := range parameters {
			if request.PathValue(name) != value {
				t.Fatalf("%s %s: %s is %q, of ServeMux %q", method, path.String(), name, value, request.PathValue(name))
			}
		}
	}
	if len(found) != len(served)/2 {
		t.Errorf("only %d of %d were found at all", len(found), len(served)/2)
	}
}

func TestRouter_prefersWordsToParametersToWildcards(t *testing.T) {
	r := router.New[string]()
	for _, pattern := range []string{
		"GET /jobs/{job_id}/artifacts", "GET /jobs/{job_id}/artifacts/{path...}", "GET /jobs/artifacts/{ref...}/download",
		"GET /jobs/artifacts/{ref...}/raw/{path...}", "POST /jobs/{job_id}/artifacts/keep", "DELETE /jobs/{id}/artifacts", "POST /store/{id}/",
	} {
		method, path, _ := strings.Cut(pattern, " ")
		r.Add(method, path, pattern)
	}
	for _, tt := range []struct {
		method, path, want string
		parameters         map[string]string
	}{
		{"GET", "/jobs/7/artifacts", "GET /jobs/{job_id}/artifacts", map[string]string{"job_id": "7"}},
		{"HEAD", "/jobs/7/artifacts", "GET /jobs/{job_id}/artifacts", map[string]string{"job_id": "7"}},
		{"DELETE", "/jobs/7/artifacts", "DELETE /jobs/{id}/artifacts", map[string]string{"id": "7"}},
		{"GET", "/jobs/7/artifacts/a/b.txt", "GET /jobs/{job_id}/artifacts/{path...}", map[string]string{"job_id": "7", "path": "a/b.txt"}},
		{"GET", "/jobs/7/artifacts/a%2Fb%2Etxt", "GET /jobs/{job_id}/artifacts/{path...}", map[string]string{"job_id": "7", "path": "a/b.txt"}},
		{"GET", "/jobs/7/artifacts/keep", "GET /jobs/{job_id}/artifacts/{path...}", map[string]string{"job_id": "7", "path": "keep"}},
		{"POST", "/jobs/7/artifacts/keep", "POST /jobs/{job_id}/artifacts/keep", map[string]string{"job_id": "7"}},
		{"POST", "/jobs/7/artifacts/other", "", nil},
		{"GET", "/jobs/7/artifacts/", "", nil},
		{"GET", "/jobs/7/artifacts/a/", "", nil},
		{"GET", "/jobs/7%2F8/artifacts", "GET /jobs/{job_id}/artifacts", map[string]string{"job_id": "7/8"}},
		{"GET", "/jobs/artifacts/main/download", "GET /jobs/artifacts/{ref...}/download", map[string]string{"ref": "main"}},
		{"GET", "/jobs/artifacts/feature%2Fx/download", "GET /jobs/artifacts/{ref...}/download", map[string]string{"ref": "feature/x"}},
		{"GET", "/jobs/artifacts/100%25/download", "GET /jobs/artifacts/{ref...}/download", map[string]string{"ref": "100%"}},
		{"GET", "/jobs/artifacts/a%252Fb/download", "GET /jobs/artifacts/{ref...}/download", map[string]string{"ref": "a%2Fb"}},
		{"GET", "/jobs/artifacts/main/raw/x/y", "GET /jobs/artifacts/{ref...}/raw/{path...}", map[string]string{"ref": "main", "path": "x/y"}},
		{"GET", "/jobs/artifacts/feature/x/download", "GET /jobs/artifacts/{ref...}/download", map[string]string{"ref": "feature/x"}},
		{"GET", "/jobs/%61rtifacts/feature/%78%2Fy/raw/x/y", "GET /jobs/artifacts/{ref...}/raw/{path...}", map[string]string{"ref": "feature/x/y", "path": "x/y"}},
		{"GET", "/jobs/artifacts/feature/raw/raw/y", "GET /jobs/artifacts/{ref...}/raw/{path...}", map[string]string{"ref": "feature", "path": "raw/y"}},
		{"POST", "/jobs/artifacts/feature/x/download", "", nil},
		{"GET", "/jobs/artifacts/feature//download", "", nil},
		{"GET", "/jobs/artifacts/feature/../download", "", nil},
		// A job named artifacts: only the following segments distinguish it from a ref.
		{"GET", "/jobs/artifacts/artifacts/x/download", "GET /jobs/{job_id}/artifacts/{path...}", map[string]string{"job_id": "artifacts", "path": "x/download"}},
		{"GET", "/jobs/artifacts/artifacts/download", "GET /jobs/artifacts/{ref...}/download", map[string]string{"ref": "artifacts"}},
		{"GET", "/jobs/%61rtifacts/main/download", "GET /jobs/artifacts/{ref...}/download", map[string]string{"ref": "main"}},
		{"POST", "/store/1/", "POST /store/{id}/", map[string]string{"id": "1"}},
		{"POST", "/store/1", "", nil},
		{"POST", "/store//", "", nil},
		{"GET", "/jobs/7/artifacts/../x", "", nil},
		{"GET", "/jobs/7/artifacts/./x", "", nil},
		{"GET", "/jobs/7/artifacts/a//x", "", nil},
		{"GET", "//jobs/7/artifacts", "", nil},
		{"GET", "/jobs/7/artifacts/%2E%2E/x", "GET /jobs/{job_id}/artifacts/{path...}", map[string]string{"job_id": "7", "path": "../x"}},
		{"GET", "/", "", nil},
		{"GET", "", "", nil},
		{"GET", "/jobs/%/artifacts", "", nil},
		{"GET", "/jobs/%zz/artifacts", "", nil},
	} {
		value, parameters, ok := r.Find(tt.method, tt.path)
		if value != tt.want || ok != (tt.want != "") || !maps.Equal(parameters, tt.parameters) {
			t.Errorf("%s %s: got %q %v %v", tt.method, tt.path, value, parameters, ok)
		}
	}
}

func TestRouter_panicsOnAmbiguousOrInvalidPatterns(t *testing.T) {
	for _, patterns := range [][]string{
		{"/a/{x}", "/a/{y}"}, {"/a/{x...}", "/a/{y...}"}, {"/a", "/a"}, {"/a{x}"}, {"/{x}b"}, {"/{x"}, {"/{}"}, {"/{...}"}, {"/{x...}/{y}"}, {"/{x...}/b/{y...}/c"}, {"/a/{x...}/b", "/a/{y}/b"}, {"/a/*"}, {"/{x:[0-9]+}"},
	} {
		t.Run(fmt.Sprint(patterns), func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("nothing panicked")
				}
			}()
			r := router.New[int]()
			for _, p := range patterns {
				r.Add(http.MethodGet, p, 0)
			}
		})
	}
}

// BenchmarkFind compares a lookup, parameters included, with a lookup by http.ServeMux after a check that the path is clean, because
// ServeMux redirects paths that are not.
func BenchmarkFind(b *testing.B) {
	r, mux := routers()
	for _, sent := range []string{"/version", "/projects/17/labels/3", "/projects/team%2Fsite/repository/files/lib%2Fmain%2Ego/raw", "/projects/17/nothing"} {
		address, err := url.Parse(sent)
		if err != nil {
			b.Fatal(err)
		}
		b.Run("router"+sent, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r.Find(http.MethodGet, address.EscapedPath())
			}
		})
		b.Run("ServeMux"+sent, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if escaped := address.EscapedPath(); urlpath.Clean(escaped) == escaped {
					mux.ServeHTTP(nowhere{}, &http.Request{Method: http.MethodGet, URL: address})
				}
			}
		})
	}
}

// nowhere discards the 404 of ServeMux.
type nowhere struct{}

func (nowhere) Header() http.Header         { return http.Header{} }
func (nowhere) Write(b []byte) (int, error) { return len(b), nil }
func (nowhere) WriteHeader(int)             {}
