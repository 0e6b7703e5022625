package e2e

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/test/rest"
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
	taken := api.Get(context.Background(), client.ObjectKey{Name: name}, &corev1.Namespace{})
	Expect(apierrors.IsNotFound(taken)).To(BeTrue(), "the team %s is taken", name)
	manifests := teamManifests
	var users []string
	for _, user := range []string{"max", "dana", "otto"} {
		user = t.user(user)
		manifests += strings.ReplaceAll(userManifests, "USER", user)
		users = append(users, "user/"+user, "accesstoken/"+user)
	}
	t.apply(manifests)
	waitReady("", users...)
	t.waitReady("group", "project", "membership")
	Eventually(func() error { // the cache of the server can be some milliseconds behind
		_, err := t.as("max").Try("git", "ls-remote", t.url("app"))
		return err
	}).WithPolling(polling).Should(Succeed())
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
	apply(strings.ReplaceAll(manifests, "TEAM", t.name))
}

// kubectl runs kubectl in the team's namespace.
func (t team) kubectl(args ...string) string {
	GinkgoHelper()
	return admin.Kubectl(append([]string{"--namespace", t.name}, args...)...)
}

// patch merges a patch into an object.
func (t team) patch(object, change string) {
	GinkgoHelper()
	patch(t.name, object, change)
}

// show fills a template of kubectl with the fields of an object.
func (t team) show(object, template string) string {
	GinkgoHelper()
	return show(t.name, object, template)
}

// wait waits until an object shows a text.
func (t team) wait(object, template, text string) {
	GinkgoHelper()
	wait(t.name, object, template, text)
}

// list returns the team's objects of a kind.
func (t team) list(kind string, options ...client.ListOption) []unstructured.Unstructured {
	GinkgoHelper()
	return list(kind, append(options, client.InNamespace(t.name))...)
}

func (t team) waitReady(objects ...string) {
	GinkgoHelper()
	waitReady(t.name, objects...)
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

// rest declares a token with which a member calls the REST API.
func (t team) rest(name string) rest.Client {
	GinkgoHelper()
	user, of := t.user(name), t.user(name+"-rest")
	apply(fmt.Sprintf(`
apiVersion: forgeplane.dev/v1alpha1
kind: AccessToken
metadata: {name: %s}
spec: {userRef: {name: %s}, scopes: [api], secretRef: {name: %[1]s}}
`, of, user))
	waitReady("", "accesstoken/"+of)
	return rest.WithToken(admin.Getenv("FORGEPLANE_URL"), token(of))
}

// throughKubernetes returns a client that calls the REST API through kube-apiserver, as the cluster's administrator.
func throughKubernetes() rest.Client {
	GinkgoHelper()
	for _, state := range []string{"create", "condition=Available"} {
		admin.Kubectl("wait", "--for="+state, "--timeout=60s", "apiservice/v4.rest.forgeplane.dev")
	}
	config, err := clientcmd.BuildConfigFromFlags("", admin.Getenv("KUBECONFIG"))
	Expect(err).NotTo(HaveOccurred())
	return rest.ThroughKubernetes(config)
}
