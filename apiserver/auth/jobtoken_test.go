package auth_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/audit/audittest"
	"github.com/forgeplane/forgeplane/internal/feature"
	"github.com/forgeplane/forgeplane/internal/pipeline"
)

// Tokens of job 7 of acme/web, job 8 that has ended, and job 9 of a project that was deleted.
const (
	running = pipeline.TokenPrefix + "running"
	ended   = pipeline.TokenPrefix + "ended"
	orphan  = pipeline.TokenPrefix + "orphan"
)

// newJobs serves endpoints for jobs of acme/web (20), whose user dora is a Developer of all projects of acme. No job token scope allows them
// to use the private acme/lib (21) and the public acme/open (22). dora cannot see bolt/hidden (23).
func newJobs(t *testing.T) *familytest.Forge {
	t.Helper()
	f := familytest.New(t, familytest.User("dora", 1), familytest.Group("acme", "acme", 10, "", v1alpha1.VisibilityPublic), familytest.Group("bolt", "bolt", 11, "", v1alpha1.VisibilityPrivate),
		familytest.Project("acme", "web", 20, "acme", v1alpha1.VisibilityPrivate), familytest.Project("acme", "lib", 21, "acme", v1alpha1.VisibilityPrivate),
		familytest.Project("acme", "open", 22, "acme", v1alpha1.VisibilityPublic), familytest.Project("bolt", "hidden", 23, "bolt", v1alpha1.VisibilityPrivate),
		familytest.InGroup("acme", "acme", "dora", v1alpha1.RoleDeveloper),
	)
	job := pipeline.Job{ID: 7, In: f.ProjectRow(20), User: f.UserRow("dora"), Status: pipeline.Running}
	last, lost := job, job
	last.ID, last.Status = 8, pipeline.Success
	lost.ID, lost.In.UID = 9, "deleted"
	f.Authenticator.Executing(nil, familytest.Jobs{running: job, ended: last, orphan: lost})
	f.Feature(feature.JobTokenRegistry, true)
	done := func(context.Context, auth.Project, *endpoint.None) (endpoint.None, error) {
		return endpoint.None{}, nil
	}
	return f.Serve(endpoint.Table{
		endpoint.Get("/projects/{id}/file", done).Needs(auth.ReadPipelines).Anonymous(endpoint.Served).Takes(endpoint.AccessToken, endpoint.JobToken).
			Carries(endpoint.JobToken, "job_token"),
		endpoint.Get("/projects/{id}/secret", done).Needs(auth.UpdatePipelines).Takes(endpoint.AccessToken, endpoint.JobToken),
		endpoint.Get("/projects/{id}/images", done).Needs(auth.ReadProject).TakesWhile(feature.JobTokenRegistry, endpoint.JobToken),
		endpoint.Post("/projects/{id}/trigger", done).Needs(auth.CreatePipelines).Takes(endpoint.TriggerToken, endpoint.JobToken).Carries(endpoint.TriggerToken, "token"),
	})
}

func TestJobToken_isAuditedIfItsScopeRefuses(t *testing.T) {
	const scope, user = "the job token scope of the project does not allow the project of the job", "the user of the job cannot see the project"
	f := newJobs(t)
	for _, tt := range []struct {
		token, request string
		status         int
		// want is the line: the job, the user, the project and the reason; "" without a line.
		want string
	}{
		{running, "GET /projects/20/file", 200, ""},
		{running, "GET /projects/20/secret", 200, ""},
		{running, "POST /projects/20/trigger", 201, "done 7 dora acme/web "},
		{running, "GET /projects/21/file", 404, "refused 7 dora acme/lib " + scope},
		{running, "GET /projects/21/file?job=a%2Fb", 404, "refused 7 dora acme/lib " + scope},
		{running, "POST /projects/21/trigger", 404, "refused 7 dora acme/lib " + scope},
		{running, "GET /projects/22/file", 200, ""},
		{running, "GET /projects/22/secret", 403, "refused 7 dora acme/open " + scope},
		{running, "POST /projects/22/trigger", 404, "refused 7 dora acme/open " + scope},
		{running, "GET /projects/23/file", 404, "refused 7 dora bolt/hidden " + user},
		{running, "GET /projects/22/images", 404, "refused 7 dora acme/open over REST, a job token opens only the container registry of its own project"},
		{running, "GET /projects/99/file", 404, ""},
		{orphan, "GET /projects/20/file", 404, "refused 9 dora acme/web the project of the job does not exist any more"},
		{ended, "GET /projects/21/file", 401, ""},
		{ended, "POST /projects/21/trigger", 401, "refused 8   "},
	} {
		t.Run(tt.request, func(t *testing.T) {
			g, lines := NewWithT(t), audittest.Open(t)
			at := audit.At{Door: audit.REST, Address: func(*http.Request) string { return "203.0.113.7" }, Reads: auth.CarriesJobToken}
			method, target, _ := strings.Cut(tt.request, " ")
			r := httptest.NewRequestWithContext(t.Context(), method, target, http.NoBody)
			r.Header.Set("JOB-TOKEN", tt.token)
			w := httptest.NewRecorder()
			lines.Handler(at, f).ServeHTTP(w, r)
			g.Expect(w.Code).To(Equal(tt.status), w.Body.String())
			var got []string
			for _, e := range lines.Events() {
				name, path := "", ""
				if e.User != nil {
					name = e.User.Username
				}
				if e.About != nil {
					path = e.About.Path
				}
				got = append(got, fmt.Sprintf("%s %d %s %s %s", e.Result, e.Job, name, path, e.Reason))
			}
			g.Expect(strings.Join(got, "\n")).To(Equal(tt.want))
		})
	}
}

func TestCarriesJobToken_knowsAllPlaces(t *testing.T) {
	header := http.Header{"Job-Token": {running}}
	for _, tt := range []struct {
		target, body string
		header       http.Header
		want         bool
	}{
		{"/projects/20/file", "", nil, false},
		{"/projects/20/file?job=build", "", nil, false},
		{"/projects/20/file", "", header, true},
		{"/projects/20/file?job_token=" + running, "", nil, true},
		{"/projects/20/file?%6Aob_token=" + running, "", nil, true},
		{"/projects/20/file", `{"job_token":"` + running + `"}`, nil, true},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, tt.target, strings.NewReader(tt.body))
		r.Header = tt.header
		if got := auth.CarriesJobToken(r); got != tt.want {
			t.Errorf("%s %v %s: %t", tt.target, tt.header, tt.body, got)
		}
	}
}
