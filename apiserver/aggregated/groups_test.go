package aggregated_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/apiserver/aggregated"
	"github.com/forgeplane/forgeplane/apiserver/aggregated/virtual"
	"github.com/forgeplane/forgeplane/apiserver/aggregated/virtual/virtualtest"
	"github.com/forgeplane/forgeplane/internal/certificate"
	"github.com/forgeplane/forgeplane/internal/registration"
	"github.com/forgeplane/forgeplane/test/controlplane"
	"github.com/forgeplane/forgeplane/test/process"
)

// registers lets the server register a group, as the rules in config do for the group of the REST API.
func registers(name string) {
	GinkgoHelper()
	ctx, meta := context.Background(), metav1.ObjectMeta{Name: "test-registers"}
	Expect(admin.Create(ctx, &rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{"apiregistration.k8s.io"}, Resources: []string{"apiservices"}, ResourceNames: []string{name},
		Verbs: []string{"get", "create", "patch", "delete"},
	}}})).To(Succeed())
	Expect(admin.Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta, Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: platform, Name: "forgeplane-apiserver"}},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
	})).To(Succeed())
}

// serveToys starts a server with a group of toys beside the REST API. It stops at the end of the container.
func serveToys(source virtual.Source) {
	GinkgoHelper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	Expect(err).NotTo(HaveOccurred())
	c, err := newClient(config)
	Expect(err).NotTo(HaveOccurred())
	administrators, err := aggregated.NewAdministrators(config)
	Expect(err).NotTo(HaveOccurred())
	address, port := freeAddress()
	server := aggregated.New(aggregated.Options{
		Address: address, Kubeconfig: kubeconfig, Config: config, URL: kubernetesURL, Tree: echo(administrators), Routes: routes(), Known: known,
		Groups: []virtual.Group{virtualtest.Group(source)},
		Certificates: certificate.Managed(certificate.Options{
			Client: c, Secret: client.ObjectKey{Namespace: platform, Name: "toys"},
			Names: []string{"forgeplane-apiserver." + platform + ".svc"}, Clock: clock.RealClock{}, Log: logr.Discard(),
		}),
		Registration: registration.Server{Options: registrationOptions(c, port, logr.Discard()), Name: "toys"},
		Ready:        func(*http.Request) error { return nil }, Log: logr.Discard(),
	})
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Start(ctx) }()
	DeferCleanup(func() {
		stop()
		Eventually(ended).Should(Receive(Succeed()))
		for _, group := range aggregated.Served(virtualtest.Group(source)) {
			err := admin.Get(context.Background(), client.ObjectKey{Name: registration.APIService(group)}, &apiregistrationv1.APIService{})
			Expect(err).To(Satisfy(apierrors.IsNotFound), "%s", group)
		}
	})
}

