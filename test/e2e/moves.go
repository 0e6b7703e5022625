package e2e

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("A storage move", func() {
	It("loses no push that was accepted while it ran", func() {
		haul := newTeam("haul")
		clone := haul.start()
		haul.wait("project/app", "{.status.headCommit}", clone.Git("rev-parse", "HEAD"))

		var accepted string
		stop, ended := make(chan struct{}), make(chan struct{})
		go func() {
			defer GinkgoRecover()
			defer close(ended)
			for n := 0; ; n++ {
				id := clone.Commit("work.txt", fmt.Sprintf("%d\n", n))
				if screen, err := clone.Push("main"); err == nil {
					accepted = id
				} else {
					Expect(screen).To(ContainSubstring("The repository is temporarily read-only. Please try again later."))
				}
				select {
				case <-stop:
					return
				default:
				}
			}
		}()
		haul.apply(`
apiVersion: forgeplane.dev/v1alpha1
kind: StorageMove
metadata: {name: to-fast, namespace: TEAM}
spec: {projectRef: {name: app}, destination: fast}
`)
		haul.kubectl("wait", "--for=jsonpath={.status.state}=finished", "--timeout=2m", "storagemove/to-fast")
		close(stop)
		<-ended

		Expect(haul.show("project/app", "{.status.storage}")).To(Equal("fast"))
		Expect(accepted).NotTo(BeEmpty())
		moved := repositoryOf(haul.name, "app")
		Expect(admin.Git("--git-dir="+moved, "rev-parse", "main")).To(Equal(accepted))
		Expect(admin.Git("--git-dir="+moved, "fsck", "--full", "--strict", "--no-dangling")).To(BeEmpty())
		clone.Commit("work.txt", "After the move.\n")
		clone.MustPush("main")
	})
})
