package apiserver

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/go-logr/logr/testr"
	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/githttp"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/audit/audittest"
	"github.com/forgeplane/forgeplane/internal/catalog/catalogtest/objects"
	"github.com/forgeplane/forgeplane/internal/change"
	"github.com/forgeplane/forgeplane/internal/hook"
	"github.com/forgeplane/forgeplane/internal/pipeline"
)

// newJobAccess returns the access of Git for jobs of acme/web by their tokens "running", "ended" and "blocked". The job token scope of acme/lib
// allows them, and that of acme/foreign as well, which their user cannot see. No other project allows them.
func newJobAccess(t *testing.T) *gitAccess {
	t.Helper()
	project := func(name string, id int64, v v1alpha1.Visibility) *v1alpha1.Project {
		return familytest.Project("acme", name, id, "acme", v)
	}
	members := project("members", 25, v1alpha1.VisibilityPublic)
	members.Spec.Features.Repository = v1alpha1.FeaturePrivate
	f := familytest.New(t,
		familytest.User("dora", 1), familytest.User("bill", 2, familytest.Blocked), familytest.Group("acme", "acme", 10, "", v1alpha1.VisibilityPublic),
		project("web", 20, v1alpha1.VisibilityPrivate), project("lib", 21, v1alpha1.VisibilityPrivate), project("closed", 22, v1alpha1.VisibilityPrivate),
		project("open", 23, v1alpha1.VisibilityPublic), project("foreign", 24, v1alpha1.VisibilityPrivate), members,
		familytest.InProject("acme", "web", "dora", v1alpha1.RoleMaintainer), familytest.InProject("acme", "lib", "dora", v1alpha1.RoleMaintainer),
		familytest.InProject("acme", "closed", "dora", v1alpha1.RoleMaintainer), familytest.InProject("acme", "open", "dora", v1alpha1.RoleMaintainer),
		familytest.InProject("acme", "members", "dora", v1alpha1.RoleMaintainer),
		objects.JobTokenScope("acme", "lib", v1alpha1.Reference{Name: "lib"}, v1alpha1.Reference{Name: "web"}),
		objects.JobTokenScope("acme", "foreign", v1alpha1.Reference{Name: "foreign"}, v1alpha1.Reference{Name: "web"}),
	)
	in, dora, bill := f.ProjectRow(20), f.UserRow("dora"), f.UserRow("bill")
	const prefix = pipeline.TokenPrefix
	return &gitAccess{catalog: f.Catalog, auth: auth.NewAuthenticator(f.Catalog, f.Clock, nil).Executing(nil, familytest.Jobs{
		prefix + "running": {ID: 7, In: in, User: dora, Status: pipeline.Running}, prefix + "ended": {In: in, User: dora, Status: pipeline.Success},
		prefix + "blocked": {In: in, User: bill, Status: pipeline.Running},
	})}
}

func TestJobToken_fetchesWhatScopesAllow(t *testing.T) {
	g, access := NewWithT(t), newJobAccess(t)
	const prefix = pipeline.TokenPrefix
	for token, want := range map[string]error{"ended": githttp.ErrUnauthenticated, "unknown": githttp.ErrUnauthenticated, "blocked": githttp.ErrBlocked} {
		_, err := access.Authenticate(t.Context(), "gitlab-ci-token", prefix+token)
		g.Expect(err).To(MatchError(want), token)
	}
	job, err := access.Authenticate(t.Context(), "gitlab-ci-token", prefix+"running")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(job.Scopes).To(ConsistOf("read_repository", "read_registry", "write_registry"), "it cannot push")
	for path, fetches := range map[string]bool{"web": true, "lib": true, "closed": false, "open": true, "foreign": false} {
		found, err := access.Find(t.Context(), "acme/"+path, job)
		if !fetches {
			g.Expect(err).To(MatchError(githttp.ErrNotFound), path)
			continue
		}
		g.Expect(err).NotTo(HaveOccurred(), path)
		g.Expect(found.CanFetch).To(BeTrue(), path)
	}
}

func TestJobToken_isAuditedIfItsScopeRefusesAFetch(t *testing.T) {
	const scope = "the job token scope of the project does not allow the project of the job"
	access := newJobAccess(t)
	server, err := githttp.New(githttp.Options{
		Authenticator: access, Projects: access, Hooks: &hook.Server{}, HooksDir: t.TempDir(), HookSocket: "none", Written: func(change.Event) {}, Log: testr.New(t),
	})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for _, tt := range []struct {
		token, path string
		status      int
		reason      string
	}{
		{"running", "closed", http.StatusNotFound, scope},
		{"running", "foreign", http.StatusNotFound, "the user of the job cannot see the project"},
		{"running", "members", http.StatusForbidden, scope},
		{"running", "none", http.StatusNotFound, ""},
		{"ended", "closed", http.StatusUnauthorized, ""},
	} {
		t.Run(tt.token+" "+tt.path, func(t *testing.T) {
			g, lines := NewWithT(t), audittest.Open(t)
			at := audit.At{Door: audit.Git, Address: func(*http.Request) string { return "203.0.113.7" }, Writes: githttp.Writes, Reads: auth.SignsInAsJob}
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/acme/"+tt.path+".git/info/refs?service=git-upload-pack", http.NoBody)
			r.SetBasicAuth("gitlab-ci-token", pipeline.TokenPrefix+tt.token)
			w := httptest.NewRecorder()
			lines.Handler(at, server).ServeHTTP(w, r)
			g.Expect(w.Code).To(Equal(tt.status), w.Body.String())
			if tt.reason == "" {
				g.Expect(lines.Events()).To(BeEmpty())
				return
			}
			g.Expect(lines.Events()).To(HaveExactElements(And(HaveField("Action", "fetch"), HaveField("Result", audit.Refused), HaveField("Job", int64(7)),
				HaveField("User.Username", "dora"), HaveField("About.Path", "acme/"+tt.path), HaveField("Reason", tt.reason))))
		})
	}
}