var _ = Describe("A group of virtual resources", Ordered, func() {
	const at = "/apis/activity.forgeplane.dev/v1alpha1"
	var source *virtualtest.Memory

	BeforeAll(func() {
		source = virtualtest.NewMemory()
		source.Put("acme", "ball", virtualtest.ToyStatus{State: "whole", Price: 5})
		source.Put("acme", "car", virtualtest.ToyStatus{State: "broken", Price: 7})
		source.Put("zoo", "lion", virtualtest.ToyStatus{State: "whole", Price: 3})
		registers(registration.APIService(virtualtest.GroupVersion))
		serveToys(source)
		available()
		Eventually(func() (string, error) { return shell.Try("kubectl", "get", "toys", "--all-namespaces") }).Should(ContainSubstring("lion"))
	})

	lines := func(args ...string) []string {
		GinkgoHelper()
		var all []string
		for line := range strings.SplitSeq(shell.Do("kubectl", append([]string{"get"}, args...)...), "\n") {
			all = append(all, strings.Join(strings.Fields(line), " "))
		}
		return all
	}

	DescribeTable("is read with kubectl", func(command string, want ...string) {
		Expect(lines(strings.Fields(command)...)).To(Equal(want))
	},
		Entry("as a table", "toys -n acme", "NAME STATE", "ball whole", "car broken"),
		Entry("as a wide table", "toy ball -n acme -o wide", "NAME STATE PRICE", "ball whole 5"),
		Entry("by its short name", "ty -n zoo --no-headers", "lion whole"),
		Entry("in pages", "toys -A --chunk-size=1 -o name", "toy.activity.forgeplane.dev/ball", "toy.activity.forgeplane.dev/car", "toy.activity.forgeplane.dev/lion"),
		Entry("with a field selector", "toys -A --field-selector=status.state=whole -o jsonpath={.items[*].metadata.name}", "ball lion"),
		Entry("as an object", "toy car -n acme -o jsonpath={.apiVersion}/{.kind}:{.status.price}", "activity.forgeplane.dev/v1alpha1/Toy:7"),
	)

	It("refuses a selector of an unknown field", func() {
		screen, err := shell.Try("kubectl", "get", "toys", "-A", "--field-selector=status.colour=red")
		Expect(err).To(HaveOccurred())
		Expect(screen).To(ContainSubstring("not a known field selector"))
	})

	It("is watched with kubectl", func() {
		binaries, err := controlplane.FindBinaries()
		Expect(err).NotTo(HaveOccurred())
		log := filepath.Join(GinkgoT().TempDir(), "watch.log")
		p, err := process.Start(process.Program{
			Name: "kubectl", Path: binaries.Kubectl, Args: []string{"get", "toys", "-n", "acme", "--watch", "--field-selector=status.state=broken", "--output-watch-events"},
			Log: log, Env: append(os.Environ(), "KUBECONFIG="+cluster.Kubeconfig()),
		})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(p.Kill)
		screen := func() (string, error) {
			text, err := os.ReadFile(log)
			return string(text), err
		}
		Eventually(screen).Should(MatchRegexp(`ADDED +car +broken`))
		source.Put("acme", "ball", virtualtest.ToyStatus{State: "broken", Price: 5})
		// A change between the list and the watch is MODIFIED, because the server does not know what the list had.
		Eventually(screen).Should(MatchRegexp(`(ADDED|MODIFIED) +ball +broken`))
		source.Put("acme", "ball", virtualtest.ToyStatus{State: "whole", Price: 5})
		Eventually(screen).Should(MatchRegexp(`DELETED +ball +whole`))
	})

	It("is described by discovery and OpenAPI", func() {
		Expect(strings.Fields(shell.Do("kubectl", "api-resources", "--api-group=activity.forgeplane.dev", "--no-headers", "-o", "wide"))).To(Equal(
			[]string{"toys", "ty", "activity.forgeplane.dev/v1alpha1", "true", "Toy", "get,list,watch"}))
		Eventually(func() (string, error) { return shell.Try("kubectl", "explain", "toy.status.price") }).Should(ContainSubstring("Price of the toy."))
		Expect(shell.Do("kubectl", "get", "--raw", "/openapi/v3"+aggregated.Prefix)).To(ContainSubstring("/projects/{id}/labels"))
	})

	It("is read-only", func() {
		c := as(cluster.Administrator())
		for method, path := range map[string]string{
			http.MethodPost: "/toys", http.MethodPut: "/toys/ball", http.MethodPatch: "/toys/ball", http.MethodDelete: "/toys/ball",
		} {
			r, err := http.NewRequest(method, c.host+at+"/namespaces/acme"+path, strings.NewReader("{}"))
			Expect(err).NotTo(HaveOccurred())
			response, err := c.http.Do(r)
			Expect(err).NotTo(HaveOccurred())
			Expect(response.Body.Close()).To(Succeed())
			Expect(response.StatusCode).To(Equal(http.StatusMethodNotAllowed), method)
		}
	})

	It("is shown to users with the permission", func() {
		code := func(c caller, namespace string) int {
			GinkgoHelper()
			response, err := c.http.Get(c.host + at + "/namespaces/" + namespace + "/toys")
			Expect(err).NotTo(HaveOccurred())
			Expect(response.Body.Close()).To(Succeed())
			return response.StatusCode
		}
		ctx, meta := context.Background(), metav1.ObjectMeta{Namespace: "default", Name: "test-toys"}
		Expect(admin.Create(ctx, &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{virtualtest.GroupVersion.Group}, Resources: []string{"toys"}, Verbs: []string{"list"}},
		}})).To(Succeed())
		Expect(admin.Create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: meta, Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "gina"}},
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
		})).To(Succeed())
		gina := identity("gina")
		Eventually(func() int { return code(gina, "default") }).Should(Equal(http.StatusOK))
		Expect(code(gina, "acme")).To(Equal(http.StatusForbidden))
		Expect(gina.status("GET", "/projects")()).To(Equal(http.StatusForbidden))
	})

	It("lets Kubernetes delete namespaces", func() {
		Eventually(deleteNamespace("toy-shop")).Should(Satisfy(apierrors.IsNotFound))
	})
})
