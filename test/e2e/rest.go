package e2e

import (
	"bytes"
	"context"
	"crypto/sha1" //nolint:gosec // the checksum that Git uses
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/apiserver/v4/protectedbranches"
	"github.com/forgeplane/forgeplane/test/rest"
	"github.com/forgeplane/forgeplane/test/soak"
	"github.com/forgeplane/forgeplane/test/terminal"
)

// kubernetesPath is the path at which kube-apiserver forwards requests to the REST API.
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
		max = barn.rest("max")
		identity = throughKubernetes()
	})

	// field returns a field of the object that protects a branch, as kubectl shows it.
	field := func(template, branch string) string {
		GinkgoHelper()
		name := ""
		for _, object := range barn.list("protectedbranch") {
			if object.Object["spec"].(map[string]any)["branch"] == branch {
				name = object.GetName()
			}
		}
		Expect(name).NotTo(BeEmpty(), branch)
		return barn.show("protectedbranch/"+name, template)
	}

	DescribeTable("protects a branch so that kubectl shows it, and the very next push is refused",
		func(name string, door func() rest.Client) {
			try := pushOf(dana, name)
			Expect(outcome(try)).To(Succeed())
			made := rest.Must[branch](door(), http.StatusCreated, "POST "+rules, fmt.Sprintf(`{"name":%q,"push_access_level":40}`, name))
			screen, err := try()
			Expect(err).To(HaveOccurred())
			Expect(screen).To(ContainSubstring("only Maintainers may push to it"))
			Expect(field("{.spec.id}", name)).To(Equal(fmt.Sprint(made.ID)))
			Expect(field("{.spec.push[*].role}", name)).To(Equal("Maintainer"))

			path := fmt.Sprintf("%s/%s", rules, strings.ReplaceAll(name, "/", "%2F"))
			level := func(level int) {
				GinkgoHelper()
				rest.Must[branch](door(), http.StatusOK, "PATCH "+path,
					fmt.Sprintf(`{"allowed_to_push":[{"id":%d,"access_level":%d}]}`, made.PushAccessLevels[0].ID, level))
			}
			level(30)
			Expect(outcome(try)).To(Succeed(), "developers may push")
			level(0)
			Expect(outcome(try)).NotTo(Succeed(), "nobody may push")
			Expect(door().Status("DELETE " + path)).To(Equal(http.StatusNoContent))
			Expect(outcome(try)).To(Succeed(), "it is not protected any more")
		},
		Entry("through its own address", "rest/address", func() rest.Client { return max }),
		Entry("through kube-apiserver", "rest/kubernetes", func() rest.Client { return identity }),
	)

	It("lists and changes objects that were declared with kubectl", func() {
		barn.apply(`
apiVersion: forgeplane.dev/v1alpha1
kind: ProtectedBranch
metadata: {name: by-hand, namespace: TEAM}
spec: {projectRef: {name: app}, branch: by-hand, push: [{role: NoOne}], merge: [{role: Maintainer}]}
`)
		barn.waitReady("protectedbranch/by-hand")
		for _, client := range []rest.Client{max, identity} {
			all := expectShown[[]branch](client, rules+"?search=BY-HAND", ConsistOf(HaveField("Name", "by-hand")))
			Expect(all[0].PushAccessLevels).To(ConsistOf(HaveField("AccessLevelDescription", "No one")))
		}
		try := pushOf(dana, "by-hand")
		Expect(outcome(try)).NotTo(Succeed())
		changed := rest.Must[branch](max, http.StatusOK, "PATCH "+rules+"/by-hand", `{"allow_force_push":true,"allowed_to_push":[{"access_level":30}]}`)
		Expect(outcome(try)).To(Succeed())
		Expect(barn.show("protectedbranch/by-hand", "{.spec.push[*].role} {.spec.allowForcePush}")).
			To(Equal("Developer true"))
		barn.waitReady("protectedbranch/by-hand")
		Expect(rest.Must[branch](identity, http.StatusOK, "GET "+rules+"/by-hand", "")).To(Equal(changed))
		for description, client := range map[string]rest.Client{"Hay.": max, "Straw.": identity} {
			rest.Must[any](client, http.StatusOK, "PUT /projects/barn%2Fapp", fmt.Sprintf(`{"description":%q}`, description))
			Expect(barn.show("project/app", "{.spec.description}")).To(Equal(description))
		}
	})

	It("keeps the ids of access levels when they change, and lets no push through meanwhile", func() {
		path := rules + "/kept"
		made := rest.Must[branch](max, http.StatusCreated, "POST "+rules, `{"name":"kept","push_access_level":40}`)
		level, merge := made.PushAccessLevels[0].ID, made.MergeAccessLevels
		owner := rest.Must[struct{ ID int64 }](max, http.StatusOK, "GET /user", "").ID
		pushers := hammer(barn.url("app"), token("barn-dana"), "kept", dana.Git("rev-parse", "origin/main"))
		defer pushers.stop()
		Eventually(pushers.refused.Load).WithPolling(polling).Should(BeNumerically(">", 0))
		var user int64
		changes := soak.Times(20, 100)
		for round := range changes {
			body := strings.NewReplacer("LEVEL", fmt.Sprint(level), "OWNER", fmt.Sprint(owner), "USER", fmt.Sprint(user)).Replace([]string{
				`{"allow_force_push":true,"allowed_to_push":[{"id":LEVEL,"access_level":60}]}`,
				`{"allowed_to_push":[{"user_id":OWNER}]}`,
				`{"allow_force_push":false,"allowed_to_push":[{"id":LEVEL,"access_level":40}]}`,
				`{"allowed_to_push":[{"id":LEVEL,"access_level":0},{"id":USER,"_destroy":true}]}`,
			}[round%4])
			changed := rest.Must[branch](max, http.StatusOK, "PATCH "+path, body)
			Expect(changed.ID).To(Equal(made.ID))
			Expect(changed.PushAccessLevels).To(ContainElement(HaveField("ID", level)))
			Expect(changed.MergeAccessLevels).To(Equal(merge))
			switch round % 4 {
			case 1:
				Expect(changed.PushAccessLevels).To(HaveLen(2))
				user = changed.PushAccessLevels[1].ID
			case 2:
				Expect(changed.PushAccessLevels).To(ContainElement(HaveField("ID", user)))
			case 3:
				Expect(changed.PushAccessLevels).To(HaveLen(1))
			}
		}
		during := pushers.refused.Load()
		Eventually(pushers.refused.Load).WithPolling(polling).Should(BeNumerically(">=", during+pushersAtOnce), "the last ones, too")
		Expect(pushers.accepted.Load()).To(BeZero())
		AddReportEntry(fmt.Sprintf("%d changes during %d pushes", changes, during), ReportEntryVisibilityAlways)
		Expect(max.Status("DELETE " + path)).To(Equal(http.StatusNoContent))
		Eventually(pushers.accepted.Load).WithPolling(polling).Should(BeNumerically(">", 0), "without the rule they get through")
	})

	It("changes no declared object if the project forbids that, and names who declares it", func() {
		declare := `
apiVersion: forgeplane.dev/v1alpha1
kind: ProtectedBranch
metadata: {name: declared, namespace: barn}
spec: {projectRef: {name: app}, branch: declared, push: [{role: Maintainer}]}
`
		admin.DoWith(declare, "kubectl", "apply", "--server-side", "--field-manager=argocd-controller", "--filename=-")
		rest.Must[branch](max, http.StatusCreated, "POST "+rules, `{"name":"made"}`)
		barn.patch("project/app", `{"spec":{"restWrites":"RefuseDeclared"}}`)
		const change = `{"allow_force_push":true}`
		for _, client := range []rest.Client{max, identity} {
			refused := func(g Gomega, request, body string) {
				a := client.Call(request, body)
				g.Expect(a.Status).To(Equal(http.StatusForbidden), "%s", a)
				g.Expect(a.Body).To(MatchRegexp(`"message":"403 Forbidden - .*argocd-controller`))
			}
			Eventually(refused).WithArguments("PATCH "+rules+"/declared", `{}`).WithPolling(polling).Should(Succeed())
			refused(NewWithT(GinkgoT()), "PATCH "+rules+"/declared", change)
			refused(NewWithT(GinkgoT()), "DELETE "+rules+"/declared", "")
			Expect(client.Call("PATCH "+rules+"/made", change)).To(HaveField("Status", http.StatusOK))
			Expect(client.Call("GET "+rules+"/declared", "").Body).To(ContainSubstring(`"allow_force_push":false`))
		}
		Expect(identity.Call("PUT /projects/barn%2Fapp", `{"description":"Mud."}`)).To(And(
			HaveField("Status", http.StatusForbidden), HaveField("Body", ContainSubstring("is managed by kubectl,"))))
		Expect(field("{.spec.allowForcePush}", "declared")).To(BeElementOf("", "false"))
		barn.patch("project/app", `{"spec":{"restWrites":"Refuse"}}`)
		Eventually(func() int { return max.Call("PATCH "+rules+"/made", change).Status }).WithPolling(polling).Should(Equal(http.StatusForbidden))
		Expect(max.Call("POST "+rules, `{"name":"more"}`)).To(HaveField("Status", http.StatusForbidden))
		barn.patch("project/app", `{"spec":{"restWrites":"Allow"}}`)
		Eventually(func() int { return max.Call("PATCH "+rules+"/declared", change).Status }).WithPolling(polling).Should(Equal(http.StatusOK))
	})

	It("can be used with kubectl alone", func() {
		raw := func(verb, path string, more ...string) string {
			GinkgoHelper()
			return admin.Kubectl(append([]string{verb, "--raw=" + kubernetesPath + path}, more...)...)
		}
		const nothing = "--filename=-"
		file := filepath.Join(GinkgoT().TempDir(), "rule.json")
		Expect(os.WriteFile(file, []byte(`{"name": "raw/*", "push_access_level": 0}`), 0o600)).To(Succeed())
		Expect(raw("create", rules, "--filename="+file)).To(ContainSubstring(`"name":"raw/*"`))
		Expect(raw("get", rules+"?search=raw")).To(HavePrefix(`[{`))
		Expect(raw("get", rules+"/raw%2F%2A")).To(ContainSubstring(`"access_level_description":"No one"`))
		Expect(outcome(pushOf(dana, "raw/1"))).NotTo(Succeed())
		Expect(raw("replace", "/projects/barn%2Fapp?description=Oats.", nothing)).To(ContainSubstring(`"description":"Oats."`))
		Expect(raw("delete", rules+"/raw%2F%2A")).To(BeEmpty())
		Expect(admin.Fail("kubectl", "get", "--raw="+kubernetesPath+rules+"/raw%2F%2A")).To(ContainSubstring("NotFound"))
		Expect(outcome(pushOf(dana, "raw/1"))).To(Succeed())
	})

	It("refuses what the ClusterRole of a level does not allow, such as plain paths, and admits every request with forgeplane-rest-user", func() {
		patch("", "user/"+barn.user("max"), `{"spec":{"kubernetes":{"username":"barn:max"}}}`)
		bind := func(role string) {
			GinkgoHelper()
			admin.Kubectl("create", "clusterrolebinding", role+"-barn", "--clusterrole="+role, "--user=barn:max")
		}
		request := func(verb, path string, more ...string) command {
			return func() (string, error) {
				return admin.Try("kubectl", append([]string{verb, "--raw=" + kubernetesPath + path, "--as=barn:max"}, more...)...)
			}
		}
		body := func(text string) string {
			GinkgoHelper()
			file := filepath.Join(GinkgoT().TempDir(), "body.json")
			Expect(os.WriteFile(file, []byte(text), 0o600)).To(Succeed())
			return "--filename=" + file
		}
		admitted := func(try command, words string) {
			GinkgoHelper()
			Eventually(try).WithPolling(polling).Should(ContainSubstring(words)) // RBAC and Forgeplane see a binding a little later
		}
		forbidden := func(try command, what string) {
			GinkgoHelper()
			screen, err := try()
			Expect(err).To(HaveOccurred())
			Expect(screen).To(ContainSubstring(`User "barn:max" cannot ` + what + ` in API group "rest.forgeplane.dev" at the cluster scope`))
		}
		project := "/projects/" + barn.show("project/app", "{.spec.id}")
		byID, byPath, byPathTwice := request("get", project), request("get", "/projects/barn%2Fapp"), request("get", "/projects/barn%252Fapp")
		label := request("create", project+"/labels", body(`{"name": "hay", "color": "#FFEEAA"}`))
		protect := request("create", project+"/protected_branches", body(`{"name": "level/*"}`))
		forbidden(byID, `get resource "projects"`)

		bind("forgeplane-rest-reporter")
		admitted(byID, `"path_with_namespace":"barn/app"`)
		admitted(byPathTwice, `"path_with_namespace":"barn/app"`)
		admitted(label, `"name":"hay"`)
		forbidden(protect, `create resource "projects/protected_branches"`)
		forbidden(byPath, `get resource "projects/app"`)

		bind("forgeplane-rest-user")
		admitted(byPath, `"path_with_namespace":"barn/app"`)
		admitted(protect, `"name":"level/*"`)
	})
})

