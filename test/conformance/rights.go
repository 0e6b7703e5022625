package conformance

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/test/forgeplane"
	"github.com/forgeplane/forgeplane/test/rights"
)

// asked are the requests of Forgeplane's accounts in the whole suite, and held their rights.
var (
	asked *rights.Requests
	held  []rights.Right
)

// logged is the number of bytes in the audit log of kube-apiserver.
func logged() int64 {
	GinkgoHelper()
	log, err := os.Stat(controlPlane.AuditLog())
	Expect(err).NotTo(HaveOccurred())
	return log.Size()
}

// unused returns the rights that no request has needed since the audit log had a number of bytes.
func unused(since int64) []string {
	GinkgoHelper()
	return seen(since).Unused(granted())
}

func granted() []rights.Right {
	GinkgoHelper()
	all, err := rights.Granted(filepath.Join(checkout.Dir, "config", "rbac", "role.yaml"))
	Expect(err).NotTo(HaveOccurred())
	return all
}

// seen returns the requests of Forgeplane's accounts since the audit log had a number of bytes.
func seen(since int64) *rights.Requests {
	GinkgoHelper()
	log, err := os.Open(controlPlane.AuditLog())
	Expect(err).NotTo(HaveOccurred())
	defer log.Close()
	lines := bufio.NewReader(log)
	if since > 0 { // kube-apiserver can have been in the middle of a line
		_, err = log.Seek(since-1, io.SeekStart)
		Expect(err).NotTo(HaveOccurred())
		_, err = lines.ReadBytes('\n')
		Expect(err).To(Or(Not(HaveOccurred()), MatchError(io.EOF)))
	}
	q, err := rights.Seen(lines, forgeplane.Namespace)
	Expect(err).NotTo(HaveOccurred())
	return q
}

// A server removes its registration when it stops, and its audit log is complete then.
var _ = AfterSuite(func() {
	if len(processes) < 2 {
		return // Forgeplane has never been ready
	}
	identified := inForce()
	for _, p := range processes {
		Expect(p.Stop()).To(Succeed())
	}
	asked, held = seen(0), granted()
	told.check()
	checkWrites(identified)
})

// An account must not have rights that no request needs. The rights for killed processes are checked in test/replicas.
var _ = ReportAfterSuite("the accounts use each of their rights, and miss none", func(r Report) {
	if asked == nil || !r.SuiteSucceeded {
		return
	}
	if running != Resources || !whole(r) {
		fmt.Fprintln(os.Stdout, "SKIPPED: whether every right is used, which only all specs of Resources can tell")
		return
	}
	elsewhere := slices.Concat(rights.OfSurvivors(), rights.OfConflicts())
	unused := slices.DeleteFunc(asked.Unused(held), func(right string) bool { return slices.Contains(elsewhere, right) })
	Expect(unused).To(BeEmpty(), "nothing has needed them: take away those that no code needs, and have a spec do what needs the others")
	Expect(asked.Refused).To(BeEmpty(), "what the code needs and no rule allows")
})
