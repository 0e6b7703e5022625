package toy_test

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/test/forge"
	"github.com/forgeplane/forgeplane/test/suite"
)

func TestToy(t *testing.T) {
	suite.Run(t, "Toy")
}

var (
	cluster *forge.Cluster
	f       *forge.Forge

	_ = BeforeSuite(func() { cluster = forge.StartCluster() })
	_ = BeforeEach(func() {
		f = forge.New(cluster, forge.Options{})
		acme = forge.Group("acme").In(f.NewNamespace()).Build()
		website = forge.Project("website").In(acme).Build()
		f.Create(acme, website)
	})

	acme    *v1alpha1.Group
	website *v1alpha1.Project
)

func toy(name string) *v1alpha1.Toy {
	return &v1alpha1.Toy{
		ObjectMeta: metav1.ObjectMeta{Namespace: website.Namespace, Name: name},
		Spec:       v1alpha1.ToySpec{ProjectRef: &v1alpha1.Reference{Name: website.Name}},
	}
}

var _ = Describe("A toy", func() {
	forge.DescribeIDs(func() *forge.Forge { return f }, func(name string) v1alpha1.Identified { return toy(name) })

	forge.DescribeTarget("a toy", forge.ProjectsAndGroups, func() *forge.Forge { return f },
		func(name string, project, group *v1alpha1.Reference) v1alpha1.Targeted {
			t := toy(name)
			t.Spec.ProjectRef, t.Spec.GroupRef = project, group
			return t
		})
})
