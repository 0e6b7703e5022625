package e2e

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/test/terminal"
)

var _ = Describe("A protection", Ordered, func() {
	var dock team
	var dana, max terminal.Terminal

	BeforeAll(func() {
		dock = newTeam("dock")
		max, dana = dock.start(), dock.clone("dana")
		dock.apply(`
apiVersion: forgeplane.dev/v1alpha1
kind: Group
metadata: {name: crew, namespace: TEAM}
spec: {path: crew, parentRef: {name: TEAM}}
---
apiVersion: forgeplane.dev/v1alpha1
kind: DeployKey
metadata: {name: robot, namespace: TEAM}
spec: {projectRef: {name: app}, title: The robot, access: ReadWrite, publicKey: "` + publicKey + `"}
`)
		dock.waitReady("group/crew", "deploykey/robot")
	})

	// protect declares the protection of a branch, with further lines of its spec.
	protect := func(branch string, spec ...string) {
		GinkgoHelper()
		dock.apply(fmt.Sprintf(`
apiVersion: forgeplane.dev/v1alpha1
kind: ProtectedBranch
metadata: {name: %s, namespace: TEAM}
spec:
  projectRef: {name: app}
  branch: %[1]s
  %s
`, branch, strings.Join(spec, "\n  ")))
	}

	It("is created for the default branch, is deleted when one is declared, and does not come back", func() {
		made := func() []unstructured.Unstructured {
			return dock.list("protectedbranch", client.HasLabels{"forgeplane.dev/default-protection"})
		}
		Eventually(made).WithPolling(polling).Should(HaveLen(1))
		Expect(fill(&made()[0], "{.spec.branch} {.metadata.ownerReferences[*].name}")).To(Equal("main app"))
		try := pushOf(dana, "main")
		_, err := try()
		Expect(err).To(HaveOccurred())
		protect("main", "push: [{role: Developer}]")
		expectAccepted("another protection of the default branch is declared", try)
		Eventually(made).WithPolling(polling).Should(BeEmpty())
		dock.waitReady("protectedbranch/main")
		dock.kubectl("delete", "protectedbranch", "main")
		expectAccepted("the declared protection is deleted", try)
		admin.Kubectl("annotate", "project", "app", "--namespace=dock", "test=touched")
		Consistently(made).WithTimeout(quiet).WithPolling(quiet / 5).Should(BeEmpty())
	})

	It("that lets a user through lets nobody else through", func() {
		protect("user", "push: [{userRef: {name: dock-dana}}]")
		expectAccepted("a user may push", pushOf(dana, "user"))
		max.Commit("user.txt", "Max.\n")
		Expect(max.RefusedPush("user", "--force")).To(ContainSubstring(`only dock-dana may push to it. You have the Maintainer role.`))
	})

	It("that lets a group through lets its members through, as long as they are members", func() {
		protect("group", "push: [{groupRef: {name: crew}}]")
		try := pushOf(dana, "group")
		expectAccepted("a group may push, and its members are those of the group above, too", try)
		dock.apply(`
apiVersion: forgeplane.dev/v1alpha1
kind: Group
metadata: {name: guests, namespace: TEAM}
spec: {path: TEAM-guests}
`)
		dock.waitReady("group/guests")
		protect("group", "push: [{groupRef: {name: guests}}]")
		expectRefused("another group may push", try, "only the group dock-guests may push to it. You have the Developer role.")
		dock.apply(`
apiVersion: forgeplane.dev/v1alpha1
kind: Membership
metadata: {name: dana-guest, namespace: TEAM}
spec: {groupRef: {name: guests}, userRef: {name: TEAM-dana}, role: Guest}
`)
		expectAccepted("the user is a member of the group", try)
		dock.kubectl("delete", "membership", "dana-guest")
		expectRefused("the user is no member of the group any more", try, "only the group dock-guests may push to it")
	})

	It("that lets a deploy key through lets no person through", func() {
		protect("machine", "push: [{deployKeyRef: {name: robot}}]")
		expectRefused("a deploy key may push", pushOf(max, "machine"), `only the deploy key "The robot" may push to it. You have the Maintainer role.`)
		dock.waitReady("protectedbranch/machine")
		Expect(dock.show("protectedbranch/machine", "{.status.push[0].deployKeyID}")).
			To(Equal(dock.show("deploykey/robot", "{.spec.id}")))
	})

	It("can allow those who push to rewrite the branch", func() {
		protect("draft", "push: [{role: Developer}]")
		dana.Commit("draft.txt", "First.\n")
		dana.MustPush("draft")
		dana.Git("commit", "--quiet", "--amend", "--message", "Second thoughts")
		force := func() (string, error) { return dana.Push("draft", "--force") }
		_, err := force()
		Expect(err).To(HaveOccurred())
		protect("draft", "push: [{role: Developer}]", "allowForcePush: true")
		expectAccepted("force pushes are allowed", force)
	})

	It("applies to the projects below its group", func() {
		dock.apply(`
apiVersion: forgeplane.dev/v1alpha1
kind: ProtectedBranch
metadata: {name: everywhere, namespace: TEAM}
spec: {groupRef: {name: TEAM}, branch: "stable-*", push: [{role: NoOne}]}
`)
		expectRefused("a group protects a branch", pushOf(max, "stable-1"),
			`Branch "stable-1" is protected by "stable-*" (dock/everywhere): no one may push to it.`)
	})

	It("can require the approval of code owners", func() {
		max.Git("fetch", "--quiet")
		max.Git("reset", "--quiet", "--hard", "origin/main")
		max.Commit("CODEOWNERS", "/docs/ @dock-max\n")
		max.Commit("docs/guide.md", "Read me.\n")
		max.MustPush("owned")
		protect("owned", "push: [{role: Developer}]", "codeOwnerApprovalRequired: true")
		dock.waitReady("protectedbranch/owned")
		dana.Git("fetch", "--quiet")
		dana.Git("reset", "--quiet", "--hard", "origin/owned")
		dana.Commit("code.txt", "Not owned.\n")
		dana.MustPush("owned")
		dana.Commit("docs/guide.md", "Read me twice.\n")
		Expect(dana.RefusedPush("owned")).To(ContainSubstring(
			`and these files have code owners: "docs/guide.md". Change them in a merge request `))
		dana.MustPush("not-owned")
	})
})
