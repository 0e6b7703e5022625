package replicas

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/test/forgeplane"
	"github.com/forgeplane/forgeplane/test/suite"
)

// apiService is the registration of the REST API.
const apiService = "v4.rest.forgeplane.dev"

// sparing is the time between two looks at what can take a minute.
const sparing = 200 * time.Millisecond

var _ = Describe("The servers behind kube-apiserver", Ordered, func() {
	BeforeAll(func() {
		start(manager, one, two)
		expectRegistered()
	})

	It("continue to answer when one of them is killed", suite.Soak, func() {
		before := registered()
		killed := time.Now()
		one.kill()
		Eventually(answers).WithPolling(polling).Should(Succeed())
		report("the other answers after", time.Since(killed))
		gone := deleteNamespace("after-one")
		expectQuietKubectl()
		ready := apply("after-one-of-two")
		Eventually(gone).WithPolling(sparing).Should(BeEmpty())
		report("a namespace is gone after", time.Since(killed))
		Consistently(answers).WithTimeout(quiet).WithPolling(polling).Should(Succeed())
		ready()
		Expect(registered().GetUID()).To(Equal(before.GetUID()), "nobody has registered it anew")
	})

	It("are unregistered by the manager when all of them are killed", suite.Soak, func() {
		two.kill()
		killed := time.Now()
		Eventually(available).WithPolling(sparing).Should(Equal("False"))
		report("kube-apiserver sees it after", time.Since(killed))
		gone := deleteNamespace("after-all")
		// The manager removes the registration because of this condition, perhaps before Kubernetes sets it.
		Eventually(gone).WithPolling(sparing).Should(Or(ContainSubstring("DiscoveryFailed"), BeEmpty()))
		deleted := time.Now()
		expectKubectl()
		ready := apply("after-all-servers")
		Eventually(registered).WithPolling(sparing).Should(BeNil())
		report("the registration is gone after", time.Since(killed))
		expectQuietKubectl()
		ready()
		Eventually(gone).WithPolling(sparing).Should(BeEmpty())
		report("a namespace is gone after", time.Since(deleted))
	})

	It("are unregistered at once by the last server that stops", func() {
		start(one, two)
		expectRegistered()
		Eventually(leases).WithPolling(sparing).Should(HaveLen(2))
		one.stop()
		Expect(registered()).NotTo(BeNil())
		Eventually(answers).WithPolling(polling).Should(Succeed())
		two.stop()
		Expect(registered()).To(BeNil())
		Expect(leases()).To(BeEmpty())
		expectQuietKubectl()
		stopped := time.Now()
		Eventually(deleteNamespace("after-stop")).WithPolling(sparing).Should(BeEmpty())
		report("a namespace is gone after", time.Since(stopped))
	})

	It("are registered again by the first server that starts", func() {
		begun := time.Now()
		start(one)
		expectRegistered()
		report("it answers after", time.Since(begun))
		expectQuietKubectl()
	})
})

// registered returns the registration, or nil if it does not exist.
func registered() *unstructured.Unstructured {
	GinkgoHelper()
	found := &unstructured.Unstructured{}
	found.SetAPIVersion("apiregistration.k8s.io/v1")
	found.SetKind("APIService")
	err := api.Get(context.Background(), client.ObjectKey{Name: apiService}, found)
	if apierrors.IsNotFound(err) {
		return nil
	}
	Expect(err).NotTo(HaveOccurred())
	return found
}

// available returns the state of the servers according to kube-apiserver.
func available() string {
	GinkgoHelper()
	found := registered()
	if found == nil {
		return ""
	}
	conditions, _, err := unstructured.NestedSlice(found.Object, "status", "conditions")
	Expect(err).NotTo(HaveOccurred())
	for _, c := range conditions {
		if c := c.(map[string]any); c["type"] == "Available" {
			return fmt.Sprint(c["status"])
		}
	}
	return ""
}

// answers returns an error unless a server answers through kube-apiserver.
func answers() error {
	a, err := door.Try("GET /projects/yard%2Fapp", "")
	if err == nil && a.Status != http.StatusOK {
		err = fmt.Errorf("%s", a)
	}
	return err
}

func expectRegistered() {
	GinkgoHelper()
	Eventually(available).WithPolling(sparing).Should(Equal("True"))
	Eventually(answers).WithPolling(polling).Should(Succeed())
}

// leases returns the names of the leases of the servers.
func leases() (names []string) {
	GinkgoHelper()
	var all coordinationv1.LeaseList
	Expect(api.List(context.Background(), &all, client.InNamespace(forgeplane.Namespace),
		client.MatchingLabels{"app.kubernetes.io/component": "forgeplane-apiserver"})).To(Succeed())
	for _, l := range all.Items {
		names = append(names, l.Name)
	}
	return names
}

// deleteNamespace creates a namespace with an object of Forgeplane in it, and deletes it. The result returns what is left of the namespace.
func deleteNamespace(name string) func() string {
	GinkgoHelper()
	admin.Apply(fmt.Sprintf(`
apiVersion: v1
kind: Namespace
metadata: {name: %s}
---
apiVersion: forgeplane.dev/v1alpha1
kind: Group
metadata: {name: here, namespace: %[1]s}
spec: {path: %[1]s}
`, name))
	admin.Kubectl("delete", "namespace", name, "--wait=false")
	return func() string {
		GinkgoHelper()
		var left corev1.Namespace
		err := api.Get(context.Background(), client.ObjectKey{Name: name}, &left)
		if apierrors.IsNotFound(err) {
			return ""
		}
		Expect(err).NotTo(HaveOccurred())
		return left.Status.String()
	}
}

// apply declares a rule, and returns a function that waits until the manager has processed it.
func apply(branch string) (ready func()) {
	GinkgoHelper()
	admin.Apply(fmt.Sprintf(`
apiVersion: forgeplane.dev/v1alpha1
kind: ProtectedBranch
metadata: {name: %s, namespace: yard}
spec: {projectRef: {name: app}, branch: %[1]s}
`, branch))
	return func() {
		GinkgoHelper()
		admin.WaitReady("protectedbranch/"+branch, "--namespace=yard")
	}
}

// commands are common commands of kubectl, which first asks the cluster for its kinds.
var commands = [][]string{
	{"get", "projects", "--all-namespaces"}, {"get", "namespaces"}, {"get", "all", "--all-namespaces"}, {"explain", "project.spec"},
}

// expectKubectl expects that kubectl works.
func expectKubectl() {
	GinkgoHelper()
	for _, command := range commands {
		screen, err := kubectl(command)
		Expect(err).NotTo(HaveOccurred(), "%q: %s", command, screen)
	}
}

// expectQuietKubectl expects that kubectl works without warnings.
func expectQuietKubectl() {
	GinkgoHelper()
	for _, command := range append(commands, []string{"api-resources"}, []string{"api-versions"}) {
		said, err := kubectl(command)
		Expect(err).NotTo(HaveOccurred(), "%q: %s", command, said)
		Expect(strings.TrimSpace(said)).To(Or(BeEmpty(), Equal("No resources found")), "%q", command)
	}
}

// kubectl runs kubectl without a cache of the cluster. It returns the warnings.
func kubectl(command []string) (string, error) {
	GinkgoHelper()
	return admin.Try("sh", append([]string{"-c", `exec kubectl "$@" 2>&1 >/dev/null`, "sh", "--cache-dir=" + admin.Space()}, command...)...)
}