// outcome returns the outcome of one attempt, without the progress messages.
func outcome(try command) error {
	_, err := try()
	return err
}

// pushersAtOnce is the number of clients that push at the same time.
const pushersAtOnce = 4

// pushers are clients that push one commit to a new branch without pause. They do what git does, but faster.
type pushers struct {
	refused, accepted atomic.Int64
	cancel            context.CancelFunc
	wait              sync.WaitGroup
}

func hammer(url, token, branch, commit string) *pushers {
	GinkgoHelper()
	ctx, cancel := context.WithCancel(context.Background())
	p := &pushers{cancel: cancel}
	body := pushOfNothing(branch, commit)
	client := http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: pushersAtOnce}}
	for range pushersAtOnce {
		p.wait.Go(func() {
			defer GinkgoRecover()
			for ctx.Err() == nil {
				r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/git-receive-pack", bytes.NewReader(body))
				Expect(err).NotTo(HaveOccurred())
				r.SetBasicAuth("somebody", token)
				r.Header.Set("Content-Type", "application/x-git-receive-pack-request")
				response, err := client.Do(r)
				if ctx.Err() != nil {
					return
				}
				Expect(err).NotTo(HaveOccurred())
				text, err := io.ReadAll(response.Body)
				_ = response.Body.Close()
				switch {
				case ctx.Err() != nil:
				case bytes.Contains(text, []byte("ok refs/heads/"+branch)):
					p.accepted.Add(1)
				default:
					Expect(err).NotTo(HaveOccurred())
					Expect(string(text)).To(ContainSubstring("ng refs/heads/" + branch))
					p.refused.Add(1)
				}
			}
		})
	}
	return p
}

func (p *pushers) stop() {
	p.cancel()
	p.wait.Wait()
}

// pushOfNothing returns the push that git sends to create a branch at an existing commit: a command, and a pack without objects.
func pushOfNothing(branch, commit string) []byte {
	command := fmt.Sprintf("%s %s refs/heads/%s\x00 report-status", strings.Repeat("0", len(commit)), commit, branch)
	pack := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32([]byte("PACK"), 2), 0)
	sum := sha1.Sum(pack) //nolint:gosec // see above
	return fmt.Appendf(nil, "%04x%s0000%s%s", len(command)+4, command, pack, sum[:])
}
