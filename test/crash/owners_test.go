package crash

import (
	"bytes"
	"context"
	"fmt"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/test/forge"
	"github.com/forgeplane/forgeplane/test/forgeplane"
)

// halfMade has kube-apiserver stop every server between a group and its owner, and keep it from taking the group back.
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

// makers are who makes the group, and a token for REST.
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

var _ = Describe("Forgeplane, killed between a group and its owner", func() {
	It("makes the owner when it is started again", func() {
		admin.Apply(makers)
		admin.WaitReady("user,accesstoken,membership", "--all", "--all-namespaces")
		token := admin.Kubectl("get", "secret", "mia", "--namespace="+forgeplane.Namespace, "--output=go-template={{.data.token | base64decode}}")
		rest := func(method, path, body string) int {
			GinkgoHelper()
			r, err := http.NewRequest(method, fmt.Sprintf("http://127.0.0.1:%d/api/v4%s", machine.options.HTTPPort, path), bytes.NewBufferString(body))
			Expect(err).NotTo(HaveOccurred())
			r.Header.Set("PRIVATE-TOKEN", token)
			r.Header.Set("Content-Type", "application/json")
			answer, err := (&http.Client{Timeout: callTimeout}).Do(r)
			Expect(err).NotTo(HaveOccurred())
			defer answer.Body.Close()
			return answer.StatusCode
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
		}).WithTimeout(soon).WithPolling(polling).Should(MatchError(ContainSubstring("the server is dead by now")))
		Expect(rest("POST", "/groups", fmt.Sprintf(`{"name":"Cut","path":"cut","parent_id":%s}`, parent))).To(Equal(http.StatusUnprocessableEntity), "its owner is refused")
		machine.kill()
		admin.DoWith(halfMade, "kubectl", "delete", "--filename=-")
		machine.start()

		Expect(rest("GET", "/groups/yard%2Fcut", "")).To(Equal(http.StatusOK), "the path is taken")
		Eventually(func() int { return rest("PUT", "/groups/yard%2Fcut", `{"description":"mine"}`) }).
			WithTimeout(soon).WithPolling(polling).Should(Equal(http.StatusOK), "its maker owns it")
	})
})
