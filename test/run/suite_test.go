// Package run starts Forgeplane with "make run", stops it in each way, and starts it again.
package run

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/internal/accesstoken"
	"github.com/forgeplane/forgeplane/test/installation"
	"github.com/forgeplane/forgeplane/test/suite"
	"github.com/forgeplane/forgeplane/test/terminal"
)

func TestRun(t *testing.T) {
	suite.Run(t, "make run")
}

// All specs share one checkout, the processes that run in it, and the terminal of the cluster's administrator. A spec that stops Forgeplane starts
// it again.
var (
	checkout  *installation.Checkout
	ports     installation.Ports
	running   *installation.Run
	readyTime time.Duration
	admin     terminal.Terminal
)

var _ = BeforeSuite(func() {
	checkout = installation.NewCheckout()
	ports = installation.FreePorts()
	DeferCleanup(func() {
		if running != nil {
			running.Kill()
		}
	})
	start()
})

// start starts make run, waits until it is ready and sources its environment.
func start(env ...string) {
	GinkgoHelper()
	// Each part has only the rights of its own account.
	running = checkout.Start(slices.Concat(ports.Variables(), []string{"RUN_SPLIT=true"}, env)...)
	readyTime = running.WaitReady()
	admin = checkout.Sourced()
	// From now on, kubectl complains about no group.
	admin.Kubectl("wait", "--for=condition=Available", "--timeout=0", "apiservice/v4.rest.forgeplane.dev", "apiservice/v1alpha1.activity.forgeplane.dev")
}

// expectCleanLogs expects that the logs and the output of the last two starts contain no token, whether plain or encoded for HTTP and Secrets.
func expectCleanLogs() {
	GinkgoHelper()
	for _, file := range checkout.Logs() {
		text, err := os.ReadFile(file)
		Expect(err).NotTo(HaveOccurred())
		for _, form := range []string{accesstoken.Prefix, base64.StdEncoding.EncodeToString([]byte(admin.Getenv("FORGEPLANE_TOKEN")))} {
			Expect(strings.Contains(string(text), form)).To(BeFalse(), "%s holds a token", file)
		}
	}
}

// expectQuietLogs expects that the parts of Forgeplane have logged nothing: they log only warnings and errors by default.
func expectQuietLogs() {
	GinkgoHelper()
	for _, part := range []string{"manager", "apiserver"} {
		text, err := os.ReadFile(filepath.Join(checkout.Data(), "logs", part, "forgeplane.log"))
		Expect(err).NotTo(HaveOccurred())
		Expect(string(text)).To(BeEmpty(), part)
	}
}

// report puts a time into the report that Ginkgo makes of the spec.
func report(what string, took time.Duration) {
	AddReportEntry(fmt.Sprintf("%s %s", what, took.Round(time.Millisecond)), ReportEntryVisibilityAlways)
}
