package containers_test

import (
	"net/http"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/internal/catalog/catalogtest/objects"
	"github.com/forgeplane/forgeplane/internal/feature"
	"github.com/forgeplane/forgeplane/internal/pipeline"
)

// Tokens of jobs of acme/app. The job names its user, except for the last one, which has ended.
const (
	ofMary = pipeline.TokenPrefix + "mary"
	ofDan  = pipeline.TokenPrefix + "dan"
	ofGus  = pipeline.TokenPrefix + "gus"
	ended  = pipeline.TokenPrefix + "ended"
)

// newJobs is newWorld with jobs of acme/app. Their job tokens can use the private project acme/lib (22), whose repository is 4.
func newJobs(t *testing.T) *world {
	t.Helper()
	lib := familytest.Project("acme", "lib", 22, "acme", v1alpha1.VisibilityPrivate)
	lib.Spec.Features.ContainerRegistry = v1alpha1.FeatureEnabled
	w := newWorld(t, lib, objects.JobTokenScope("acme", "lib", v1alpha1.Reference{Name: "lib"}, v1alpha1.Reference{Name: "app"}))
	if _, err := w.Images.Records.Ensure(t.Context(), 22, w.ProjectRow(22).UID, ""); err != nil {
		t.Fatal(err)
	}
	all, in := familytest.Jobs{}, w.ProjectRow(20)
	for token, user := range map[string]string{ofMary: "mary", ofDan: "dan", ofGus: "gus", ended: "mary"} {
		all[token] = pipeline.Job{In: in, User: w.UserRow(user), Status: pipeline.Running}
	}
	last := all[ended]
	last.Status = pipeline.Success
	all[ended] = last
	w.Authenticator.Executing(nil, all)
	return w
}

// job sends a request with a job token in the header.
func (w *world) job(token, request string) familytest.Answer {
	w.Header = http.Header{"Job-Token": {token}}
	defer func() { w.Header = nil }()
	return w.As("", request, "")
}

func TestFamily_acceptsJobTokensForTheirOwnProject(t *testing.T) {
	g, w := NewWithT(t), newJobs(t)
	w.Feature(feature.JobTokenRegistry, true)
	w.push(t, "1.0", "{}")
	const one = "/projects/20/registry/repositories/2"
	for _, tt := range []struct{ token, request, want string }{
		{ofGus, "GET /projects/20/registry/repositories", "200 [{"},
		{ofGus, "GET /projects/acme%2Fapp/registry/repositories", "200 [{"},
		{ofGus, "GET /registry/repositories/2", "200 {"},
		{ofGus, "GET " + one + "/tags", "200 [{"},
		{ofGus, "GET " + one + "/tags/1.0", "200 {"},
		{ofGus, "DELETE " + one + "/tags/1.0", `403 {"message":"403 Forbidden"}`},
		{ended, "GET /projects/20/registry/repositories", `401 {"error":"invalid_token"`},
		{pipeline.TokenPrefix + "unknown", "GET /projects/20/registry/repositories", `401 {"message":"401 Unauthorized"}`},
		{ofMary, "GET /projects/22/registry/repositories", `404 {"message":"404 Project Not Found"}`},
		{ofMary, "DELETE /projects/22/registry/repositories/4", `404 {"message":"404 Project Not Found"}`},
		{ofMary, "GET /registry/repositories/4", `404 {"message":"404 Not found"}`},
		{ofMary, "GET /registry/repositories/99", `404 {"message":"404 Not found"}`},
		{ofMary, "GET /groups/10/registry/repositories", `401 {"message":"401 Unauthorized"}`},
		{ofDan, "DELETE " + one, `403 {"message":"403 Forbidden"}`},
		{ofDan, "DELETE " + one + "/tags/1.0", "200 200"},
		{ofMary, "DELETE " + one + "/tags?name_regex_delete=x", "202 202"},
		{ofMary, "DELETE " + one, "202 202"},
	} {
		g.Expect(w.job(tt.token, tt.request).String()).To(HavePrefix(tt.want), tt.token+" "+tt.request)
	}
	g.Expect(w.As("", "GET /projects/20/registry/repositories?job_token="+ofMary, "").Code).To(Equal(http.StatusNotFound), "only the header is for it")
}

func TestFamily_ignoresJobTokensUnlessFeatureIsOn(t *testing.T) {
	g, w := NewWithT(t), newJobs(t)
	for request, want := range map[string]int{
		"GET /projects/20/registry/repositories": http.StatusNotFound, "GET /registry/repositories/2": http.StatusUnauthorized,
		"DELETE /projects/20/registry/repositories/2": http.StatusUnauthorized,
	} {
		g.Expect(w.job(ofMary, request).Code).To(Equal(want), request)
	}
	w.Feature(feature.JobTokenRegistry, true)
	g.Expect(w.job(ofMary, "GET /registry/repositories/2").Code).To(Equal(http.StatusOK))
	w.Feature(feature.JobTokenRegistry, false)
	g.Expect(w.job(ofMary, "GET /registry/repositories/2").Code).To(Equal(http.StatusUnauthorized))
}
