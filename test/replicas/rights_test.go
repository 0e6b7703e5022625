package replicas

import (
	"fmt"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/test/forgeplane"
	"github.com/forgeplane/forgeplane/test/rights"
)

var (
	// audited is the log of the requests that Forgeplane's accounts have sent to kube-apiserver.
	audited string
	// asked are the requests of the whole suite.
	asked *rights.Requests
)

var _ = AfterSuite(func() {
	if audited == "" {
		return // it was never ready
	}
	log, err := os.Open(audited)
	Expect(err).NotTo(HaveOccurred())
	defer log.Close()
	asked, err = rights.Seen(log, forgeplane.Namespace)
	Expect(err).NotTo(HaveOccurred())
})

// The conformance suite covers the other rights.
var _ = ReportAfterSuite("the accounts use the rights that they have for those who are killed, and miss none", func(r Report) {
	if asked == nil || !r.SuiteSucceeded {
		return
	}
	if r.PreRunStats.SpecsThatWillRun < r.PreRunStats.TotalSpecs {
		fmt.Fprintln(os.Stdout, "SKIPPED: whether these rights are used, which only the whole suite can tell")
		return
	}
	granted, err := rights.Granted(filepath.Join("..", "..", "config", "rbac", "role.yaml"))
	Expect(err).NotTo(HaveOccurred())
	unused := asked.Unused(granted)
	for _, right := range rights.OfSurvivors() {
		Expect(unused).NotTo(ContainElement(right), "nothing has needed it")
	}
	Expect(asked.Refused).To(BeEmpty(), "what the code needs and no rule allows")
})
