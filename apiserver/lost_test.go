package apiserver

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/audit/audittest"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/git"
)

// A client that took a lost repository for an empty one could delete its copy.
func TestRepository_isUnavailableOnceLost(t *testing.T) {
	t.Parallel()
	const want = `{"message":"The repository is not available. Please try again later, and tell an administrator if the problem persists."}`
	for name, lose := range map[string]func(w *world, shard *v1alpha1.RepositoryStorage) error{
		"the repository is gone": func(w *world, _ *v1alpha1.RepositoryStorage) error { return os.RemoveAll(w.repository.Dir()) },
		"the repository is broken": func(w *world, _ *v1alpha1.RepositoryStorage) error {
			return os.RemoveAll(filepath.Join(w.repository.Dir(), "objects"))
		},
		"the volume is gone":        func(_ *world, shard *v1alpha1.RepositoryStorage) error { return os.RemoveAll(shard.Spec.Path) },
		"the shard is not declared": func(w *world, shard *v1alpha1.RepositoryStorage) error { return w.store.Delete(t.Context(), shard) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, v1alpha1.VisibilityPrivate)
			shard, err := catalog.Get[*v1alpha1.RepositoryStorage](t.Context(), w.store.world.Catalog(), "", "shard")
			if err == nil {
				err = lose(w, shard)
			}
			if err != nil {
				t.Fatal(err)
			}
			asked, lines := 0, audittest.Open(t)
			audited := lines.Handler(audit.At{Door: audit.REST, Address: func(*http.Request) string { return "203.0.113.9" }}, w.handler)
			for _, s := range samples(w.handler) {
				if s.note != "" || !strings.HasPrefix(s.endpoint.Path(), "/projects/{id}/repository/") {
					continue
				}
				asked++
				r := httptest.NewRequestWithContext(t.Context(), s.endpoint.Method(), s.target(1), strings.NewReader(s.text(1)))
				r.Header.Set("Content-Type", "application/json")
				r.Header.Set("PRIVATE-TOKEN", familytest.Value("admin"))
				answer := httptest.NewRecorder()
				audited.ServeHTTP(answer, r)
				body := strings.TrimSpace(answer.Body.String())
				if answer.Code != http.StatusServiceUnavailable || r.Method != http.MethodHead && body != want {
					t.Errorf("%s answered %d %s", s, answer.Code, body)
				}
			}
			for _, e := range lines.Events() {
				if e.Result != audit.Failed || e.Reason != git.Unavailable {
					t.Errorf("%s: the audit says %s, %q", e.Action, e.Result, e.Reason)
				}
			}
			if asked < 20 {
				t.Errorf("only %d endpoints were asked", asked)
			}
		})
	}
}
