package e2e

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Declared settings", Ordered, func() {
	var press team
	BeforeAll(func() {
		press = newTeam("press")
		press.start()
	})

	// declare applies memberships of the project and prunes all others that it has applied before, as a GitOps tool does with those in Git.
	declare := func(users ...string) {
		GinkgoHelper()
		var manifests []string
		for _, user := range users {
			manifests = append(manifests, strings.NewReplacer("TEAM", press.name, "USER", user).Replace(`
apiVersion: forgeplane.dev/v1alpha1
kind: Membership
metadata: {name: writer-USER, namespace: TEAM, labels: {tool: press}}
spec: {projectRef: {name: app}, userRef: {name: TEAM-USER}, role: Maintainer}
`))
		}
		admin.DoWith(strings.Join(manifests, "---"), "kubectl", "apply", "--namespace=press", "--prune", "--selector=tool=press",
			"--prune-allowlist=forgeplane.dev/v1alpha1/Membership", "--filename=-")
	}

	It("have no owner, and take effect at once when they are removed or pruned", func() {
		declare("dana", "otto")
		press.waitReady("memberships")
		Expect(press.kubectl("get", "memberships", "--output=jsonpath={.items[*].metadata.ownerReferences}")).To(BeEmpty())
		otto, dana := press.clone("otto"), press.clone("dana")
		expectAccepted("a membership is declared", pushOf(otto, "main"))
		declare("dana")
		Expect(press.kubectl("get", "memberships", "--output=name")).NotTo(ContainSubstring("otto"))
		expectRefused("a membership is pruned", pushOf(otto, "main"), "could not be found")
		expectAccepted("a membership stays", pushOf(dana, "next"))
		press.kubectl("delete", "membership", "writer-dana")
		dana.Git("fetch", "--quiet")
		dana.Git("reset", "--quiet", "--hard", "origin/main")
		expectRefused("a membership is deleted", pushOf(dana, "main"), "protected")
	})

	It("stay when their project is deleted, and are in force again for another one of the name", func() {
		declare("otto")
		press.waitReady("membership/writer-otto")
		press.patch("project/app", `{"spec":{"deletionPolicy":"Delete"}}`)
		press.kubectl("delete", "project", "app", "--timeout=60s")
		press.wait("membership/writer-otto", reason, "ReferenceNotFound")
		press.apply(teamManifests)
		press.waitReady("project/app", "membership/writer-otto")
	})
})
