package e2e

import (
	"fmt"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/apiserver/entity"
	"github.com/forgeplane/forgeplane/apiserver/v4/jobtokenscopes"
	"github.com/forgeplane/forgeplane/test/rest"
)

var _ = Describe("A job token scope", Ordered, func() {
	const path = "/projects/forge-a%2Fapp/job_token_scope"
	const manifest = `
apiVersion: forgeplane.dev/v1alpha1
kind: JobTokenScope
metadata: {name: app, namespace: forge-a}
spec:
  projectRef: {name: app}
  allowlist:
  - projectRef: {name: lib}
  - projectRef: {path: forge-b/app}
`
	var here, there team
	var max rest.Client
	var lib, abroad string

	BeforeAll(func() {
		here, there = newTeam("forge-a"), newTeam("forge-b")
		here.apply(`
apiVersion: forgeplane.dev/v1alpha1
kind: Project
metadata: {name: lib, namespace: TEAM}
spec: {path: lib, groupRef: {name: TEAM}}
---
apiVersion: forgeplane.dev/v1alpha1
kind: Project
metadata: {name: other, namespace: TEAM}
spec: {path: other, groupRef: {name: TEAM}}
`)
		here.waitReady("project/lib", "project/other")
		there.patch("project/app", `{"spec":{"visibility":"Public"}}`)
		lib, abroad = here.show("project/lib", "{.spec.id}"), there.show("project/app", "{.spec.id}")
		max = here.rest("max")
	})

	settings := func() jobtokenscopes.Settings {
		GinkgoHelper()
		return rest.Must[jobtokenscopes.Settings](max, http.StatusOK, "GET "+path, "")
	}
	paths := func() (all []string) {
		GinkgoHelper()
		for _, p := range rest.Must[[]entity.ProjectSummary](max, http.StatusOK, "GET "+path+"/allowlist", "") {
			all = append(all, p.PathWithNamespace)
		}
		return all
	}
	field := func(path string) string {
		GinkgoHelper()
		return here.show("jobtokenscope/app", "{"+path+"}")
	}

	It("that is applied can be read over REST, and is not written when it is applied again", func() {
		Expect(settings()).To(Equal(jobtokenscopes.Settings{InboundEnabled: true}))
		Expect(paths()).To(BeEmpty())
		admin.Apply(manifest)
		here.waitReady("jobtokenscope/app")
		Eventually(paths).WithPolling(polling).Should(Equal([]string{"forge-a/lib", "forge-b/app"}))
		Expect(field(".status.allowlist[*].path")).To(Equal("forge-a/lib forge-b/app"))
		Expect(field(".metadata.ownerReferences[*].name")).To(BeEmpty())
		before := field(".metadata.resourceVersion")
		Expect(admin.Apply(manifest)).To(HaveSuffix(" unchanged"))
		Consistently(field).WithArguments(".metadata.resourceVersion").WithTimeout(quiet).WithPolling(quiet / 5).Should(Equal(before))
	})

	It("that was applied can be changed over REST, and keeps everything else", func() {
		Expect(max.Call("PATCH "+path, `{"enabled":false}`)).To(HaveField("Status", http.StatusNoContent))
		Expect(field(".spec.inboundEnabled")).To(Equal("false"))
		Expect(settings().InboundEnabled).To(BeFalse())
		Expect(max.Status("DELETE " + path + "/allowlist/" + abroad)).To(Equal(http.StatusNoContent))
		Expect(field(".spec.allowlist")).To(MatchJSON(`[{"projectRef":{"name":"lib"}}]`))
		rest.Must[jobtokenscopes.Addition](max, http.StatusCreated, "POST "+path+"/allowlist", fmt.Sprintf(`{"target_project_id":%s}`, abroad))
		Expect(field(".spec.allowlist")).To(MatchJSON(
			`[{"projectRef":{"name":"lib"}},{"projectRef":{"id":` + abroad + `,"uid":"` + there.show("project/app", "{.metadata.uid}") + `"}}]`))
		Expect(paths()).To(Equal([]string{"forge-a/lib", "forge-b/app"}))
		here.waitReady("jobtokenscope/app")
		Eventually(field).WithArguments(".status.allowlist[*].id").WithPolling(polling).Should(Equal(lib + " " + abroad))
	})

	It("names the entries that lead nowhere as soon as they do", func() {
		apply(manifest)
		here.waitReady("jobtokenscope/app")
		there.patch("project/app", `{"spec":{"path":"moved"}}`)
		Eventually(field).WithArguments(`.status.conditions[?(@.type=="Ready")].message`).WithPolling(polling).
			Should(Equal("these entries reference projects or groups that do not exist: allowlist[1] (forge-b/app)"))
		Expect(paths()).To(Equal([]string{"forge-a/lib"}))
		there.patch("project/app", `{"spec":{"path":"app"}}`)
		here.waitReady("jobtokenscope/app")
		Eventually(paths).WithPolling(polling).Should(Equal([]string{"forge-a/lib", "forge-b/app"}))
	})

	It("that is declared cannot be changed over REST if the project forbids that, and the answer names who declares it", func() {
		here.kubectl("delete", "jobtokenscope", "app")
		admin.DoWith(manifest, "kubectl", "apply", "--server-side", "--field-manager=argocd-controller", "--filename=-")
		here.waitReady("jobtokenscope/app")
		here.patch("project/app", `{"spec":{"restWrites":"RefuseDeclared"}}`)
		refused := And(HaveField("Status", http.StatusForbidden), HaveField("Body", MatchRegexp(`"message":"403 Forbidden - .*argocd-controller`)))
		// This request changes nothing if it comes before the server knows.
		Eventually(func() rest.Answer { return max.Call("PATCH "+path, `{"enabled":true}`) }).WithPolling(polling).Should(refused)
		for request, body := range map[string]string{
			"PATCH " + path:                        `{"enabled":false}`,
			"DELETE " + path + "/allowlist/" + lib: "",
			"POST " + path + "/allowlist":          `{"target_project_id":` + here.show("project/other", "{.spec.id}") + `}`,
		} {
			Expect(max.Call(request, body)).To(refused, request)
		}
		Expect(paths()).To(Equal([]string{"forge-a/lib", "forge-b/app"}))
	})

	It("that was created over REST can be seen, changed and removed with kubectl", func() {
		here.kubectl("delete", "jobtokenscope", "app")
		Eventually(paths).WithPolling(polling).Should(BeEmpty())
		rest.Must[jobtokenscopes.Addition](max, http.StatusCreated, "POST "+path+"/allowlist", fmt.Sprintf(`{"target_project_id":%s}`, lib))
		name := here.kubectl("get", "jobtokenscopes", "--output=name")
		here.waitReady(name)
		Expect(here.show(name, "{.spec.inboundEnabled} {.status.allowlist[*].path}")).To(Equal("true forge-a/lib"))
		here.patch(name, `{"spec":{"inboundEnabled":false,"allowlist":[]}}`)
		Eventually(settings).WithPolling(polling).Should(HaveField("InboundEnabled", false))
		Expect(paths()).To(BeEmpty())
		here.kubectl("delete", name)
		Eventually(settings).WithPolling(polling).Should(HaveField("InboundEnabled", true))
	})
})
