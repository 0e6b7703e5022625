// Package crash kills Forgeplane at random moments, removes its storage and its hooks, and checks what is left.
package crash

import (
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/test/installation"
	"github.com/forgeplane/forgeplane/test/suite"
	"github.com/forgeplane/forgeplane/test/terminal"
)

func TestCrash(t *testing.T) {
	suite.Run(t, "Crashes and faults")
}

const polling = 20 * time.Millisecond

// All specs share a control plane that is never killed, and a machine on which Forgeplane runs. The administrator of the cluster uses a terminal,
// or a client if the terminal is too slow.
var (
	checkout *installation.Checkout
	machine  *host
	admin    terminal.Terminal
	api      client.Client
)

var _ = BeforeSuite(func() {
	checkout = installation.NewCheckout()
	cluster := checkout.StartCluster()
	admin, api = cluster.Admin, cluster.Client

	machine = newHost(cluster.ControlPlane)
	DeferCleanup(machine.stop)
	machine.start()
	admin.Apply(everybody)
	admin.WaitReady("user,accesstoken,group", "--all", "--all-namespaces")
})

// everybody are the objects that all specs share. Max owns the group in the namespace "yard".
const everybody = `
apiVersion: v1
kind: Namespace
metadata: {name: yard}
---
apiVersion: forgeplane.dev/v1alpha1
kind: User
metadata: {name: max}
spec: {username: max}
---
apiVersion: forgeplane.dev/v1alpha1
kind: AccessToken
metadata: {name: max}
spec: {userRef: {name: max}, scopes: [write_repository], secretRef: {name: max}}
---
apiVersion: forgeplane.dev/v1alpha1
kind: Group
metadata: {name: yard, namespace: yard}
spec: {path: yard}
---
apiVersion: forgeplane.dev/v1alpha1
kind: Membership
metadata: {name: max, namespace: yard}
spec: {groupRef: {name: yard}, userRef: {name: max}, role: Owner}
`
