package crash

import (
	"context"
	"fmt"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/test/forge"
)

// halfMade makes kube-apiserver stop every server between a group and its owner, and prevents the server from removing the group again.
const halfMade = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: owners.crash}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
    - {apiGroups: [forgeplane.dev], apiVersions: ["*"], operations: [CREATE], resources: [memberships]}
    - {apiGroups: [forgeplane.dev], apiVersions: ["*"], operations: [DELETE], resources: [groups]}
  matchConditions:
  - {name: yard, expression: "request.namespace == 'yard'"}
  validations:
  - {expression: "false", message: "the server is dead by now"}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: owners.crash}
spec: {policyName: owners.crash, validationActions: [Deny]}
`

// makers are the user who creates the group, and their token for REST.
const makers = `
apiVersion: forgeplane.dev/v1alpha1
kind: User
metadata: {name: mia}
spec: {username: mia}
---
apiVersion: forgeplane.dev/v1alpha1
kind: AccessToken
metadata: {name: mia}
spec: {userRef: {name: mia}, scopes: [api], secretRef: {name: mia}}
---
apiVersion: forgeplane.dev/v1alpha1
kind: Membership
metadata: {name: mia, namespace: yard}
spec: {groupRef: {name: yard}, userRef: {name: mia}, role: Maintainer}
`

var _ = Describe("Forgeplane, killed between creating a group and its owner", func() {
	It("creates the owner when it is started again", func() {
		admin.Apply(makers)
		admin.WaitReady("user,accesstoken,membership", "--all", "--all-namespaces")
		token := tokenOf("mia")
		rest := func(method, path, body string) int {
			GinkgoHelper()
			return machine.rest(token, method, path, body)
		}
		parent := admin.Field(".status.id", "group", "yard", "--namespace=yard")
		DeferCleanup(func() {
			admin.Kubectl("delete", "group", "--namespace=yard", "--selector=forgeplane.dev/creator")
			admin.DoWith(makers, "kubectl", "delete", "--filename=-")
		})

		admin.Apply(halfMade)
		probe := forge.Membership(forge.User("mia").Build()).In(yard).Build()
		Eventually(func() error {
			return api.Create(context.Background(), probe.DeepCopy(), client.DryRunAll)
		}).WithPolling(polling).Should(MatchError(ContainSubstring("the server is dead by now")))
		Expect(rest("POST", "/groups", fmt.Sprintf(`{"name":"Cut","path":"cut","parent_id":%s}`, parent))).To(Equal(http.StatusUnprocessableEntity), "its owner is refused")
		machine.kill()
		admin.DoWith(halfMade, "kubectl", "delete", "--filename=-")
		machine.start()

		Expect(rest("GET", "/groups/yard%2Fcut", "")).To(Equal(http.StatusOK), "the path is taken")
		Eventually(func() int { return rest("PUT", "/groups/yard%2Fcut", `{"description":"mine"}`) }).WithPolling(polling).Should(Equal(http.StatusOK), "its maker owns it")
	})
})
