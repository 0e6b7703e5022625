// Package chart_test compares the Helm chart with its sources, with the program that it runs, and with a real cluster.
package chart_test

import (
	"context"
	"path/filepath"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/test/controlplane"
	"github.com/forgeplane/forgeplane/test/installation"
	"github.com/forgeplane/forgeplane/test/suite"
	"github.com/forgeplane/forgeplane/test/terminal"
)

func TestChart(t *testing.T) {
	suite.Run(t, "Helm chart")
}

// The specs use the chart of a checkout, and a terminal with Helm in that checkout.
var (
	checkout *installation.Checkout
	admin    terminal.Terminal
)

var _ = BeforeSuite(func(ctx context.Context) {
	helm := installation.Helm(ctx)
	binaries, err := controlplane.FindBinaries()
	Expect(err).NotTo(HaveOccurred())
	checkout = installation.NewCheckout()
	admin = checkout.Terminal()
	admin = admin.With("PATH=" + helm + ":" + filepath.Dir(binaries.Kubectl) + ":" + admin.Getenv("PATH"))
})
