// Package conformance uses every endpoint of the REST API with an unmodified, widely used Go client, through both doors.
package conformance

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/ids"
	"github.com/forgeplane/forgeplane/test/controlplane"
	"github.com/forgeplane/forgeplane/test/forgeplane"
	"github.com/forgeplane/forgeplane/test/installation"
	"github.com/forgeplane/forgeplane/test/patience"
	"github.com/forgeplane/forgeplane/test/process"
	"github.com/forgeplane/forgeplane/test/rest"
	"github.com/forgeplane/forgeplane/test/terminal"
)

const polling = 20 * time.Millisecond

// All specs share one control plane with one Forgeplane, and the administrator of the cluster.
var (
	controlPlane *controlplane.ControlPlane
	admin        terminal.Terminal
	api          client.Client
	// processes are the parts of Forgeplane, in the order in which they were started.
	processes []*process.Process
	ports     installation.Ports
	// told collects the expected content of the server's audit log.
	told *account
	// logs are the audit logs of the accounts.
	logs = map[string]string{}
	// checkout is the source of the installation.
	checkout *installation.Checkout
	// activityDatabase is the file of the activity database.
	activityDatabase string
)

var _ = BeforeSuite(func() {
	checkout = installation.NewCheckout()
	cluster := checkout.StartCluster(forgeplane.Manager.Account(), forgeplane.APIServer.Account())
	admin, api, controlPlane = cluster.Admin, cluster.Client, cluster.ControlPlane

	url := startForgeplane(filepath.Dir(checkout.Program("forgeplane")))
	introducePeople()
	openDoors(url)
})

// startForgeplane starts Forgeplane with a shard as in a cluster: the controllers and a server, each in a process with its own account. It returns
// the server's own address when both are ready.
func startForgeplane(programs string) (url string) {
	GinkgoHelper()
	root := GinkgoT().TempDir()
	shard := filepath.Join(root, "shard")
	Expect(os.Mkdir(shard, 0o700)).To(Succeed())
	storage := &v1alpha1.RepositoryStorage{Spec: v1alpha1.RepositoryStorageSpec{Path: shard}}
	storage.Name = "default"
	Expect(api.Create(context.Background(), storage)).To(Succeed())
	ports, activityDatabase = installation.FreePorts(), filepath.Join(root, "activity.db")
	part := func(p forgeplane.Part, health int) forgeplane.Options {
		directory := filepath.Join(root, string(p))
		Expect(os.Mkdir(directory, 0o700)).To(Succeed())
		return forgeplane.Options{
			Part: p, Programs: programs, Data: directory, Logs: directory, Activity: activityDatabase,
			HTTPPort: ports.HTTP, TLSPort: ports.TLS, HealthPort: health, ControlPlane: controlPlane,
		}
	}
	// The certificate of an earlier server is no longer valid.
	Expect(api.Create(context.Background(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: forgeplane.Namespace, Name: "forgeplane-apiserver-tls"},
		Type:       corev1.SecretTypeTLS, Data: map[string][]byte{corev1.TLSCertKey: {}, corev1.TLSPrivateKeyKey: {}},
	})).To(Succeed())
	server := part(forgeplane.APIServer, ports.Health)
	server.Flags = []string{limitCostly()}
	told = newAccount(filepath.Join(server.Logs, forgeplane.AuditLog))
	// A cluster of version 1.33 does not stream lists. Without this feature, the informers of the server request lists.
	start(server, "KUBE_FEATURE_WatchListClient=false")
	admin.Kubectl("wait", "--for=create", "--timeout=60s", "apiservice/v4.rest.forgeplane.dev")
	admin.Kubectl("wait", "--for=condition=Available", "--timeout=60s", "apiservice/v4.rest.forgeplane.dev")
	// Each part creates the counters of ids when it is the first to need one.
	Expect(rest.ThroughKubernetes(controlPlane.Administrator()).Call("POST /users", firstUser)).To(HaveField("Status", http.StatusCreated))
	admin.Kubectl("delete", "configmap", ids.ConfigMap, "--namespace="+forgeplane.Namespace)
	start(part(forgeplane.Manager, installation.FreePorts().Health))
	return fmt.Sprintf("http://127.0.0.1:%d", ports.HTTP)
}

// firstUser is created while no controller runs.
const firstUser = `{"username":"early","name":"Early","email":"early@example.com","password":"Early-and-unused-1"}`

// start starts a process, and returns when it is ready.
func start(o forgeplane.Options, env ...string) {
	GinkgoHelper()
	logs[o.Part.Account()] = filepath.Join(o.Logs, forgeplane.AuditLog)
	program, err := o.Program()
	Expect(err).NotTo(HaveOccurred())
	program.Env = append(os.Environ(), env...)
	p, err := process.Start(program)
	Expect(err).NotTo(HaveOccurred())
	processes = append(processes, p)
	DeferCleanup(func() { Expect(p.Stop()).To(Succeed()) })
	Expect(o.AwaitReady(p, patience.Wait)).To(Succeed(), func() string { return p.Tail() })
}
