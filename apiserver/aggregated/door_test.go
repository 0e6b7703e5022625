package aggregated_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/forgeplane/forgeplane/apiserver/aggregated"
	"github.com/forgeplane/forgeplane/internal/registration"
	"github.com/forgeplane/forgeplane/test/controlplane"
	"github.com/forgeplane/forgeplane/test/controlplane/pool"
	"github.com/forgeplane/forgeplane/test/terminal"
)

var (
	cluster    *controlplane.ControlPlane
	admin      client.Client
	shell      terminal.Terminal
	kubeconfig string
)

var _ = BeforeSuite(func(ctx SpecContext) {
	directory := GinkgoT().TempDir()
	var err error
	ctrllog.SetLogger(logr.Discard())
	cluster, err = pool.Start(ctx, directory)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(cluster.Stop()).To(Succeed()) })
	admin, err = newClient(cluster.Administrator())
	Expect(err).NotTo(HaveOccurred())
	server, err := cluster.Identity("system:serviceaccount:"+platform+":forgeplane-apiserver", "system:serviceaccounts")
	Expect(err).NotTo(HaveOccurred())
	kubeconfig = filepath.Join(directory, "forgeplane.kubeconfig")
	Expect(controlplane.WriteKubeconfig(kubeconfig, server)).To(Succeed())
	binaries, err := controlplane.FindBinaries()
	Expect(err).NotTo(HaveOccurred())
	shell = terminal.New(directory, directory).With("KUBECONFIG="+cluster.Kubeconfig(), "PATH="+filepath.Dir(binaries.Kubectl)+":"+os.Getenv("PATH"))
	rbac, err := filepath.Abs("../../config/rbac")
	Expect(err).NotTo(HaveOccurred())
	shell.Do("kubectl", "apply", "--server-side", "--kustomize="+rbac)
}, NodeTimeout(2*time.Minute))

func freeAddress() (string, int32) {
	GinkgoHelper()
	port, err := controlplane.FreePort(context.Background())
	Expect(err).NotTo(HaveOccurred())
	return fmt.Sprintf("127.0.0.1:%d", port), int32(port)
}

// available waits until kube-apiserver forwards requests to the servers.
func available() {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		r := &apiregistrationv1.APIService{}
		g.Expect(admin.Get(context.Background(), client.ObjectKey{Name: registration.APIService(aggregated.GroupVersion)}, r)).To(Succeed())
		g.Expect(r.Status.Conditions).To(ContainElement(And(
			HaveField("Type", apiregistrationv1.Available), HaveField("Status", apiregistrationv1.ConditionTrue))), "%v", r.Status)
	}).Should(Succeed())
	Eventually(as(cluster.Administrator()).status("GET", "/version")).Should(Equal(http.StatusOK))
}

// deleteNamespace creates a namespace with an object in it and deletes it. It returns a function whose error is NotFound once the namespace is
// gone.
func deleteNamespace(name string) func() error {
	GinkgoHelper()
	ctx := context.Background()
	n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	Expect(admin.Create(ctx, n)).To(Succeed())
	Expect(admin.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "inhabitant"}})).To(Succeed())
	Expect(admin.Delete(ctx, n)).To(Succeed())
	return func() error { return admin.Get(ctx, client.ObjectKeyFromObject(n), n) }
}

// caller is an HTTP client with a Kubernetes identity. Like other clients of the REST API, it does not normalize paths.
type caller struct {
	http *http.Client
	host string
}

func as(config *rest.Config) caller {
	GinkgoHelper()
	c, err := rest.HTTPClientFor(config)
	Expect(err).NotTo(HaveOccurred())
	return caller{c, config.Host}
}

func identity(name string, rules ...rbacv1.PolicyRule) caller {
	GinkgoHelper()
	if len(rules) > 0 {
		meta := metav1.ObjectMeta{Name: "test-" + name}
		Expect(admin.Create(context.Background(), &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules})).To(Succeed())
		Expect(admin.Create(context.Background(), &rbacv1.ClusterRoleBinding{
			ObjectMeta: meta, Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: name}},
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
		})).To(Succeed())
	}
	config, err := cluster.Identity(name)
	Expect(err).NotTo(HaveOccurred())
	return as(config)
}

func rule(verb string, resources ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{aggregated.GroupName}, Resources: resources, Verbs: []string{verb}}
}

