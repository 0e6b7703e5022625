// Package e2e has the specs that use Forgeplane as its users do. The packages of its parts run them.
package e2e

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/test/installation"
	"github.com/forgeplane/forgeplane/test/suite"
	"github.com/forgeplane/forgeplane/test/terminal"
)

// Part is a part of the specs. Each part is a package with an installation of its own, so that it takes less than half the time limit of a
// package.
type Part string

// These are the parts.
const (
	// Declarations are about objects as people declare, read and delete them.
	Declarations Part = "declarations"
	// Use is about clients: git, REST clients, mirrors and tokens.
	Use Part = "use"
)

// declarations are the files of the specs of Declarations.
var declarations = []string{"badges", "deletion", "health", "jobtokenscopes", "kubectl", "labels", "pruning", "samples", "shares", "visibility"}

// Run runs the specs of a part.
func Run(t *testing.T, p Part) {
	t.Helper()
	suite.Run(t, "Forgeplane from end to end: "+string(p), func(c *types.SuiteConfig) {
		filter := &c.SkipFiles
		if p == Declarations {
			filter = &c.FocusFiles
		}
		for _, name := range declarations {
			*filter = append(*filter, "/e2e/"+name+`\.go`)
		}
	})
}

const polling = 20 * time.Millisecond

// All specs share one checkout, the processes that run in it, and the terminal of the cluster's administrator. A spec that stops Forgeplane starts
// it again.
var (
	checkout *installation.Checkout
	ports    installation.Ports
	running  *installation.Run
	admin    terminal.Terminal
)

var _ = BeforeSuite(func() {
	checkout = installation.NewCheckout()
	ports = installation.FreePorts()
	DeferCleanup(func() {
		if running != nil {
			running.Stop()
		}
	})
	start()
})

// start starts make run, waits until it is ready and sources its environment.
func start() {
	GinkgoHelper()
	// Each part has only the rights of its own account. A spec waits until a push has exceeded its time limit. After a crash, the only manager
	// need not wait until the Lease of the killed manager expires: test/replicas does.
	running = checkout.Start(append(ports.Variables(), "RUN_SPLIT=true", "RUN_FLAGS=--mirror-timeout=15s --leader-elect=false")...)
	running.WaitReady()
	admin = checkout.Sourced()
	connect()
}

// After everything that the specs have done, no log and no object contains a credential, and Argo CD judges every object like kstatus. At the end,
// make run is killed, which leaves none of its processes.
var _ = AfterSuite(func() {
	if admin.Env == nil {
		return // it was never ready
	}
	expectCleanLogs()
	Expect(verdicts(every())).NotTo(BeEmpty())
	kinds := slices.DeleteFunc(strings.Fields(admin.Kubectl("api-resources", "--verbs=list", "--output=name")),
		func(kind string) bool { return kind == "secrets" })
	Expect(kinds).To(ContainElements("projects.forgeplane.dev", "events.events.k8s.io"))
	expectNoCredential("an object",
		admin.Kubectl("get", strings.Join(kinds, ","), "--all-namespaces", "--output=yaml", "--show-managed-fields"))
	running.Kill()
	Eventually(checkout.Processes).WithPolling(polling).Should(BeEmpty())
})

// expectCleanLogs expects that the logs and the output of the last two starts contain no credential.
func expectCleanLogs() {
	GinkgoHelper()
	for _, file := range checkout.Logs() {
		text, err := os.ReadFile(file)
		Expect(err).NotTo(HaveOccurred())
		expectNoCredential(file, string(text))
	}
}
