package e2e

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
)

var _ = Describe("A project or group that is shared with a group", Ordered, func() {
	var jetty team

	// share declares an object of the team, with the lines that share it, or without.
	share := func(object string, with ...string) {
		GinkgoHelper()
		jetty.apply("apiVersion: forgeplane.dev/v1alpha1\n" + object + strings.Join(with, ""))
	}
	const (
		project = "kind: Project\nmetadata: {name: app, namespace: TEAM}\nspec:\n  path: app\n  groupRef: {name: TEAM}\n  defaultBranch: main\n"
		group   = "kind: Group\nmetadata: {name: TEAM, namespace: TEAM}\nspec:\n  path: TEAM\n  visibility: Public\n"
		guests  = "  sharedWith: [{groupRef: {name: guests}, role: Developer}]\n"
	)

	BeforeAll(func() {
		jetty = newTeam("jetty")
		jetty.start()
		jetty.apply(`
apiVersion: forgeplane.dev/v1alpha1
kind: Group
metadata: {name: guests, namespace: TEAM}
spec: {path: TEAM-guests}
---
apiVersion: forgeplane.dev/v1alpha1
kind: Membership
metadata: {name: otto, namespace: TEAM}
spec: {groupRef: {name: guests}, userRef: {name: TEAM-otto}, role: Owner}
`)
		jetty.waitReady("group/guests", "membership/otto")
	})

	DescribeTable("takes pushes from the members of that group, until the share is removed", func(name, object string) {
		read := func() (string, error) { return jetty.as("otto").Try("git", "ls-remote", jetty.url("app")) }
		expectRefused("nothing is shared", read, "could not be found")
		share(object, guests)
		expectAccepted("the "+name+" is shared, and can be read", read)
		jetty.waitReady(name)
		otto := jetty.clone("otto")
		push := pushOf(otto, "from-"+name)
		expectAccepted("the "+name+" is shared, and takes pushes", push)
		expectRefused("the share gives the role Developer", pushOf(otto, "main"), "You have the Developer role.")
		share(object)
		expectRefused("the share of the "+name+" is removed", push, "could not be found")
		jetty.waitReady(name)
	},
		Entry("a project", "project", project),
		Entry("a group", "group", group),
	)
})
