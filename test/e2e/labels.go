package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/apiserver/v4/labels"
	"github.com/forgeplane/forgeplane/test/rest"
	"github.com/forgeplane/forgeplane/test/suite"
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
		max = loom.rest("max")
		identity = throughKubernetes()
	})

	clients := func() map[string]rest.Client { return map[string]rest.Client{"token": max, "identity": identity} }
	// object returns the name of the object that declares a title.
	object := func(title string) string {
		GinkgoHelper()
		found := loom.list("label", client.MatchingFields{"spec.title": title})
		Expect(found).To(HaveLen(1), title)
		return found[0].GetName()
	}

	It("that are declared can be seen over REST", func() {
		loom.apply(declared)
		loom.waitReady("label/bug", "label/urgent")
		for _, door := range clients() {
			all := expectShown[[]labels.Label](door, path, HaveExactElements(
				And(HaveField("Name", "bug"), HaveField("Color", "#FFA500"), HaveField("TextColor", "#FFFFFF"), HaveField("Priority", HaveValue(BeEquivalentTo(1))),
					HaveField("DescriptionHTML", "Something is <strong>wrong</strong>"), HaveField("IsProjectLabel", true)),
				And(HaveField("Name", "urgent"), HaveField("Color", "#abc"), HaveField("IsProjectLabel", false)),
			))
			Expect(loom.show("label/bug", "{.status.id} {.status.color} {.status.textColor}")).
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
		Entry("client-side", suite.Soak),
		Entry("server-side", "--server-side", "--force-conflicts"),
	)

	It("that are declared can be changed and removed over REST", func() {
		for _, door := range clients() {
			loom.apply(declared)
			loom.waitReady("label/bug", "label/urgent")
			expectShown[[]labels.Label](door, path, HaveExactElements(HaveField("Name", "bug"), And(HaveField("Name", "urgent"), HaveField("Priority", BeNil()))))
			changed := rest.Must[labels.Label](door, http.StatusOK, "PUT "+path+"/bug", `{"new_name":"defect","color":"teal","priority":null}`)
			Expect(loom.show("label/bug", "{.spec.title} {.spec.color} {.spec.priority}|")).To(Equal("defect #008080 |"))
			Expect(loom.show("label/bug", "{.spec.id}")).To(Equal(fmt.Sprint(changed.ID)))
			rest.Must[labels.Label](door, http.StatusOK, "PUT "+path+"/urgent", `{"priority":4}`)
			Expect(loom.show("project/app", "{.spec.labelPriorities}")).To(MatchJSON(`[{"priority":4,"title":"urgent"}]`))
			Expect(door.Status("DELETE " + path + "/defect")).To(Equal(http.StatusNoContent))
			Expect(door.Status("DELETE " + path + "/urgent")).To(Equal(http.StatusNoContent))
			Expect(loom.kubectl("get", "labels", "--output=name")).To(BeEmpty())
			rest.Must[any](door, http.StatusOK, "PUT /projects/loom%2Fapp", `{"description":"Loom."}`)
			loom.patch("project/app", `{"spec":{"labelPriorities":null}}`)
		}
	})

	It("that were created over REST can be seen, changed and removed with kubectl", func() {
		for name, door := range clients() {
			title := "by-" + name
			made := rest.Must[labels.Label](door, http.StatusCreated, "POST "+path, fmt.Sprintf(`{"name":%q,"color":"Navy"}`, title))
			Expect(loom.show("label/"+object(title), "{.spec.id} {.spec.color} {.spec.projectRef.name}")).
				To(Equal(fmt.Sprintf("%d #000080 app", made.ID)))
			loom.waitReady("label/" + object(title))
			loom.patch("label/"+object(title), `{"spec":{"color":"white","priority":0}}`)
			expectShown[labels.Label](door, path+"/"+title,
				And(HaveField("Color", "#FFFFFF"), HaveField("TextColor", "#1F1E24"), HaveField("Priority", HaveValue(BeZero()))))
			loom.kubectl("delete", "label", object(title))
			Eventually(func() int { return door.Status("GET " + path + "/" + title) }).WithPolling(polling).Should(Equal(http.StatusNotFound))
		}
	})

	It("can be promoted, and the label of the group is Ready with the same id", func() {
		for name, door := range clients() {
			title := "up-" + name
			made := rest.Must[labels.Label](door, http.StatusCreated, "POST "+path, fmt.Sprintf(`{"name":%q,"color":"red","priority":2}`, title))
			Expect(max.Status("POST " + path + "/" + title + "/subscribe")).To(Equal(http.StatusCreated))
			was := object(title)
			promoted := rest.Must[labels.GroupLabel](door, http.StatusOK, "PUT "+path+"/"+title+"/promote", "")
			Expect(promoted.ID).To(Equal(made.ID))
			is := object(title)
			Expect(is).NotTo(Equal(was))
			loom.waitReady("label/" + is)
			Expect(loom.show("label/"+is, "{.status.id} {.spec.groupRef.name}")).To(Equal(fmt.Sprintf("%d loom", made.ID)))
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
		for _, door := range clients() {
			refused := func(g Gomega, request, body string) {
				a := door.Call(request, body)
				g.Expect(a.Status).To(Equal(http.StatusForbidden), "%s", a)
				g.Expect(a.Body).To(MatchRegexp(`"message":"403 Forbidden - .*argocd-controller`))
			}
			Eventually(refused).WithArguments("PUT "+path+"/tried", `{"color":"blue"}`).WithPolling(polling).Should(Succeed())
			refused(NewWithT(GinkgoT()), "PUT "+path+"/kept", `{"color":"blue"}`)
			refused(NewWithT(GinkgoT()), "DELETE "+path+"/kept", "")
			refused(NewWithT(GinkgoT()), "PUT "+path+"/kept/promote", "")
			Expect(door.Call("PUT "+path+"/made", `{"color":"blue"}`)).To(HaveField("Status", http.StatusOK))
		}
		Expect(max.Status("POST " + path + "/kept/subscribe")).To(Equal(http.StatusCreated))
		Expect(loom.show("label/kept", "{.spec.color}")).To(Equal("red"))
	})
})
