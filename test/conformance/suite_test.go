// Package conformance drives every endpoint of the REST API with the Go client that others use, as it is, through both doors.
package conformance

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/test/controlplane"
	"github.com/forgeplane/forgeplane/test/forgeplane"
	"github.com/forgeplane/forgeplane/test/installation"
	"github.com/forgeplane/forgeplane/test/process"
	"github.com/forgeplane/forgeplane/test/terminal"
)

func TestConformance(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Conformance of the REST API")
}

const (
	// soon is for what follows from a change without further ado.
	soon    = 60 * time.Second
	polling = 20 * time.Millisecond
)

// What all specs share: one control plane with one Forgeplane, and the administrator of the cluster.
var (
	controlPlane *controlplane.ControlPlane
	admin        terminal.Terminal
	api          client.Client
)

var _ = BeforeSuite(func() {
	checkout := installation.NewCheckout()
	cluster := checkout.StartCluster()
	admin, api, controlPlane = cluster.Admin, cluster.Client, cluster.ControlPlane

	url := startForgeplane(filepath.Dir(checkout.Program("forgeplane")))
	introducePeople()
	for _, condition := range []string{"create", "condition=Available"} {
		admin.Kubectl("wait", "--for="+condition, "--timeout=60s", "apiservice/v4.rest.forgeplane.dev")
	}
	openDoors(url)
})

// startForgeplane starts Forgeplane as make run does, with a shard, and returns its own address when it is ready.
func startForgeplane(programs string) (url string) {
	GinkgoHelper()
	ports := installation.FreePorts()
	root := GinkgoT().TempDir()
	options := forgeplane.Options{
		Programs: programs, Data: filepath.Join(root, "data"), Logs: filepath.Join(root, "logs"),
		HTTPPort: ports.HTTP, TLSPort: ports.TLS, HealthPort: ports.Health, ControlPlane: controlPlane,
	}
	shard := filepath.Join(root, "shard")
	for _, directory := range []string{options.Data, shard} {
		Expect(os.Mkdir(directory, 0o700)).To(Succeed())
	}
	storage := &v1alpha1.RepositoryStorage{Spec: v1alpha1.RepositoryStorageSpec{Path: shard}}
	storage.Name = "default"
	Expect(api.Create(context.Background(), storage)).To(Succeed())
	program, err := options.Program()
	Expect(err).NotTo(HaveOccurred())
	p, err := process.Start(program)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(p.Stop()).To(Succeed()) })
	Expect(options.AwaitReady(p, soon)).To(Succeed(), func() string { return p.Tail() })
	return fmt.Sprintf("http://127.0.0.1:%d", ports.HTTP)
}
