// Package replicas runs Forgeplane in several processes, like a cluster: managers, one of which leads, and servers that share the repositories and
// are behind one Service. It sends the same requests to several processes at the same time, and kills processes.
package replicas

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/test/controlplane"
	"github.com/forgeplane/forgeplane/test/forgeplane"
	"github.com/forgeplane/forgeplane/test/installation"
	"github.com/forgeplane/forgeplane/test/patience"
	"github.com/forgeplane/forgeplane/test/process"
	"github.com/forgeplane/forgeplane/test/rest"
	"github.com/forgeplane/forgeplane/test/suite"
	"github.com/forgeplane/forgeplane/test/terminal"
)

func TestReplicas(t *testing.T) {
	suite.Run(t, "Forgeplane in several processes")
}

const (
	polling = 20 * time.Millisecond
	// quiet is the time without changes after an action that changes nothing.
	quiet = 500 * time.Millisecond
)

// All specs share a control plane that is never killed, a manager and its stand-by, two servers, and two container registries. The administrator of the cluster uses a
// terminal, or a client if the terminal is too slow. Each spec begins by starting the processes that it needs.
var (
	checkout         *installation.Checkout
	admin            terminal.Terminal
	api              client.WithWatch
	manager, standby *replica
	one, two         *replica
	// images and copies serve the container registry.
	images, copies *replica
	// door is the way through kube-apiserver.
	door rest.Client
	// storage is the directory of the repositories.
	storage string
)

var _ = BeforeSuite(func() {
	checkout = installation.NewCheckout()
	root := GinkgoT().TempDir()
	cluster := checkout.StartCluster(forgeplane.Manager.Account(), forgeplane.APIServer.Account())
	admin, api, audited = cluster.Admin, cluster.Client, cluster.AuditLog()
	door = rest.ThroughKubernetes(cluster.Administrator())

	manager, standby = newReplica(cluster.ControlPlane, root, "manager", forgeplane.Manager), newReplica(cluster.ControlPlane, root, "standby", forgeplane.Manager)
	one, two = newReplica(cluster.ControlPlane, root, "one", forgeplane.APIServer), newReplica(cluster.ControlPlane, root, "two", forgeplane.APIServer)
	images, copies = newReplica(cluster.ControlPlane, root, "images", forgeplane.Registry), newReplica(cluster.ControlPlane, root, "copies", forgeplane.Registry)
	for _, r := range []*replica{one, two} {
		r.options.Flags = []string{"--registry=separate", "--registry-url=" + images.address(), "--registry-token-lifetime=2h"}
	}
	for _, r := range []*replica{images, copies} {
		// Clients refuse an address of a private network that is not that of the registry as the place of tokens.
		r.options.Flags = []string{fmt.Sprintf("--external-url=http://localhost:%d", one.options.HTTPPort), "--registry-url=" + r.address()}
	}
	configured := filepath.Join(root, "storage.yaml")
	Expect(os.WriteFile(configured, fmt.Appendf(nil, "filesystem: {rootdirectory: %q}\n", filepath.Join(root, "registry")), 0o600)).To(Succeed())
	copies.options.Flags = append(copies.options.Flags, "--registry-storage-file="+configured, "--registry-storage="+filepath.Join(root, "unused"),
		"--registry-tag-delete=false", "--registry-max-size=1Mi")
	two.wire, images.wire = newWire(cluster.ControlPlane.URL()), newWire(cluster.ControlPlane.URL())
	front := startBalancer(one.options.TLSPort, two.options.TLSPort)
	for _, r := range replicas() {
		r.options.ServicePort = front.port()
		DeferCleanup(r.stop)
	}
	start(manager, one, two)
	storage = filepath.Join(root, "repositories")
	Expect(os.Mkdir(storage, 0o700)).To(Succeed())
	admin.Apply(fmt.Sprintf(everybody, storage))
	admin.WaitReady("user,accesstoken,group,project,membership", "--all", "--all-namespaces")
})

func replicas() []*replica { return []*replica{manager, standby, one, two, images, copies} }

