package auth_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/go-logr/logr"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/internal/repository"
)

// pending are repositories that are still being created.
type pending struct{}

func (pending) Await(context.Context, *v1alpha1.Project) (*v1alpha1.Project, error) {
	return nil, repository.ErrPending
}

func TestGuard_waitsForTheRepositoryOfANewProject(t *testing.T) {
	f := familytest.New(t, familytest.Group("acme", "acme", 10, "", v1alpha1.VisibilityPublic),
		familytest.Project("acme", "web", 20, "acme", v1alpha1.VisibilityPublic))
	project := func(context.Context, auth.Project, *struct{}) (endpoint.None, error) { return endpoint.None{}, nil }
	table := endpoint.Table{
		endpoint.Get("/projects/{id}", project).Needs(auth.ReadProject).Anonymous(endpoint.Served),
		endpoint.Get("/projects/{id}/repository/tree", project).Needs(auth.ReadCode).Anonymous(endpoint.Served),
	}
	for _, tt := range []struct {
		repositories auth.Repositories
		path         string
		want         int
	}{
		{pending{}, "/projects/20/repository/tree", http.StatusServiceUnavailable},
		{pending{}, "/projects/20", http.StatusOK},
		{nil, "/projects/20/repository/tree", http.StatusOK},
	} {
		guard := auth.NewGuard(auth.NewAuthenticator(f.Catalog, f.Clock, administrators{}), f.Catalog, tt.repositories)
		h := endpoint.NewHandler(endpoint.Options{Guard: guard, Log: logr.Discard(), BaseURL: &url.URL{}}, table)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, tt.path, http.NoBody))
		if w.Code != tt.want {
			t.Errorf("%s with %T: got %d %s, want %d", tt.path, tt.repositories, w.Code, w.Body, tt.want)
		}
	}
}

func TestSudo_isRefusedForKubernetesIdentities(t *testing.T) {
	f := familytest.New(t, familytest.User("mary", 2))
	instance := func(context.Context, auth.Instance, *struct{}) (endpoint.None, error) { return endpoint.None{}, nil }
	guard := auth.NewGuard(auth.NewAuthenticator(f.Catalog, f.Clock, administrators{}), f.Catalog, nil)
	h := endpoint.NewHandler(endpoint.Options{Guard: guard, Log: logr.Discard(), BaseURL: &url.URL{}},
		endpoint.Table{endpoint.Get("/version", instance).Anonymous(endpoint.Served)})
	for target, want := range map[string]int{"/version": http.StatusOK, "/version?sudo=mary": http.StatusForbidden} {
		r := httptest.NewRequest(http.MethodGet, target, http.NoBody)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r.WithContext(auth.WithIdentity(r.Context(), "administrator")))
		if w.Code != want || want == http.StatusForbidden && !strings.Contains(w.Body.String(), "personal access token to use sudo") {
			t.Errorf("%s: got %d %s, want %d", target, w.Code, w.Body, want)
		}
	}
}
