package user_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/test/forge"
)

var _ = Describe("A user:", func() {
	all := func() *forge.Forge { return f }
	old := func() *v1alpha1.User { return forge.User("old").Build() }

	forge.DescribeHolder("a username", all, func() forge.Contest {
		o := old()
		return forge.Contest{
			Old: o, Young: forge.User("ada").Build(), Words: "username ADA",
			Seize:  func() { f.Change(o, func() { o.Spec.Username = "ADA" }) },
			Holder: func(ctx context.Context) (client.Object, error) { return f.Catalog.UserByUsername(ctx, "ada") },
		}
	})

	forge.DescribeHolder("an address", all, func() forge.Contest {
		o := old()
		return forge.Contest{
			Old: o, Young: forge.User("ada").Email("ada@example.com").Build(), Words: "email ADA@example.com",
			Seize: func() { f.Change(o, func() { o.Spec.Email = "ADA@example.com" }) },
			Holder: func(ctx context.Context) (client.Object, error) {
				return f.Catalog.UserByEmail(ctx, "ada@example.com")
			},
		}
	})

	forge.DescribeHolder("a Kubernetes identity", all, func() forge.Contest {
		o, ada := old(), forge.User("ada").Build()
		ada.Spec.Kubernetes = &v1alpha1.KubernetesIdentity{Username: "ada@example.com"}
		return forge.Contest{
			Old: o, Young: ada, Words: "the Kubernetes identity ada@example.com",
			Seize: func() { f.Change(o, func() { o.Spec.Kubernetes = ada.Spec.Kubernetes.DeepCopy() }) },
			Holder: func(ctx context.Context) (client.Object, error) {
				return f.Catalog.UserByKubernetes(ctx, "ada@example.com")
			},
		}
	})
})
