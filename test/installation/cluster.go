package installation

import (
	"context"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/test/controlplane"
	"github.com/forgeplane/forgeplane/test/suite"
	"github.com/forgeplane/forgeplane/test/terminal"
)

// Cluster is a control plane with config/base in it, in which Forgeplane does not run yet. Its administrator uses a terminal in the checkout, or
// a client if the terminal is too slow.
type Cluster struct {
	*controlplane.ControlPlane
	Admin  terminal.Terminal
	Client client.WithWatch
}

// StartCluster starts a control plane that stops with the spec or suite. The suite is aborted if the control plane ends earlier. Its kube-apiserver logs the requests of the audited users.
func (c *Checkout) StartCluster(audited ...string) *Cluster {
	GinkgoHelper()
	binaries, err := controlplane.FindBinaries()
	Expect(err).NotTo(HaveOccurred())
	one := &Cluster{Admin: c.Terminal()}
	one.Admin = one.Admin.With(
		"KUBECONFIG="+filepath.Join(one.Admin.Space(), "kubeconfig"), "PATH="+filepath.Dir(binaries.Kubectl)+":"+one.Admin.Getenv("PATH"))
	one.ControlPlane, err = controlplane.Start(context.Background(), controlplane.Options{
		Directory: filepath.Join(GinkgoT().TempDir(), "control-plane"), Binaries: binaries, Ephemeral: true, Prepare: one.install, Audit: audited,
	})
	Expect(err).NotTo(HaveOccurred())
	ended := make(chan struct{})
	go suite.AbortOn(one.Failed(), ended)
	DeferCleanup(func() {
		close(ended)
		Expect(one.Stop()).To(Succeed())
	})
	return one
}

// install applies config/base to the cluster.
func (c *Cluster) install(_ context.Context, administrator *rest.Config) (err error) {
	Expect(controlplane.WriteKubeconfig(c.Admin.Getenv("KUBECONFIG"), administrator)).To(Succeed())
	c.Admin.Kubectl("apply", "--server-side", "--kustomize=config/base")
	c.Admin.Kubectl("wait", "--for=condition=Established", "--timeout=60s", "crd", "--all")
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		Expect(add(scheme)).To(Succeed())
	}
	c.Client, err = client.NewWithWatch(administrator, client.Options{Scheme: scheme})
	return err
}
