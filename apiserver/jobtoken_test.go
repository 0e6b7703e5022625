package apiserver

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/githttp"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/internal/catalog/catalogtest/objects"
	"github.com/forgeplane/forgeplane/internal/pipeline"
)

func TestJobToken_fetchesWhatScopesAllow(t *testing.T) {
	g := NewWithT(t)
	project := func(name string, id int64, v v1alpha1.Visibility) *v1alpha1.Project {
		return familytest.Project("acme", name, id, "acme", v)
	}
	f := familytest.New(t,
		familytest.User("dora", 1), familytest.User("bill", 2, familytest.Blocked), familytest.Group("acme", "acme", 10, "", v1alpha1.VisibilityPublic),
		project("web", 20, v1alpha1.VisibilityPrivate), project("lib", 21, v1alpha1.VisibilityPrivate), project("closed", 22, v1alpha1.VisibilityPrivate),
		project("open", 23, v1alpha1.VisibilityPublic), project("foreign", 24, v1alpha1.VisibilityPrivate),
		familytest.InProject("acme", "web", "dora", v1alpha1.RoleMaintainer), familytest.InProject("acme", "lib", "dora", v1alpha1.RoleMaintainer),
		familytest.InProject("acme", "closed", "dora", v1alpha1.RoleMaintainer), familytest.InProject("acme", "open", "dora", v1alpha1.RoleMaintainer),
		objects.JobTokenScope("acme", "lib", v1alpha1.Reference{Name: "lib"}, v1alpha1.Reference{Name: "web"}),
		objects.JobTokenScope("acme", "foreign", v1alpha1.Reference{Name: "foreign"}, v1alpha1.Reference{Name: "web"}),
	)
	in, dora, bill := f.ProjectRow(20), f.UserRow("dora"), f.UserRow("bill")
	const prefix = pipeline.TokenPrefix
	access := &gitAccess{catalog: f.Catalog, auth: auth.NewAuthenticator(f.Catalog, f.Clock, nil).Executing(nil, familytest.Jobs{
		prefix + "running": {In: in, User: dora, Status: pipeline.Running}, prefix + "ended": {In: in, User: dora, Status: pipeline.Success},
		prefix + "blocked": {In: in, User: bill, Status: pipeline.Running},
	})}
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
