package membership_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/test/forge"
)

// The claims of a membership are immutable, but a path in it can later lead to another group or user.
var _ = Describe("A membership:", func() {
	contest := func(claim func(m *v1alpha1.Membership), seize func(ada *v1alpha1.User, web *v1alpha1.Group)) func() forge.Contest {
		return func() forge.Contest {
			ada, web := forge.User("ada").Build(), forge.Group("web").In(namespace).Build()
			f.Create(ada, web)
			f.ExpectReady(ada, web)
			old := forge.Membership(ada).In(web).Named("old").As(v1alpha1.RoleOwner).Build()
			claim(old)
			return forge.Contest{
				Old: old, Young: forge.Membership(ada).In(web).Named("young").Build(), Words: "the membership of",
				Seize: func() { seize(ada, web) },
				Holder: func(ctx context.Context) (client.Object, error) {
					return f.Catalog.MembershipIn(ctx, ada, catalog.Scope{Groups: []*v1alpha1.Group{web}})
				},
			}
		}
	}
	all := func() *forge.Forge { return f }

	forge.DescribeHolder("a membership in a group that gets the path that an older membership names", all, contest(
		func(m *v1alpha1.Membership) { m.Spec.GroupRef = &v1alpha1.Reference{Path: "next"} },
		func(_ *v1alpha1.User, web *v1alpha1.Group) { f.Change(web, func() { web.Spec.Path = "next" }) },
	))

	forge.DescribeHolder("a membership of a user who gets the username that an older membership names", all, contest(
		func(m *v1alpha1.Membership) { m.Spec.UserRef = v1alpha1.Reference{Path: "eve"} },
		func(ada *v1alpha1.User, _ *v1alpha1.Group) { f.Change(ada, func() { ada.Spec.Username = "eve" }) },
	))
})
