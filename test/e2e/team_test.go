package e2e

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/test/terminal"
)

// team is a namespace with a group, a project "app", the maintainer Max, the developer Dana, and Otto, who is not a member. All names begin with
// the name of the team, so that specs do not affect each other.
type team struct{ name string }

const teamManifests = `
apiVersion: v1
kind: Namespace
metadata: {name: TEAM}
---
apiVersion: forgeplane.dev/v1alpha1
kind: Group
metadata: {name: TEAM, namespace: TEAM}
spec: {path: TEAM, visibility: Public}
---
apiVersion: forgeplane.dev/v1alpha1
kind: Project
metadata: {name: app, namespace: TEAM}
spec: {path: app, groupRef: {name: TEAM}, defaultBranch: main}
---
apiVersion: forgeplane.dev/v1alpha1
kind: Membership
metadata: {name: max, namespace: TEAM}
spec: {groupRef: {name: TEAM}, userRef: {name: TEAM-max}, role: Maintainer}
---
apiVersion: forgeplane.dev/v1alpha1
kind: Membership
metadata: {name: dana, namespace: TEAM}
spec: {groupRef: {name: TEAM}, userRef: {name: TEAM-dana}, role: Developer}
`

const userManifests = `
---
apiVersion: forgeplane.dev/v1alpha1
kind: User
metadata: {name: USER}
spec: {username: USER}
---
apiVersion: forgeplane.dev/v1alpha1
kind: AccessToken
metadata: {name: USER}
spec: {userRef: {name: USER}, scopes: [write_repository], secretRef: {name: USER}}
`

// newTeam declares a team for one spec, and waits until all of it is Ready.
func newTeam(name string) team {
	GinkgoHelper()
	t := team{name}
	Expect(admin.Kubectl("get", "namespace", name, "--ignore-not-found", "--output=name")).To(BeEmpty(), "the team %s is taken", name)
	manifests := teamManifests
	var users []string
	for _, user := range []string{"max", "dana", "otto"} {
		user = t.user(user)
		manifests += strings.ReplaceAll(userManifests, "USER", user)
		users = append(users, "user/"+user, "accesstoken/"+user)
	}
	t.apply(manifests)
	admin.WaitReady(users...)
	t.waitReady("group,project,membership,protectedbranch", "--all")
	return t
}

// user returns the username of a member.
func (t team) user(name string) string { return t.name + "-" + name }

// as returns the terminal of Max, Dana or Otto.
func (t team) as(name string) terminal.Terminal {
	GinkgoHelper()
	return as(t.user(name), t.user(name))
}

// apply applies manifests, in which TEAM stands for the name.
func (t team) apply(manifests string) {
	GinkgoHelper()
	admin.Apply(strings.ReplaceAll(manifests, "TEAM", t.name))
}

// kubectl runs kubectl in the team's namespace.
func (t team) kubectl(args ...string) string {
	GinkgoHelper()
	return admin.Kubectl(append([]string{"--namespace", t.name}, args...)...)
}

// patch merges a patch into an object.
func (t team) patch(object, patch string) {
	GinkgoHelper()
	t.kubectl("patch", object, "--type=merge", "--patch", patch)
}

func (t team) waitReady(args ...string) {
	GinkgoHelper()
	admin.WaitReady(append([]string{"--namespace", t.name}, args...)...)
}

// url returns the address of a project, given as its path within the group.
func (t team) url(project string) string {
	return fmt.Sprintf("%s/%s/%s.git", admin.Getenv("FORGEPLANE_URL"), t.name, project)
}

// clone returns a work tree of the project "app" for one of the three users.
func (t team) clone(name string) terminal.Terminal {
	GinkgoHelper()
	return t.as(name).Clone(t.url("app"))
}

// start gives the default branch a first commit by Max, and returns the work tree.
func (t team) start() terminal.Terminal {
	GinkgoHelper()
	clone := t.clone("max")
	clone.Commit("README.md", "The beginning.\n")
	clone.MustPush("main")
	return clone
}
