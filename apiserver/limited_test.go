package apiserver

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/ratelimit"
)

// TestCostlyEndpoints_areServedFiveTimesAMinute counts archives of all formats together, and only large files.
func TestCostlyEndpoints_areServedFiveTimesAMinute(t *testing.T) {
	w := newWorld(t, v1alpha1.VisibilityPublic)
	c := history(t)
	c.Commit(t, "large", strings.Repeat("0123456789abcde\n", 10<<16+1))
	c.Git(t, "push", "--quiet", "--mirror", w.repository.Dir())
	large := "/projects/10/repository/blobs/" + c.Git(t, "rev-parse", "HEAD:large")
	limited := ratelimit.New(ratelimit.Options{Endpoints: true, Clock: clocktesting.NewFakePassiveClock(noon)}).Handler(w.handler)
	for e := range w.handler.Endpoints() {
		if limit, what := e.Limit(); limit > 0 && !slices.Contains(Costly(), what) {
			t.Errorf("%s %s is limited for %q, which no operator can change", e.Method(), e.Path(), what)
		}
		for _, l := range e.LimitsBy() {
			if !slices.Contains(Costly(), l.What) {
				t.Errorf("%s is limited for %q, which no operator can change", e, l.What)
			}
		}
	}
	get := func(path string) string {
		answer := httptest.NewRecorder()
		limited.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody))
		if answer.Code == http.StatusOK {
			return "200"
		}
		return answer.Body.String()
	}
	for what, paths := range map[string][]string{
		"archive":   {"/projects/10/repository/archive", "/projects/10/repository/archive.zip", "/projects/10/repository/archive.bz2"},
		"blob":      {large},
		"changelog": {"/projects/10/repository/changelog?version=1.1.0"},
	} {
		for i := range 7 {
			want := "200"
			if i >= 5 {
				want = `{"message":{"error":"This ` + what + ` has been requested too many times. Try again later."}}`
			}
			if got := get(paths[i%len(paths)]); got != want {
				t.Errorf("%s, the %dth time: %.200s, want %s", what, i+1, got, want)
			}
		}
	}
	for range 10 {
		for _, path := range []string{"/projects/10/repository/blobs/" + blobID, large + "/raw"} {
			if got := get(path); got != "200" {
				t.Errorf("%s: %.200s", path, got)
			}
		}
	}
}