func (c caller) try(method, path, body string) (int, string, http.Header) {
	GinkgoHelper()
	r, err := http.NewRequest(method, c.host+aggregated.Prefix+path, strings.NewReader(body))
	Expect(err).NotTo(HaveOccurred())
	r.Header.Set("PRIVATE-TOKEN", "secret")
	response, err := c.http.Do(r)
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	Expect(err).NotTo(HaveOccurred())
	return response.StatusCode, string(text), response.Header
}

func (c caller) status(method, path string) func() int {
	return func() int {
		code, _, _ := c.try(method, path, "")
		return code
	}
}

func (c caller) get(path string) answer {
	GinkgoHelper()
	code, text, _ := c.try(http.MethodGet, path, "")
	Expect(code).To(Equal(http.StatusOK), text)
	var a answer
	Expect(json.NewDecoder(bytes.NewBufferString(text)).Decode(&a)).To(Succeed())
	return a
}

// direct returns a configuration that reaches a server without kube-apiserver in between.
func direct(config *rest.Config, address string) *rest.Config {
	config = rest.CopyConfig(config)
	config.Host, config.Insecure, config.CAData, config.CAFile = "https://"+address, true, nil, ""
	return config
}

// claiming sends requests that claim to come from another address.
type claiming struct {
	next    http.RoundTripper
	address string
}

// RoundTrip implements http.RoundTripper.
func (c claiming) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("X-Forwarded-For", c.address)
	return c.next.RoundTrip(r)
}

