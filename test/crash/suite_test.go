// Package crash kills Forgeplane at random moments and takes away what it stands on, and looks at what is left.
package crash

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/test/controlplane"
	"github.com/forgeplane/forgeplane/test/installation"
	"github.com/forgeplane/forgeplane/test/terminal"
)

func TestCrash(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Crashes and faults")
}

const (
	// soon is for what follows from a change without further ado.
	soon    = 60 * time.Second
	polling = 20 * time.Millisecond
)

// What all specs share: a control plane that nobody kills, and a machine on which Forgeplane runs. The administrator of
// the cluster sits at a terminal, or uses a client where that is too slow.
var (
	checkout *installation.Checkout
	machine  *host
	admin    terminal.Terminal
	api      client.Client
)

var _ = BeforeSuite(func() {
	checkout = installation.NewCheckout()
	binaries, err := controlplane.FindBinaries()
	Expect(err).NotTo(HaveOccurred())
	admin = checkout.Terminal()
	admin = admin.With("KUBECONFIG="+filepath.Join(admin.Space(), "kubeconfig"), "PATH="+filepath.Dir(binaries.Kubectl)+":"+admin.Getenv("PATH"))
	controlPlane, err := controlplane.Start(context.Background(), controlplane.Options{
		Directory: filepath.Join(GinkgoT().TempDir(), "control-plane"), Binaries: binaries, Ephemeral: true, Prepare: install,
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(controlPlane.Stop()).To(Succeed()) })

	machine = newHost(controlPlane)
	DeferCleanup(machine.stop)
	machine.start()
	admin.Apply(everybody)
	admin.WaitReady("user,accesstoken,group", "--all", "--all-namespaces")
})

// install puts config/default into the cluster.
func install(_ context.Context, administrator *rest.Config) (err error) {
	Expect(controlplane.WriteKubeconfig(admin.Getenv("KUBECONFIG"), administrator)).To(Succeed())
	admin.Kubectl("apply", "--server-side", "--kustomize=config/default")
	admin.Kubectl("wait", "--for=condition=Established", "--timeout=60s", "crd", "--all")
	scheme := runtime.NewScheme()
	Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())
	api, err = client.New(administrator, client.Options{Scheme: scheme})
	return err
}

// everybody is who and what the specs have in common: Max, who owns the group in the namespace "yard".
const everybody = `
apiVersion: v1
kind: Namespace
metadata: {name: yard}
---
apiVersion: forgeplane.dev/v1alpha1
kind: User
metadata: {name: max}
spec: {username: max}
---
apiVersion: forgeplane.dev/v1alpha1
kind: AccessToken
metadata: {name: max}
spec: {userRef: {name: max}, scopes: [write_repository], secretRef: {name: max}}
---
apiVersion: forgeplane.dev/v1alpha1
kind: Group
metadata: {name: yard, namespace: yard}
spec: {path: yard}
---
apiVersion: forgeplane.dev/v1alpha1
kind: Membership
metadata: {name: max, namespace: yard}
spec: {groupRef: {name: yard}, userRef: {name: max}, role: Owner}
`
