package toy_test

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
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

	It("follows the path of its project, and is not written without need", func() {
		f.Run()
		t := toy("t")
		f.Create(t)
		f.ExpectReady(t)
		Expect(t.Status.TargetPath).To(Equal("acme/website"))
		Expect(t.OwnerReferences).To(BeEmpty())
		Expect(t.Spec.ID).To(BeNumerically(">", 0))
		f.Change(acme, func() { acme.Spec.Path = "next" })
		f.Eventually(t).Should(HaveField("Status.TargetPath", Equal("next/website")))
		f.ExpectRestartWritesNothing()
	})

	It("becomes ready when its group appears", func() {
		t := toy("t")
		t.Spec.ProjectRef, t.Spec.GroupRef = nil, &v1alpha1.Reference{Name: "late"}
		f.Create(t)
		f.ExpectWaiting(t, v1alpha1.ReasonReferenceNotFound, "groupRef")
		f.Create(forge.Group("late").In(website.Namespace).Build())
		f.ExpectReady(t)
		Expect(t.Status.TargetPath).To(Equal("late"))
	})
})