var _ = Describe("The aggregated API server", Ordered, func() {
	var address, audit, writes, unready string

	BeforeAll(func() {
		directory := GinkgoT().TempDir()
		policy := filepath.Join(directory, "policy.yaml")
		Expect(os.WriteFile(policy, []byte("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n"), 0o600)).To(Succeed())
		audit, unready = filepath.Join(directory, "audit.log"), filepath.Join(directory, "unready")
		writes = filepath.Join(directory, "writes.log")
		var port int32
		address, port = freeAddress()
		startReplica(replica{
			Name: "one", Kubeconfig: kubeconfig, Address: address, ServicePort: port, AuditPolicy: policy, AuditLog: audit, Writes: writes, Unready: unready,
		})
		available()
	})

	DescribeTable("finds the endpoint of a path", func(sent, want string) {
		Expect(as(cluster.Administrator()).get(sent).Path).To(Equal(want))
	},
		Entry("of the instance", "/version", "/version"),
		Entry("with an id", "/projects/17/labels", "/projects/17/labels"),
		Entry("with the prefix that clients use", "/api/v4/projects/17/labels", "/projects/17/labels"),
		Entry("with a full path", "/projects/acme%2Fsite/labels", "/projects/acme%2Fsite/labels"),
		Entry("with a full path, encoded twice", "/projects/acme%252Fsite/labels", "/projects/acme%2Fsite/labels"),
		Entry("with a wildcard and a slash", "/projects/17/protected_branches/feat%2F%2A", "/projects/17/protected_branches/feat%2F%2A"),
		Entry("with a percent sign", "/projects/17/protected_branches/100%25", "/projects/17/protected_branches/100%25"),
		Entry("with spaces, a plus sign and an umlaut", "/projects/17/protected_branches/a%20b%2B%C3%A4", "/projects/17/protected_branches/a%20b+%C3%A4"),
		Entry("of namespaces of the forge, not of Kubernetes", "/namespaces/acme/exists", "/namespaces/acme/exists"),
	)

	It("forwards headers, queries and bodies", func() {
		code, text, header := as(cluster.Administrator()).try(http.MethodPost, "/projects/17/labels?name[]=b&a=1&watch=true", `{"name":"bug"}`)
		Expect(code).To(Equal(http.StatusOK), text)
		var a answer
		Expect(json.Unmarshal([]byte(text), &a)).To(Succeed())
		Expect(a.Body).To(Equal(`{"name":"bug"}`))
		Expect(a.Query).To(Equal("a=1&name%5B%5D=b&watch=true"))
		Expect(a.Header.Get("Private-Token")).To(Equal("secret"))
		Expect(a.Header).NotTo(HaveKey("Authorization"))
		Expect(a.Identity).To(Equal("administrator"))
		Expect(header.Get("X-Total")).To(Equal("45"))
	})

	It("admits callers to the endpoints that RBAC allows", func() {
		alice := identity("alice", rule("get", "projects/labels"))
		Eventually(alice.status("GET", "/projects/17/labels")).Should(Equal(http.StatusOK))
		Expect(alice.get("/projects/17/labels").Identity).To(Equal("alice"))
		Expect(alice.get("/projects/acme%252Fsite/labels").Path).To(Equal("/projects/acme%2Fsite/labels"))
		for _, refused := range []string{"/projects/17", "/projects", "/projects/17/protected_branches/main", "/api/v4/projects/17/labels"} {
			Expect(alice.status("GET", refused)()).To(Equal(http.StatusForbidden), refused)
		}
		Expect(alice.status("POST", "/projects/17/labels")()).To(Equal(http.StatusForbidden))
	})

	It("also asks RBAC about the actual endpoint when kube-apiserver misreads a path", func() {
		// kube-apiserver mistakes the project acme/labels for labels of the project acme.
		bob := identity("bob", rule("get", "projects/labels"))
		Eventually(bob.status("GET", "/projects/17/labels")).Should(Equal(http.StatusOK))
		code, text, _ := bob.try("GET", "/projects/acme%2Flabels/protected_branches/main", "")
		Expect(code).To(Equal(http.StatusForbidden))
		Expect(text).To(ContainSubstring(`cannot get resource \"projects/protected_branches\"`))
	})

	It("admits calls with the prefix api/v4 and with full paths if roles allow both forms", func() {
		carol := identity("carol", rule("get", "projects/labels", "api/projects", "projects/site"))
		for _, path := range []string{"/api/v4/projects/17/labels", "/projects/acme%2Fsite/labels"} {
			Eventually(carol.status("GET", path)).Should(Equal(http.StatusOK), path)
		}
		Expect(carol.status("GET", "/api/v4/projects/17")()).To(Equal(http.StatusForbidden))
	})

	It("logs users and requests in the Kubernetes audit, without tokens", func() {
		admin := as(cluster.Administrator())
		sent := admin.get("/projects/17/labels?private_token=very-secret&page=2&token=very-secret")
		Expect(sent.Query).To(Equal("page=2"))
		Expect(sent.Header.Get("Private-Token")).To(Equal("secret"), "the header goes before the query")
		Eventually(func() (string, error) {
			text, err := os.ReadFile(audit)
			return string(text), err
		}).Should(And(
			ContainSubstring(`"requestURI":"/apis/rest.forgeplane.dev/v4/projects/17/labels?page=2"`),
			ContainSubstring(`"username":"administrator"`), ContainSubstring(`"subresource":"labels"`), Not(ContainSubstring("secret"))))
	})

	It("logs each write, including writes that RBAC refuses", func() {
		admin := as(cluster.Administrator())
		code, text, _ := admin.try(http.MethodPost, "/projects/17/labels?private_token=very-secret", "")
		Expect(code).To(Equal(http.StatusOK), text)
		stranger, err := cluster.Identity("stranger")
		Expect(err).NotTo(HaveOccurred())
		direct := rest.CopyConfig(stranger)
		direct.Host, direct.Insecure, direct.CAData, direct.CAFile = "https://"+address, true, nil, ""
		code, text, _ = as(direct).try(http.MethodPost, "/projects/17/labels", "")
		Expect(code).To(Equal(http.StatusForbidden), text)
		Eventually(func() (string, error) {
			text, err := os.ReadFile(writes)
			return string(text), err
		}).Should(And(
			MatchRegexp(`"door":"kubernetes",.*"result":"done","status":200,.*"address":"127.0.0.1","kubernetes":"administrator"`),
			MatchRegexp(`"door":"kubernetes",.*"result":"refused","status":403,.*"kubernetes":"stranger"`),
			Not(ContainSubstring("GET")), Not(ContainSubstring("secret"))))
	})

	It("serves health checks and metrics to callers that RBAC allows", func() {
		direct := func(config *rest.Config, path string) (int, string) {
			GinkgoHelper()
			config = rest.CopyConfig(config)
			config.Host = "https://" + address
			config.Insecure, config.CAData, config.CAFile = true, nil, ""
			c := as(config)
			response, err := c.http.Get(c.host + path)
			Expect(err).NotTo(HaveOccurred())
			defer func() { _ = response.Body.Close() }()
			text, err := io.ReadAll(response.Body)
			Expect(err).NotTo(HaveOccurred())
			return response.StatusCode, string(text)
		}
		for _, path := range []string{"/livez", "/readyz"} {
			code, text := direct(cluster.Administrator(), path)
			Expect(code).To(Equal(http.StatusOK), text)
		}
		code, text := direct(cluster.Administrator(), "/metrics")
		Expect(code).To(Equal(http.StatusOK))
		Expect(text).To(ContainSubstring("apiserver_audit_event_total"))
		stranger, err := cluster.Identity("stranger")
		Expect(err).NotTo(HaveOccurred())
		code, _ = direct(stranger, "/metrics")
		Expect(code).To(Equal(http.StatusForbidden))
	})

	It("serves other requests while many requests wait", func() {
		// The server has 600 seats for requests of all priorities together.
		const number = 700
		config, err := cluster.Identity("runner")
		Expect(err).NotTo(HaveOccurred())
		identity("runner", rule("create", "jobs"), rule("list", "version"))
		runner := as(direct(config, address))
		// Once the first request succeeds, the server knows that RBAC allows the runner.
		Eventually(runner.status("POST", "/jobs/request?number=1&first=")).Should(Equal(http.StatusOK))
		codes := make(chan int)
		for range number - 1 {
			go func() {
				defer GinkgoRecover()
				codes <- runner.status("POST", "/jobs/request?number=700")()
			}()
		}
		Consistently(codes).WithTimeout(time.Second).ShouldNot(Receive())
		Expect(runner.status("GET", "/version")()).To(Equal(http.StatusOK))
		go func() { codes <- runner.status("POST", "/jobs/request?number=700")() }()
		for range number {
			Eventually(codes).Should(Receive(Equal(http.StatusOK)))
		}
	})

	It("gives the parameter watch no special meaning", func() {
		dan := identity("dan", rule("watch", "projects"))
		Consistently(dan.status("GET", "/projects?watch=true")).WithTimeout(time.Second).Should(Equal(http.StatusForbidden))
	})

	It("refuses anonymous callers", func() {
		config := rest.AnonymousClientConfig(cluster.Administrator())
		Expect(as(config).status("GET", "/version")()).To(Equal(http.StatusForbidden))
	})

	It("recognizes administrators by their permission to administer the instance", func() {
		Expect(as(cluster.Administrator()).get("/version").Administrator).To(BeTrue())
		anybody := rule("get", "*")
		list := rule("list", "*")
		erin := identity("erin", anybody, list)
		Eventually(erin.status("GET", "/projects")).Should(Equal(http.StatusOK))
		Expect(erin.get("/projects").Administrator).To(BeFalse())
		frank := identity("frank", anybody, list, rbacv1.PolicyRule{APIGroups: []string{"forgeplane.dev"}, Resources: []string{"instances"}, Verbs: []string{"administer"}})
		Eventually(frank.status("GET", "/projects")).Should(Equal(http.StatusOK))
		Eventually(func() bool { return frank.get("/projects").Administrator }).Should(BeTrue())
	})

	It("does not renew its lease while it is not ready", func() {
		sign := func() string {
			lease := &coordinationv1.Lease{}
			_, port, err := net.SplitHostPort(address)
			Expect(err).NotTo(HaveOccurred())
			key := client.ObjectKey{Namespace: platform, Name: "forgeplane-apiserver-one-" + port}
			Expect(admin.Get(context.Background(), key, lease)).To(Succeed())
			return lease.ResourceVersion
		}
		omitted := func() int { return strings.Count(logOf("one"), "the server is not ready") }
		Expect(os.WriteFile(unready, nil, 0o600)).To(Succeed())
		Eventually(omitted).Should(Equal(1))
		last := sign()
		Eventually(omitted).Should(Equal(2))
		Expect(sign()).To(Equal(last))
		Expect(os.Remove(unready)).To(Succeed())
		Eventually(sign).ShouldNot(Equal(last))
	})

	It("does not disturb kubectl", func() {
		for _, command := range [][]string{
			{"api-resources"}, {"get", "projects", "-A"}, {"get", "all", "-A"}, {"explain", "project.spec"},
			{"get", "--raw", aggregated.Prefix}, {"get", "--raw", "/apis/" + aggregated.GroupName}, {"api-versions"},
		} {
			screen, err := shell.Try("kubectl", command...)
			Expect(err).NotTo(HaveOccurred(), screen)
			Expect(strings.ToLower(screen)).NotTo(Or(ContainSubstring("error"), ContainSubstring("warning"), ContainSubstring("unable")), "%v", command)
		}
		Expect(shell.Do("kubectl", "get", "projects", "-o", "name", "-v=6", "-A")).To(BeEmpty())
		Expect(shell.Do("kubectl", "get", "--raw", aggregated.Prefix)).To(And(
			ContainSubstring(`"name":"projects/labels"`), ContainSubstring(`"verbs":["create","get"]`), Not(ContainSubstring(`"name":"projects"`))))
		Eventually(func() (string, error) { return shell.Try("kubectl", "get", "--raw", "/openapi/v3"+aggregated.Prefix) }).Should(ContainSubstring(aggregated.Prefix + "/projects/{id}/labels"))
		Expect(shell.Do("kubectl", "get", "--raw", "/openapi/v2")).To(ContainSubstring("dev.forgeplane.v1alpha1.Project"))
	})

	It("has no resources that the controllers of Kubernetes list or delete", func() {
		gone := deleteNamespace("visited")
		Eventually(gone).Should(Satisfy(apierrors.IsNotFound))
		owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "owner"}}
		Expect(admin.Create(context.Background(), owner)).To(Succeed())
		owned := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "owned", OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: owner.UID},
		}}}
		Expect(admin.Create(context.Background(), owned)).To(Succeed())
		Expect(admin.Delete(context.Background(), owner)).To(Succeed())
		Eventually(func() error { return admin.Get(context.Background(), client.ObjectKeyFromObject(owned), owned) }).Should(Satisfy(apierrors.IsNotFound))
		Expect(logOf("one")).To(ContainSubstring("tree: administrator "))
		Expect(logOf("one")).NotTo(Or(ContainSubstring("tree: system:"), ContainSubstring("tree:  ")))
	})

	Describe("the address of a client", Ordered, func() {
		const forged = "198.51.100.7"
		// from returns a client at an address that claims to forward requests from another address.
		from := func(config *rest.Config, address string) caller {
			GinkgoHelper()
			config = rest.CopyConfig(config)
			config.Dial = (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}).DialContext
			config.Wrap(func(next http.RoundTripper) http.RoundTripper { return claiming{next, forged} })
			return as(config)
		}

		It("is logged as kube-apiserver reports it, and not as clients claim", func() {
			for _, c := range []caller{from(cluster.Administrator(), "127.0.0.2"), from(direct(cluster.Administrator(), address), "127.0.0.3")} {
				code, text, _ := c.try(http.MethodPost, "/projects/17/labels", "")
				Expect(code).To(Equal(http.StatusOK), text)
			}
			Eventually(func() (string, error) {
				text, err := os.ReadFile(writes)
				return string(text), err
			}).Should(And(
				ContainSubstring(`"address":"127.0.0.2","peer":"127.0.0.1","kubernetes":"administrator"`),
				ContainSubstring(`"address":"127.0.0.3","kubernetes":"administrator"`),
				Not(ContainSubstring(forged))))
		})

		It("is the key by which anonymous callers are counted", func() {
			meta := metav1.ObjectMeta{Name: "test-anonymous"}
			Expect(admin.Create(context.Background(), &rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{rule("list", "projects")}})).To(Succeed())
			binding := &rbacv1.ClusterRoleBinding{
				ObjectMeta: meta, Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "system:anonymous"}},
				RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
			}
			Expect(admin.Create(context.Background(), binding)).To(Succeed())
			DeferCleanup(func(ctx SpecContext) { Expect(admin.Delete(ctx, binding)).To(Succeed()) })
			anonymous := rest.AnonymousClientConfig(cluster.Administrator())
			for at, c := range map[string]caller{"127.0.0.2": from(anonymous, "127.0.0.2"), "127.0.0.3": from(direct(anonymous, address), "127.0.0.3")} {
				Eventually(c.status("GET", "/projects")).Should(Equal(http.StatusOK))
				Expect(c.get("/projects?address="+at).Counted).To(BeTrue(), at)
				Expect(c.get("/projects?address="+forged).Counted).To(BeFalse(), at)
			}
		})
	})
})
