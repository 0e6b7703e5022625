package replicas

import (
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/test/forgeplane"
	"github.com/forgeplane/forgeplane/test/suite"
)

var _ = Describe("Two managers", Ordered, func() {
	BeforeAll(func() {
		start(manager, one)
		apply("led")()
		start(standby)
	})
	AfterAll(func() { standby.stop() })

	It("take over at once when the leader is stopped", func() {
		manager.stop()
		stopped := time.Now()
		apply("back")()
		report("the other leads after", time.Since(stopped))
		Eventually(admin.Kubectl).WithArguments("get", "events", "--namespace="+forgeplane.Namespace, "--field-selector=reason=LeaderElection").WithPolling(polling).Should(ContainSubstring("became leader"), "who asks the cluster is told")
		start(manager)
	})

	It("take over when the leader is killed, and the servers continue meanwhile", suite.Soak, func() {
		standby.kill()
		killed := time.Now()
		clone := admin.As("dana", token("dana")).Clone(one.address() + "/yard/app.git")
		clone.Commit("unled.txt", "Nobody leads.\n")
		clone.MustPush("unled")
		first := one.by("root")
		Expect(first.Call("POST "+rules, `{"name":"unled"}`)).To(HaveField("Status", http.StatusCreated))
		clone.Commit("unled.txt", "Nobody leads yet.\n")
		Expect(clone.RefusedPush("unled")).To(ContainSubstring(`Branch "unled" is protected`))
		apply("relieved")()
		report("the other leads after", time.Since(killed))
	})
})
