package e2e

import (
	"bytes"
	"context"
	"crypto/sha1" //nolint:gosec // it is git's checksum
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/forgeplane/forgeplane/apiserver/v4/protectedbranches"
	"github.com/forgeplane/forgeplane/test/controlplane"
	"github.com/forgeplane/forgeplane/test/rest"
	"github.com/forgeplane/forgeplane/test/terminal"
)

// kubernetesPath is where kube-apiserver leads to the REST API.
const kubernetesPath = "/apis/rest.forgeplane.dev/v4"

type branch = protectedbranches.Branch

var _ = Describe("The REST API", Ordered, func() {
	const rules = "/projects/barn%2Fapp/protected_branches"
	var barn team
	var dana terminal.Terminal
	var max, identity rest.Client

	BeforeAll(func() {
		barn = newTeam("barn")
		barn.start()
		dana = barn.clone("dana")
		barn.apply(`
apiVersion: forgeplane.dev/v1alpha1
kind: AccessToken
metadata: {name: TEAM-rest}
spec: {userRef: {name: TEAM-max}, scopes: [api], secretRef: {name: TEAM-rest}}
`)
		admin.WaitReady("accesstoken/barn-rest")
		max = rest.WithToken(admin.Getenv("FORGEPLANE_URL"), token("barn-rest"))
		config, err := clientcmd.BuildConfigFromFlags("", admin.Getenv("KUBECONFIG"))
		Expect(err).NotTo(HaveOccurred())
		identity = rest.ThroughKubernetes(config)
		admin.Kubectl("wait", "--for=condition=Available", "--timeout=30s", "apiservice/v4.rest.forgeplane.dev")
	})

	// field is one of the object that protects a branch, as kubectl shows it.
	field := func(jsonpath, branch string) string {
		GinkgoHelper()
		name := ""
		for _, object := range admin.List("protectedbranch", "--namespace=barn") {
			if object.Object["spec"].(map[string]any)["branch"] == branch {
				name = object.GetName()
			}
		}
		Expect(name).NotTo(BeEmpty(), branch)
		return admin.Field(jsonpath, "protectedbranch", name, "--namespace=barn")
	}

	for door, client := range map[string]func() rest.Client{
		"its own address": func() rest.Client { return max }, "kube-apiserver": func() rest.Client { return identity },
	} {
		It("protects a branch through "+door+" so that kubectl sees it, and the very next push is refused", func() {
			name := "rest/" + strings.Fields(door)[0]
			try := pushOf(dana, name)
			Expect(try()).Error().NotTo(HaveOccurred())
			made := rest.Must[branch](client(), http.StatusCreated, "POST "+rules, fmt.Sprintf(`{"name":%q,"push_access_level":40}`, name))
			screen, err := try()
			Expect(err).To(HaveOccurred())
			Expect(screen).To(ContainSubstring("only Maintainers may push to it"))
			Expect(field(".spec.id", name)).To(Equal(fmt.Sprint(made.ID)))
			Expect(field(".spec.push[*].role", name)).To(Equal("Maintainer"))

			path := fmt.Sprintf("%s/%s", rules, strings.ReplaceAll(name, "/", "%2F"))
			rest.Must[branch](client(), http.StatusOK, "PATCH "+path, fmt.Sprintf(`{"allowed_to_push":[{"id":%d,"access_level":30}]}`, made.PushAccessLevels[0].ID))
			Expect(try()).Error().NotTo(HaveOccurred(), "developers may push now")
			rest.Must[branch](client(), http.StatusOK, "PATCH "+path, fmt.Sprintf(`{"allowed_to_push":[{"id":%d,"access_level":0}]}`, made.PushAccessLevels[0].ID))
			Expect(try()).Error().To(HaveOccurred(), "nobody may")
			Expect(client().Status("DELETE " + path)).To(Equal(http.StatusNoContent))
			Expect(try()).Error().NotTo(HaveOccurred(), "it is not protected any more")
		})
	}

	It("lists and changes what was declared with kubectl", func() {
		barn.apply(`
apiVersion: forgeplane.dev/v1alpha1
kind: ProtectedBranch
metadata: {name: by-hand, namespace: TEAM}
spec: {projectRef: {name: app}, branch: by-hand, push: [{role: NoOne}], merge: [{role: Maintainer}]}
`)
		barn.waitReady("protectedbranch/by-hand")
		for _, client := range []rest.Client{max, identity} {
			all := rest.Must[[]branch](client, http.StatusOK, "GET "+rules+"?search=BY-HAND", "")
			Expect(all).To(ConsistOf(HaveField("Name", "by-hand")))
			Expect(all[0].PushAccessLevels).To(ConsistOf(HaveField("AccessLevelDescription", "No one")))
		}
		try := pushOf(dana, "by-hand")
		Expect(try()).Error().To(HaveOccurred())
		changed := rest.Must[branch](max, http.StatusOK, "PATCH "+rules+"/by-hand", `{"allow_force_push":true,"allowed_to_push":[{"access_level":30}]}`)
		Expect(try()).Error().NotTo(HaveOccurred())
		Expect(barn.kubectl("get", "protectedbranch", "by-hand", "--output=jsonpath={.spec.push[*].role} {.spec.allowForcePush}")).
			To(Equal("NoOne Developer true"))
		barn.waitReady("protectedbranch/by-hand")
		Expect(rest.Must[branch](identity, http.StatusOK, "GET "+rules+"/by-hand", "")).To(Equal(changed))
		Expect(rest.Must[map[string]any](max, http.StatusForbidden, "PUT /projects/barn%2Fapp", `{"description":"Max does not own it."}`)).To(HaveKey("message"))
		rest.Must[any](identity, http.StatusOK, "PUT /projects/barn%2Fapp", `{"description":"Hay."}`)
		Expect(barn.kubectl("get", "project", "app", "--output=jsonpath={.spec.description}")).To(Equal("Hay."))
	})

	It("keeps the ids of access levels through each change, and no push slips through meanwhile", func() {
		path := rules + "/kept"
		made := rest.Must[branch](max, http.StatusCreated, "POST "+rules, `{"name":"kept","push_access_level":40}`)
		level, merge := made.PushAccessLevels[0].ID, made.MergeAccessLevels
		owner := rest.Must[struct{ ID int64 }](max, http.StatusOK, "GET /user", "").ID
		pushers := hammer(barn.url("app"), token("barn-dana"), "kept", dana.Git("rev-parse", "origin/main"))
		pushes := func() int64 { return pushers.refused.Load() }
		Eventually(pushes).WithTimeout(soon).WithPolling(polling).Should(BeNumerically(">", 0))
		var user int64
		for round := range 100 {
			body := []string{
				`{"allow_force_push":true,"allowed_to_push":[{"id":%d,"access_level":60}]}`,
				fmt.Sprintf(`{"allowed_to_push":[{"user_id":%d}]}%%.0s`, owner),
				`{"allow_force_push":false,"allowed_to_push":[{"id":%d,"access_level":0}]}`,
				fmt.Sprintf(`{"allowed_to_push":[{"id":%%d,"access_level":40},{"id":%d,"_destroy":true}]}`, user),
			}[round%4]
			changed := rest.Must[branch](max, http.StatusOK, "PATCH "+path, fmt.Sprintf(body, level))
			Expect(changed.ID).To(Equal(made.ID))
			Expect(changed.PushAccessLevels).To(ContainElement(HaveField("ID", level)))
			Expect(changed.MergeAccessLevels).To(Equal(merge))
			if round%4 == 1 {
				Expect(changed.PushAccessLevels).To(HaveLen(2))
				user = changed.PushAccessLevels[1].ID
			}
			if round%4 == 2 {
				Expect(changed.PushAccessLevels[1].ID).To(Equal(user))
			}
		}
		before := pushes()
		Eventually(pushes).WithTimeout(soon).WithPolling(polling).Should(BeNumerically(">", before))
		report(fmt.Sprintf("100 changes during %d pushes that were refused, after", pushes()), time.Since(pushers.begun))
		Expect(max.Status("DELETE " + path)).To(Equal(http.StatusNoContent))
		Eventually(pushers.done).WithTimeout(soon).WithPolling(polling).Should(BeClosed(), "without the rule they do")
		Expect(pushers.failures()).To(BeEmpty())
		Expect(barn.clone("dana").Git("ls-remote", "origin", "refs/heads/kept")).NotTo(BeEmpty())
	})
})
