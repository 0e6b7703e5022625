package conformance

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gitlab "gitlab.com/gitlab-org/api/client-go/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
)

var _ = throughEachDoor("Toys", func(d *door) {
	It("are listed and removed", func() {
		team := d.newTeam(gitlab.PrivateVisibility)
		toy := &v1alpha1.Toy{
			ObjectMeta: metav1.ObjectMeta{Namespace: group(team).Namespace, Name: fresh("toy")},
			Spec:       v1alpha1.ToySpec{ProjectRef: &v1alpha1.Reference{ID: team.project.ID}},
		}
		Expect(api.Create(context.Background(), toy)).To(Succeed())
		path := fmt.Sprintf("projects/%d/toys", team.project.ID)
		list := func() string { return answered(send(d.as(maintainer), "GET "+path, "")) }
		Eventually(list).WithPolling(polling).Should(ContainSubstring(`"id":`))
		Expect(api.Get(context.Background(), client.ObjectKeyFromObject(toy), toy)).To(Succeed())
		Expect(answered(send(d.as(maintainer), fmt.Sprintf("DELETE %s/%d", path, toy.Spec.ID), ""))).To(Equal("204"))
		Expect(list()).To(Equal("200 []"))
	})
})
