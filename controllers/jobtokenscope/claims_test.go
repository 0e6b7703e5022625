package jobtokenscope_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/internal/jobtoken"
	"github.com/forgeplane/forgeplane/test/forge"
)

// The project of a job token scope cannot change, but a path can later lead to another project.
var _ = Describe("A job token scope:", func() {
	forge.DescribeHolder("the scope of a project that gets the path that an older scope names", func() *forge.Forge { return f }, func() forge.Contest {
		old := forge.JobTokenScope("old").Of(website).Open().Build()
		old.Spec.ProjectRef = byPath("acme/next")
		return forge.Contest{
			Old: old, Young: forge.JobTokenScope("young").Of(website).Build(), Words: "the job token scope of acme/next",
			Seize: func() { f.Change(website, func() { website.Spec.Path = "next" }) },
			Holder: func(ctx context.Context) (client.Object, error) {
				s, err := f.Catalog.ProjectScope(ctx, website)
				if err != nil {
					return nil, err
				}
				return jobtoken.ScopeOf(ctx, f.Catalog, s)
			},
		}
	})
})
