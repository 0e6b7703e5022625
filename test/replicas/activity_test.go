package replicas

import (
	"fmt"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	activity "github.com/forgeplane/forgeplane/api/activity/v1alpha1"
	"github.com/forgeplane/forgeplane/test/rest"
)

var _ = Describe("A watch of issues", func() {
	It("sees the changes that any server makes", func(ctx SpecContext) {
		start(manager, one, two)
		issues, here := &unstructured.UnstructuredList{}, client.InNamespace("yard")
		issues.SetGroupVersionKind(activity.GroupVersion.WithKind("IssueList"))
		Eventually(func() error { return api.List(ctx, issues, here) }).Should(Succeed(), "the servers register the API")
		watched, err := api.Watch(ctx, issues, here, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: issues.GetResourceVersion()}})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(watched.Stop)
		expectEvent := func(kind watch.EventType, name, state string) {
			GinkgoHelper()
			var e watch.Event
			Eventually(watched.ResultChan()).Should(Receive(&e))
			Expect(e.Type).To(Equal(kind), "%v", e.Object)
			issue := e.Object.(*unstructured.Unstructured)
			got, _, err := unstructured.NestedString(issue.Object, "status", "state")
			Expect(err).NotTo(HaveOccurred())
			Expect([]string{issue.GetName(), got}).To(Equal([]string{name, state}))
		}

		// kube-apiserver reaches one of the servers, so one of them makes changes that the other one shows.
		first, second := one.by("root"), two.by("root")
		iid := rest.Must[struct{ IID int64 }](first, http.StatusCreated, "POST /projects/yard%2Fapp/issues", `{"title":"Watched"}`).IID
		path, name := fmt.Sprintf("/projects/yard%%2Fapp/issues/%d", iid), fmt.Sprintf("app-%d", iid)
		expectEvent(watch.Added, name, "opened")
		Expect(second.Call("PUT "+path, `{"state_event":"close"}`).Status).To(Equal(http.StatusOK))
		expectEvent(watch.Modified, name, "closed")
		Expect(first.Status("DELETE " + path)).To(Equal(http.StatusNoContent))
		expectEvent(watch.Deleted, name, "closed")
	})
})
