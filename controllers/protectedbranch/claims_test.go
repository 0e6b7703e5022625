package protectedbranch_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/protection"
	"github.com/forgeplane/forgeplane/test/forge"
)

// The target and the branch cannot change, but a path can later lead to another project.
var _ = Describe("A protected branch:", func() {
	forge.DescribeHolder("a branch of a project that gets the path that an older protection names", func() *forge.Forge { return f }, func() forge.Contest {
		old := forge.ProtectedBranch("main").Named("old").Of(website).Push(forge.Role(v1alpha1.AccessDeveloper)).ForcePush().Build()
		old.Spec.ProjectRef = byPath("acme/next")
		return forge.Contest{
			Old: old, Young: forge.ProtectedBranch("main").Named("young").Of(website).Build(), Words: "the protection of main in acme/next",
			Seize: func() { f.Change(website, func() { website.Spec.Path = "next" }) },
			Holder: func(ctx context.Context) (client.Object, error) {
				s, err := f.Catalog.ProjectScope(ctx, website)
				if err != nil {
					return nil, err
				}
				return protection.Holder(ctx, f.Catalog, s, "main")
			},
		}
	})
})
