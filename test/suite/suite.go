// Package suite runs the specs of a package.
package suite

import (
	"slices"
	"testing"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	"github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/test/patience"
	"github.com/forgeplane/forgeplane/test/seed"
	"github.com/forgeplane/forgeplane/test/soak"
)

// Soak labels specs that only "make soak" runs.
var Soak = ginkgo.Label("soak")

// Whole reports whether all specs have run that are not left to "make soak".
func Whole(r ginkgo.Report) bool {
	return !slices.ContainsFunc(r.SpecReports, func(s ginkgo.SpecReport) bool {
		return s.State == types.SpecStateSkipped && !slices.Contains(s.Labels(), Soak[0])
	})
}

// Run runs the specs of a package. The seed of the tests decides their order and what GinkgoRandomSeed returns, and Eventually waits for
// patience.Wait. options change the configuration of the run.
func Run(t *testing.T, name string, options ...func(*types.SuiteConfig)) {
	t.Helper()
	gomega.RegisterFailHandler(ginkgo.Fail)
	gomega.SetDefaultEventuallyTimeout(patience.Wait)
	configuration, reporter := ginkgo.GinkgoConfiguration()
	configuration.RandomSeed = int64(seed.Value()) //nolint:gosec // the seed is below 2^63
	if configuration.LabelFilter == "" && !soak.Running() {
		configuration.LabelFilter = "!soak"
	}
	for _, o := range options {
		o(&configuration)
	}
	ginkgo.RunSpecs(t, name, configuration, reporter)
}

// AbortOn aborts the suite when a program that all specs need ends: failed receives its error. Without it, each remaining spec would
// wait for its own time limit. It returns when done is closed.
func AbortOn(failed <-chan error, done <-chan struct{}) {
	select {
	case err := <-failed:
		// Ginkgo ignores an abort while it handles the failure of a spec.
		for again := time.NewTicker(time.Second); ; {
			abort(err)
			select {
			case <-again.C:
			case <-done:
				again.Stop()
				return
			}
		}
	case <-done:
	}
}

func abort(err error) {
	defer ginkgo.GinkgoRecover()
	ginkgo.AbortSuite(err.Error())
}
