package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/internal/credential"
	"github.com/forgeplane/forgeplane/internal/triggertoken"
	"github.com/forgeplane/forgeplane/test/forgeplane"
	"github.com/forgeplane/forgeplane/test/rest"
)

// trigger is a trigger token as REST shows it.
type trigger struct {
	ID          int64
	Description string
	Token       string
	Owner       *struct{ Username string }
}

var _ = Describe("A trigger token", Ordered, func() {
	const triggers = "/projects/tower%2Fapp/triggers"
	const nightly = "triggertoken/nightly"
	var tower team
	var max, identity rest.Client

	const manifest = `
apiVersion: forgeplane.dev/v1alpha1
kind: TriggerToken
metadata: {name: nightly, namespace: TEAM}
spec: {projectRef: {name: app}, ownerRef: {path: TEAM-max}, description: Every night}
`

	BeforeAll(func() {
		tower = newTeam("tower")
		max = tower.rest("max")
		identity = throughKubernetes()
	})

	// value returns the value in a Secret of the team or of the platform. Nobody else may learn it.
	value := func(secret, key string) string {
		GinkgoHelper()
		namespace := "tower"
		if strings.HasPrefix(secret, "trigger-token-") {
			namespace = forgeplane.Namespace
		}
		v := admin.Kubectl("get", "secret", secret, "--namespace="+namespace, "--output=go-template={{index .data "+fmt.Sprintf("%q", key)+" | base64decode}}")
		Expect(v).NotTo(BeEmpty())
		credentials[v] = true
		return v
	}
	// issued returns the Secret of the platform that contains the value of a token.
	issued := func(object string) string {
		GinkgoHelper()
		return tower.show(object, "{.status.secretRef.name}")
	}
	shown := func(c rest.Client, id string) trigger {
		GinkgoHelper()
		return rest.Must[trigger](c, http.StatusOK, "GET "+triggers+"/"+id, "")
	}
	field := func(path, object string) string {
		GinkgoHelper()
		return tower.show(object, "{"+path+"}")
	}
	// expectAnother waits until the token has another value, and its owner can see that value.
	expectAnother := func(object, than string) string {
		GinkgoHelper()
		id := field(".spec.id", object)
		var now string
		begun := time.Now()
		Eventually(func() string { now = shown(max, id).Token; return now }).WithPolling(polling).
			ShouldNot(BeElementOf("", than))
		report("another value after", time.Since(begun))
		credentials[now] = true
		tower.waitReady(object)
		Expect(field(".status.digest", object)).To(Equal(credential.Digest(now)))
		return now
	}

	It("that is declared can be seen over REST, and belongs to its owner", func() {
		tower.apply(manifest)
		tower.waitReady(nightly)
		id := field(".spec.id", nightly)
		v := value(issued(nightly), "token")
		Expect(v).To(HavePrefix(triggertoken.Prefix))
		is := And(HaveField("Description", "Every night"), HaveField("Owner.Username", "tower-max"))
		expectShown[trigger](max, triggers+"/"+id, And(is, HaveField("Token", v)))
		Expect(shown(identity, id)).To(And(is, HaveField("Token", strings.TrimPrefix(v, triggertoken.Prefix)[:4])))
		Expect(rest.Must[[]trigger](max, http.StatusOK, "GET "+triggers, "")).To(HaveExactElements(HaveField("Token", v)))
	})

	It("is not written again when the same YAML is applied again", func() {
		versions := func() string {
			GinkgoHelper()
			return tower.kubectl("get", "triggertokens,secrets", "--output=jsonpath={.items[*].metadata.resourceVersion}")
		}
		for _, options := range [][]string{nil, {"--server-side", "--force-conflicts"}} {
			text := strings.ReplaceAll(manifest, "TEAM", "tower")
			apply := append([]string{"apply", "--filename=-"}, options...)
			admin.DoWith(text, "kubectl", apply...)
			before := versions()
			Expect(admin.DoWith(text, "kubectl", apply...)).To(MatchRegexp(" (unchanged|serverside-applied)$"))
			Consistently(versions).WithTimeout(500 * time.Millisecond).WithPolling(100 * time.Millisecond).Should(Equal(before))
		}
	})

	It("can be changed from both sides, and each sees the changes of the other", func() {
		id := field(".spec.id", nightly)
		Expect(rest.Must[trigger](max, http.StatusOK, "PUT "+triggers+"/"+id, `{"description":"Every week"}`).Description).To(Equal("Every week"))
		Expect(field(".spec.description", nightly)).To(Equal("Every week"))
		Expect(identity.Status("PUT " + triggers + "/" + id)).To(Equal(http.StatusForbidden))
		tower.patch(nightly, `{"spec":{"description":"Every month"}}`)
		for _, client := range []rest.Client{max, identity} {
			Eventually(func() string { return shown(client, id).Description }).WithPolling(polling).Should(Equal("Every month"))
		}
	})

	It("gets another value when its Secret is deleted, and for each text of an annotation", func() {
		first := value(issued(nightly), "token")
		admin.Kubectl("delete", "secret", issued(nightly), "--namespace="+forgeplane.Namespace)
		second := expectAnother(nightly, first)
		rotate := func(text string) {
			GinkgoHelper()
			tower.kubectl("annotate", "--overwrite", nightly, "forgeplane.dev/rotate="+text)
			tower.wait(nightly, "{.status.rotated}", text)
		}
		rotate("june")
		third := expectAnother(nightly, second)
		rotate("july")
		fourth := expectAnother(nightly, third)
		Expect(value(issued(nightly), "token")).To(Equal(fourth))
		rotated := field(".status.digest", nightly)
		tower.kubectl("annotate", "--overwrite", nightly, "note=nothing-of-this-kind")
		Consistently(field).WithArguments(".status.digest", nightly).WithTimeout(300 * time.Millisecond).WithPolling(50 * time.Millisecond).Should(Equal(rotated))
	})

	It("adopts a Secret that is labeled for it, follows it, shows its value to nobody, and leaves it behind", func() {
		const chosen = "a-value-that-the-team-has-chosen"
		credentials[chosen], credentials[chosen+"-2"] = true, true
		tower.kubectl("create", "secret", "generic", "vault", "--from-literal=ci="+chosen)
		tower.apply(`
apiVersion: forgeplane.dev/v1alpha1
kind: TriggerToken
metadata: {name: adopting, namespace: TEAM}
spec: {projectRef: {name: app}, ownerRef: {name: TEAM-max}, secretRef: {name: vault, key: ci}}
`)
		tower.wait("triggertoken/adopting", reason, "ReferenceNotFound")
		_, remedy, _ := strings.Cut(field(`.status.conditions[?(@.type=="Ready")].message`, "triggertoken/adopting"), ": kubectl ")
		tower.kubectl(strings.Fields(remedy)...)
		tower.waitReady("triggertoken/adopting")
		Expect(field(".status.digest", "triggertoken/adopting")).To(Equal(credential.Digest(chosen)))
		id := field(".spec.id", "triggertoken/adopting")
		expectShown[trigger](max, triggers+"/"+id, HaveField("Token", BeEmpty()))
		Expect(tower.kubectl("get", "secret/vault", "--output=jsonpath={.metadata.ownerReferences}")).To(BeEmpty())

		tower.kubectl("patch", "secret/vault", "--patch", `{"stringData":{"ci":"short"}}`)
		tower.wait("triggertoken/adopting", `{.status.conditions[?(@.type=="Stalled")].status}`, "True")
		Expect(field(`.status.conditions[?(@.type=="Ready")].message`, "triggertoken/adopting")).To(ContainSubstring("shorter than 20 characters"))
		tower.kubectl("patch", "secret/vault", "--patch", `{"stringData":{"ci":"`+chosen+`-2"}}`)
		tower.waitReady("triggertoken/adopting")
		Eventually(field).WithArguments(".status.digest", "triggertoken/adopting").WithPolling(polling).Should(Equal(credential.Digest(chosen + "-2")))

		tower.kubectl("annotate", "triggertoken/adopting", "forgeplane.dev/rotate=june")
		tower.wait("triggertoken/adopting", `{.status.conditions[?(@.type=="Stalled")].status}`, "True")
		Expect(max.Status("DELETE " + triggers + "/" + id)).To(Equal(http.StatusNoContent))
		Expect(tower.kubectl("get", "triggertoken", "--output=name")).NotTo(ContainSubstring("adopting"))
		Expect(value("vault", "ci")).To(Equal(chosen + "-2"))
	})

	It("that was created over REST has its value at once, in a Secret, and can be removed with kubectl", func() {
		begun := time.Now()
		made := rest.Must[trigger](max, http.StatusCreated, "POST "+triggers, `{"description":"Made"}`)
		report("trigger token made after", time.Since(begun))
		credentials[made.Token] = true
		Expect(made.Token).To(HavePrefix(triggertoken.Prefix))
		id := fmt.Sprint(made.ID)
		Expect(shown(max, id)).To(Equal(made))
		name := tower.kubectl("get", "triggertokens", "--field-selector=spec.id="+id, "--output=jsonpath={.items[*].metadata.name}")
		secret := issued("triggertoken/" + name)
		Expect(value(secret, "token")).To(Equal(made.Token))
		tower.waitReady("triggertoken/" + name)
		Expect(value(secret, "token")).To(Equal(made.Token))
		tower.kubectl("delete", "triggertoken", name)
		admin.Kubectl("wait", "--for=delete", "--timeout=30s", "secret/"+secret, "--namespace="+forgeplane.Namespace)
		Eventually(max.Status).WithArguments("GET " + triggers + "/" + id).WithPolling(polling).Should(Equal(http.StatusNotFound))
	})

	It("is not shown in an object, an event or a log", func() {
		Expect(len(credentials)).To(BeNumerically(">=", 8), "those of the specs above")
		expectCleanLogs()
		expectNoCredential("an object", tower.kubectl("get", "triggertokens,events,projects", "--output=yaml", "--show-managed-fields"))
	})

	It("is deleted with its project if it was created over REST, and otherwise by those who declare it, together with its Secret", func() {
		rest.Must[trigger](max, http.StatusCreated, "POST "+triggers, `{"description":"Last"}`)
		Expect(tower.kubectl("get", "triggertokens", "--output=name")).NotTo(BeEmpty())
		tower.kubectl("delete", "project", "app", "--timeout=60s")
		Eventually(tower.kubectl).WithArguments("get", "triggertokens", "--output=name").WithPolling(polling).
			Should(Equal("triggertoken.forgeplane.dev/nightly"))
		tower.kubectl("delete", "triggertoken", "nightly", "--timeout=60s")
		Eventually(tower.kubectl).WithArguments("get", "secrets", "--output=name").WithPolling(polling).
			Should(Equal("secret/vault"), "which was the team's own")
	})
})
