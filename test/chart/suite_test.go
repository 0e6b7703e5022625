// Package chart_test holds the Helm chart against what it is made from, the program that it runs, and a real cluster.
package chart_test

import (
	"context"
	"os/exec"
	"path/filepath"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/test/controlplane"
	"github.com/forgeplane/forgeplane/test/installation"
	"github.com/forgeplane/forgeplane/test/terminal"
)

func TestChart(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Helm chart")
}

// The chart is that of a checkout; who installs it sits at a terminal there, with Helm.
var (
	checkout *installation.Checkout
	admin    terminal.Terminal
)

var _ = BeforeSuite(func(ctx context.Context) {
	const root = "../.."
	made, err := exec.CommandContext(ctx, "make", "--no-print-directory", "--directory="+root, "helm").CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(made))
	helm, err := filepath.Abs(filepath.Join(root, "bin"))
	Expect(err).NotTo(HaveOccurred())
	binaries, err := controlplane.FindBinaries()
	Expect(err).NotTo(HaveOccurred())
	checkout = installation.NewCheckout()
	admin = checkout.Terminal()
	admin = admin.With("PATH=" + helm + ":" + filepath.Dir(binaries.Kubectl) + ":" + admin.Getenv("PATH"))
})