// everybody are the objects that all specs share: an administrator, a developer, and a project.
const everybody = `
apiVersion: forgeplane.dev/v1alpha1
kind: RepositoryStorage
metadata: {name: default}
spec: {path: %q}
---
apiVersion: v1
kind: Namespace
metadata: {name: yard}
---
apiVersion: forgeplane.dev/v1alpha1
kind: User
metadata: {name: root}
spec: {username: root, name: Root, admin: true}
---
apiVersion: forgeplane.dev/v1alpha1
kind: AccessToken
metadata: {name: root}
spec: {userRef: {name: root}, scopes: [api], secretRef: {name: root}}
---
apiVersion: forgeplane.dev/v1alpha1
kind: User
metadata: {name: dana}
spec: {username: dana, name: Dana}
---
apiVersion: forgeplane.dev/v1alpha1
kind: AccessToken
metadata: {name: dana}
spec: {userRef: {name: dana}, scopes: [api], secretRef: {name: dana}}
---
apiVersion: forgeplane.dev/v1alpha1
kind: Group
metadata: {name: yard, namespace: yard}
spec: {path: yard}
---
apiVersion: forgeplane.dev/v1alpha1
kind: Project
metadata: {name: app, namespace: yard}
spec: {path: app, groupRef: {name: yard}, defaultBranch: main}
---
apiVersion: forgeplane.dev/v1alpha1
kind: Membership
metadata: {name: dana, namespace: yard}
spec: {groupRef: {name: yard}, userRef: {name: dana}, role: Developer}
`

// token returns the access token of a user.
func token(username string) string {
	GinkgoHelper()
	return admin.Kubectl("get", "secret", username, "--namespace="+forgeplane.Namespace, "--output=go-template={{.data.token | base64decode}}")
}

// The logs of all processes explain a failure.
var _ = JustAfterEach(func() {
	if !CurrentSpecReport().Failed() {
		return
	}
	for _, r := range replicas() {
		text, _ := os.ReadFile(r.log())
		fmt.Fprintf(GinkgoWriter, "the log of %s:\n%s\n", r.name, text)
	}
})

// replica is one process of Forgeplane.
type replica struct {
	name    string
	options forgeplane.Options
	process *process.Process
	// wire is the way to kube-apiserver, or nil for a direct connection.
	wire *wire
}

func newReplica(plane *controlplane.ControlPlane, root, name string, part forgeplane.Part) *replica {
	GinkgoHelper()
	ports := installation.FreePorts()
	directory := filepath.Join(root, name)
	Expect(os.Mkdir(directory, 0o700)).To(Succeed())
	return &replica{name: name, options: forgeplane.Options{
		Part: part, Programs: filepath.Dir(checkout.Program("forgeplane")), Data: directory, Logs: directory,
		Activity: filepath.Join(root, "activity.db"),
		HTTPPort: ports.HTTP, TLSPort: ports.TLS, HealthPort: ports.Health, ControlPlane: plane,
	}}
}

func (r *replica) log() string { return filepath.Join(r.options.Logs, "forgeplane.log") }

// start starts the replicas that are not running, and returns when all are ready.
func start(all ...*replica) {
	GinkgoHelper()
	for _, r := range all {
		if r.runs() {
			continue
		}
		program, err := r.options.Program()
		Expect(err).NotTo(HaveOccurred())
		if r.wire != nil {
			r.wire.lead(filepath.Join(r.options.Data, "forgeplane.kubeconfig"))
		}
		r.process, err = process.Start(program)
		Expect(err).NotTo(HaveOccurred())
	}
	for _, r := range all {
		r.waitReady()
	}
}

func (r *replica) runs() bool {
	if r.process == nil {
		return false
	}
	select {
	case <-r.process.Done():
		return false
	default:
		return true
	}
}

func (r *replica) waitReady() {
	GinkgoHelper()
	Expect(r.options.AwaitReady(r.process, patience.Wait)).To(Succeed(), func() string { return r.process.Tail() })
}

// stop stops a replica gracefully, if it is running.
func (r *replica) stop() {
	GinkgoHelper()
	if r.process != nil {
		Expect(r.process.Stop()).To(Succeed())
	}
}

// kill kills a replica with SIGKILL.
func (r *replica) kill() {
	GinkgoHelper()
	Expect(r.process.Kill()).To(Succeed())
}

// address is the address of a server, without kube-apiserver.
func (r *replica) address() string { return fmt.Sprintf("http://127.0.0.1:%d", r.options.HTTPPort) }

// by returns a client of one server that sends the token of a user.
func (r *replica) by(username string) rest.Client {
	GinkgoHelper()
	return rest.WithToken(r.address(), token(username))
}

// report puts a time into the report that Ginkgo makes of the spec.
func report(what string, took time.Duration) {
	AddReportEntry(fmt.Sprintf("%s %s", what, took.Round(time.Millisecond)), ReportEntryVisibilityAlways)
}
