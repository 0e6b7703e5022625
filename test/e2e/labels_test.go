package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/forgeplane/forgeplane/apiserver/v4/labels"
	"github.com/forgeplane/forgeplane/test/rest"
)

var _ = Describe("Labels", Ordered, func() {
	const path = "/projects/loom%2Fapp/labels"
	var loom team
	var max, identity rest.Client

	const declared = `
apiVersion: forgeplane.dev/v1alpha1
kind: Label
metadata: {name: bug, namespace: loom}
spec: {projectRef: {name: app}, title: bug, color: orange, description: "Something is **wrong**", priority: 1}
---
apiVersion: forgeplane.dev/v1alpha1
kind: Label
metadata: {name: urgent, namespace: loom}
spec: {groupRef: {name: loom}, title: urgent, color: "#abc"}
`
	BeforeAll(func() {
		loom = newTeam("loom")
		loom.apply(`
apiVersion: forgeplane.dev/v1alpha1
kind: AccessToken
metadata: {name: TEAM-rest}
spec: {userRef: {name: TEAM-max}, scopes: [api], secretRef: {name: TEAM-rest}}
`)
		admin.WaitReady("accesstoken/loom-rest")
		max = rest.WithToken(admin.Getenv("FORGEPLANE_URL"), token("loom-rest"))
		config, err := clientcmd.BuildConfigFromFlags("", admin.Getenv("KUBECONFIG"))
		Expect(err).NotTo(HaveOccurred())
		identity = rest.ThroughKubernetes(config)
		admin.Kubectl("wait", "--for=condition=Available", "--timeout=30s", "apiservice/v4.rest.forgeplane.dev")
	})
	AfterAll(func() { admin.Kubectl("delete", "namespace", "loom", "--timeout=60s") })

	clients := func() map[string]rest.Client { return map[string]rest.Client{"token": max, "identity": identity} }
	// object returns the name of the object that declares a title, or an empty string if there is none.
	object := func(title string) string {
		GinkgoHelper()
		return loom.kubectl("get", "labels", "--field-selector=spec.title="+title, "--output=jsonpath={.items[*].metadata.name}")
	}

	It("that are declared can be seen over REST", func() {
		loom.apply(declared)
		loom.waitReady("label/bug", "label/urgent")
		for _, client := range clients() {
			all := expectShown[[]labels.Label](client, path, HaveExactElements(
				And(HaveField("Name", "bug"), HaveField("Color", "#FFA500"), HaveField("TextColor", "#FFFFFF"), HaveField("Priority", HaveValue(BeEquivalentTo(1))),
					HaveField("DescriptionHTML", "Something is <strong>wrong</strong>"), HaveField("IsProjectLabel", true)),
				And(HaveField("Name", "urgent"), HaveField("Color", "#abc"), HaveField("IsProjectLabel", false)),
			))
			Expect(loom.kubectl("get", "label", "bug", "--output=jsonpath={.status.id} {.status.color} {.status.textColor}")).
				To(Equal(fmt.Sprintf("%d #FFA500 #FFFFFF", all[0].ID)))
		}
	})

	DescribeTable("that are applied again are not written", func(options ...string) {
		apply := func() string {
			return admin.DoWith(declared, "kubectl", append([]string{"apply", "--filename=-"}, options...)...)
		}
		apply()
		versions := func() string {
			return loom.kubectl("get", "labels", "--output=jsonpath={.items[*].metadata.resourceVersion}")
		}
		before := versions()
		for line := range strings.SplitSeq(strings.TrimSpace(apply()), "\n") {
			Expect(line).To(MatchRegexp(" (unchanged|serverside-applied)$"))
		}
		Consistently(versions).WithTimeout(500 * time.Millisecond).WithPolling(100 * time.Millisecond).Should(Equal(before))
	},
		Entry("client-side"),
		Entry("server-side", "--server-side", "--force-conflicts"),
	)

	It("that are declared can be changed and removed over REST", func() {
		for _, client := range clients() {
			loom.apply(declared)
			loom.waitReady("label/bug", "label/urgent")
			expectShown[[]labels.Label](client, path, HaveExactElements(HaveField("Name", "bug"), And(HaveField("Name", "urgent"), HaveField("Priority", BeNil()))))
			changed := rest.Must[labels.Label](client, http.StatusOK, "PUT "+path+"/bug", `{"new_name":"defect","color":"teal","priority":null}`)
			Expect(loom.kubectl("get", "label", "bug", "--output=jsonpath={.spec.title} {.spec.color} {.spec.priority}|")).To(Equal("defect #008080 |"))
			Expect(loom.kubectl("get", "label", "bug", "--output=jsonpath={.spec.id}")).To(Equal(fmt.Sprint(changed.ID)))
			rest.Must[labels.Label](client, http.StatusOK, "PUT "+path+"/urgent", `{"priority":4}`)
			Expect(loom.kubectl("get", "project", "app", "--output=jsonpath={.spec.labelPriorities}")).To(MatchJSON(`[{"priority":4,"title":"urgent"}]`))
			Expect(client.Status("DELETE " + path + "/defect")).To(Equal(http.StatusNoContent))
			Expect(client.Status("DELETE " + path + "/urgent")).To(Equal(http.StatusNoContent))
			Expect(loom.kubectl("get", "labels", "--output=name")).To(BeEmpty())
			rest.Must[any](client, http.StatusOK, "PUT /projects/loom%2Fapp", `{"description":"Loom."}`)
			loom.patch("project/app", `{"spec":{"labelPriorities":null}}`)
		}
	})

	It("that were created over REST can be seen, changed and removed with kubectl", func() {
		for name, client := range clients() {
			title := "by-" + name
			made := rest.Must[labels.Label](client, http.StatusCreated, "POST "+path, fmt.Sprintf(`{"name":%q,"color":"Navy"}`, title))
			Expect(loom.kubectl("get", "label", object(title), "--output=jsonpath={.spec.id} {.spec.color} {.spec.projectRef.name}")).
				To(Equal(fmt.Sprintf("%d #000080 app", made.ID)))
			loom.waitReady("label/" + object(title))
			loom.patch("label/"+object(title), `{"spec":{"color":"white","priority":0}}`)
			expectShown[labels.Label](client, path+"/"+title,
				And(HaveField("Color", "#FFFFFF"), HaveField("TextColor", "#1F1E24"), HaveField("Priority", HaveValue(BeZero()))))
			loom.kubectl("delete", "label", object(title))
			Eventually(func() int { return client.Status("GET " + path + "/" + title) }).
				WithTimeout(soon).WithPolling(polling).Should(Equal(http.StatusNotFound))
		}
	})

	It("can be promoted, and the label of the group is Ready with the same id", func() {
		for name, client := range clients() {
			title := "up-" + name
			made := rest.Must[labels.Label](client, http.StatusCreated, "POST "+path, fmt.Sprintf(`{"name":%q,"color":"red","priority":2}`, title))
			Expect(max.Status("POST " + path + "/" + title + "/subscribe")).To(Equal(http.StatusCreated))
			was := object(title)
			promoted := rest.Must[labels.GroupLabel](client, http.StatusOK, "PUT "+path+"/"+title+"/promote", "")
			Expect(promoted.ID).To(Equal(made.ID))
			is := object(title)
			Expect(is).NotTo(Or(BeEmpty(), Equal(was)))
			loom.waitReady("label/" + is)
			Expect(loom.kubectl("get", "label", is, "--output=jsonpath={.status.id} {.spec.groupRef.name}")).To(Equal(fmt.Sprintf("%d loom", made.ID)))
			Expect(rest.Must[labels.Label](max, http.StatusOK, "GET "+path+"/"+title, "")).To(And(
				HaveField("ID", made.ID), HaveField("IsProjectLabel", false), HaveField("Subscribed", true), HaveField("Priority", HaveValue(BeEquivalentTo(2)))))
		}
	})

	It("that are declared cannot be changed over REST if the project forbids that, and the answer names who declares them", func() {
		const kept = `
apiVersion: forgeplane.dev/v1alpha1
kind: Label
metadata: {name: kept, namespace: loom}
spec: {projectRef: {name: app}, title: kept, color: red}
---
apiVersion: forgeplane.dev/v1alpha1
kind: Label
metadata: {name: tried, namespace: loom}
spec: {projectRef: {name: app}, title: tried, color: red}
`
		admin.DoWith(kept, "kubectl", "apply", "--server-side", "--field-manager=argocd-controller", "--filename=-")
		loom.waitReady("label/kept", "label/tried")
		expectShown[labels.Label](max, path+"/tried", HaveField("Color", "#FF0000"))
		rest.Must[labels.Label](max, http.StatusCreated, "POST "+path, `{"name":"made","color":"red"}`)
		loom.patch("project/app", `{"spec":{"restWrites":"RefuseDeclared"}}`)
		for _, client := range clients() {
			refused := func(g Gomega, request, body string) {
				a := client.Call(request, body)
				g.Expect(a.Status).To(Equal(http.StatusForbidden), "%s", a)
				g.Expect(a.Body).To(MatchRegexp(`"message":"403 Forbidden - .*argocd-controller`))
			}
			Eventually(refused).WithArguments("PUT "+path+"/tried", `{"color":"blue"}`).WithTimeout(soon).WithPolling(polling).Should(Succeed())
			refused(NewWithT(GinkgoT()), "PUT "+path+"/kept", `{"color":"blue"}`)
			refused(NewWithT(GinkgoT()), "DELETE "+path+"/kept", "")
			refused(NewWithT(GinkgoT()), "PUT "+path+"/kept/promote", "")
			Expect(client.Call("PUT "+path+"/made", `{"color":"blue"}`)).To(HaveField("Status", http.StatusOK))
		}
		Expect(max.Status("POST " + path + "/kept/subscribe")).To(Equal(http.StatusCreated))
		Expect(loom.kubectl("get", "label", "kept", "--output=jsonpath={.spec.color}")).To(Equal("red"))
	})
})
