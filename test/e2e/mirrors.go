package e2e

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/test/forgeplane"
	"github.com/forgeplane/forgeplane/test/rest"
	"github.com/forgeplane/forgeplane/test/suite"
	"github.com/forgeplane/forgeplane/test/terminal"
)

// mirrored is a mirror as REST shows it.
type mirrored struct {
	ID           int64   `json:"id"`
	Enabled      bool    `json:"enabled"`
	URL          string  `json:"url"`
	UpdateStatus string  `json:"update_status"`
	LastError    *string `json:"last_error"`
	Keep         bool    `json:"keep_divergent_refs"`
}

var _ = Describe("A mirror", Ordered, func() {
	const mirrors = "/projects/abbey%2Fapp/remote_mirrors"
	var abbey team
	var max terminal.Terminal
	var client rest.Client
	var password string

	BeforeAll(func() {
		abbey = newTeam("abbey")
		// The project itself protects only the default branch, which is not pushed here.
		abbey.apply(`
apiVersion: forgeplane.dev/v1alpha1
kind: Project
metadata: {name: copy, namespace: TEAM}
spec: {path: copy, groupRef: {name: TEAM}, defaultBranch: unused}
`)
		abbey.waitReady("project/copy")
		max = abbey.start()
		password = token("abbey-max")
		client = abbey.rest("max")
		abbey.apply(`
apiVersion: v1
kind: Secret
metadata:
  name: copy
  namespace: TEAM
  labels: {forgeplane.dev/secret: remote-mirror}
  annotations: {forgeplane.dev/host: "` + admin.Getenv("FORGEPLANE_URL") + `"}
stringData: {username: TEAM-max, password: "` + password + `"}
`)
	})

	refs := func() string { return max.Git("ls-remote", abbey.url("copy")) }
	eventually := func(what string, matches func() bool) {
		GinkgoHelper()
		begun := time.Now()
		Eventually(matches).WithPolling(polling).Should(BeTrue(), what)
		report(what+" after", time.Since(begun))
	}
	const manifest = `
apiVersion: forgeplane.dev/v1alpha1
kind: RemoteMirror
metadata: {name: copy, namespace: TEAM}
spec: {projectRef: {name: app}, url: "URL", secretRef: {name: copy}}
`

	It("that is declared receives each push: branches, tags, rewritten refs and deletions", func() {
		yaml := strings.ReplaceAll(manifest, "URL", abbey.url("copy"))
		abbey.apply(yaml)
		abbey.waitReady("remotemirror/copy")
		first := max.Git("rev-parse", "HEAD")
		Expect(refs()).To(ContainSubstring(first + "\trefs/heads/main"))

		feature := max.Commit("feature.txt", "New.\n")
		max.MustPush("feature")
		eventually("a branch", func() bool { return strings.Contains(refs(), feature+"\trefs/heads/feature") })
		max.Git("push", "origin", "HEAD:refs/tags/v1")
		eventually("a tag", func() bool { return strings.Contains(refs(), feature+"\trefs/tags/v1") })
		max.Git("commit", "--quiet", "--amend", "--message", "Rewritten")
		max.MustPush("feature", "--force")
		eventually("a forced push", func() bool { return strings.Contains(refs(), max.Git("rev-parse", "HEAD")+"\trefs/heads/feature") })
		max.Git("push", "origin", ":refs/heads/feature", ":refs/tags/v1")
		eventually("a deletion", func() bool { return !strings.Contains(refs(), "feature") && !strings.Contains(refs(), "v1") })

		version := func() string {
			return abbey.show("remotemirror/copy", "{.metadata.resourceVersion} {.metadata.managedFields[*].manager}")
		}
		abbey.wait("remotemirror/copy", "{.status.updateStatus}", "Finished")
		before := version()
		abbey.apply(yaml)
		Consistently(version).WithTimeout(500 * time.Millisecond).WithPolling(100 * time.Millisecond).Should(Equal(before))
	})

	It("can be seen, changed and removed over REST", func() {
		all := expectShown[[]mirrored](client, mirrors, ConsistOf(And(HaveField("Enabled", true), HaveField("UpdateStatus", "finished"), HaveField("LastError", BeNil()),
			HaveField("URL", strings.Replace(abbey.url("copy"), "://", "://*****:*****@", 1)))))
		path := fmt.Sprintf("%s/%d", mirrors, all[0].ID)
		rest.Must[mirrored](client, http.StatusOK, "PUT "+path, `{"keep_divergent_refs":true}`)
		Expect(abbey.show("remotemirror/copy", "{.spec.keepDivergentRefs}")).To(Equal("true"))

		By("keeping branches that have diverged")
		theirs := abbey.as("max").Clone(abbey.url("copy"), "--branch=main")
		ahead := theirs.Commit("theirs.txt", "Theirs.\n")
		theirs.MustPush("main")
		max.Git("reset", "--quiet", "--hard", "origin/main")
		max.Commit("ours.txt", "Ours.\n")
		max.MustPush("main")
		Eventually(func() mirrored { return rest.Must[mirrored](client, http.StatusOK, "GET "+path, "") }).WithPolling(polling).
			Should(And(HaveField("UpdateStatus", "failed"), HaveField("LastError", HaveValue(ContainSubstring("refs/heads/main")))))
		Expect(refs()).To(ContainSubstring(ahead + "\trefs/heads/main"))
		abbey.patch("remotemirror/copy", `{"spec":{"keepDivergentRefs":false}}`)
		eventually("what was kept", func() bool { return strings.Contains(refs(), max.Git("rev-parse", "HEAD")+"\trefs/heads/main") })

		By("pushing only some branches")
		rest.Must[mirrored](client, http.StatusOK, "PUT "+path, `{"mirror_branch_regex":"^(release|hotfix)/"}`)
		abbey.waitReady("remotemirror/copy")
		max.Git("push", "origin", "HEAD:refs/heads/left-out", "HEAD:refs/heads/release/1")
		eventually("a branch that matches", func() bool { return strings.Contains(refs(), "refs/heads/release/1") })
		Expect(refs()).NotTo(ContainSubstring("left-out"))
		rest.Must[mirrored](client, http.StatusOK, "PUT "+path, `{"mirror_branch_regex":"","only_protected_branches":true}`)
		abbey.waitReady("remotemirror/copy")
		protected := max.Commit("protected.txt", "Protected.\n")
		max.Git("push", "origin", "HEAD:refs/heads/release/2", "HEAD:refs/heads/main")
		eventually("a protected branch", func() bool { return strings.Contains(refs(), protected+"\trefs/heads/main") })
		Expect(refs()).NotTo(ContainSubstring("refs/heads/release/2"))

		Expect(client.Status("DELETE " + path)).To(Equal(http.StatusNoContent))
		abbey.kubectl("wait", "--for=delete", "--timeout=30s", "remotemirror/copy")
		abbey.kubectl("get", "secret", "copy") // it belongs to somebody else
	})

	It("that was created over REST has its credentials in a Secret, which is deleted with it", func() {
		url := strings.Replace(abbey.url("copy"), "://", "://abbey-max:"+password+"@", 1)
		made := rest.Must[mirrored](client, http.StatusCreated, "POST "+mirrors, fmt.Sprintf(`{"url":%q,"enabled":true}`, url))
		Expect(made.URL).To(Equal(strings.Replace(abbey.url("copy"), "://", "://*****:*****@", 1)))
		object := abbey.list("remotemirror")[0]
		Expect(object.Object["spec"]).To(And(HaveKeyWithValue("id", BeEquivalentTo(made.ID)), HaveKeyWithValue("url", abbey.url("copy")), HaveKeyWithValue("enabled", true)))
		abbey.waitReady("remotemirror/" + object.GetName())
		commit := max.Commit("rest.txt", "REST.\n")
		max.MustPush("rest")
		eventually("a branch", func() bool { return strings.Contains(refs(), commit+"\trefs/heads/rest") })
		Expect(client.Status(fmt.Sprintf("POST %s/%d/sync", mirrors, made.ID))).To(Equal(http.StatusNoContent))

		abbey.kubectl("delete", "remotemirror", object.GetName(), "--timeout=30s")
		Eventually(client.Status).WithArguments(fmt.Sprintf("GET %s/%d", mirrors, made.ID)).WithPolling(polling).
			Should(Equal(http.StatusNotFound))
		Expect(object.Object["spec"]).NotTo(HaveKey("secretRef"))
		Eventually(func() string {
			return admin.Kubectl("get", "secrets", "--namespace="+forgeplane.Namespace, "--output=name")
		}).WithPolling(polling).ShouldNot(ContainSubstring("remote-mirror-"))
	})

	// held declares the mirror "held", whose target requires a password and answers after its release.
	held := func(secret string) *elsewhere {
		GinkgoHelper()
		credentials[secret] = true
		target := newElsewhere("curator", secret)
		target.hold()
		abbey.apply(`
apiVersion: v1
kind: Secret
metadata: {name: held, namespace: TEAM, labels: {forgeplane.dev/secret: remote-mirror}, annotations: {forgeplane.dev/host: "` + target.url + `"}}
stringData: {username: curator, password: ` + secret + `}
---
apiVersion: forgeplane.dev/v1alpha1
kind: RemoteMirror
metadata: {name: held, namespace: TEAM}
spec: {projectRef: {name: app}, url: "` + target.url + `", secretRef: {name: held}}
`)
		return target
	}

	It("shows its password to no process, and resumes after a crash during a push", suite.Soak, func() {
		const secret = "abbey-correct-horse-battery"
		target := held(secret)
		Eventually(target.asked).WithPolling(polling).Should(BeTrue())
		abbey.wait("remotemirror/held", "{.status.updateStatus}", "Started")
		lines := strings.Join(checkout.Processes(), "\n")
		Expect(lines).To(ContainSubstring("remote-http"))
		expectNoCredential("a command line", lines)

		Expect(syscall.Kill(checkout.PID("forgeplane manager"), syscall.SIGKILL)).To(Succeed())
		Expect(running.WaitEnded()).NotTo(Succeed())
		Eventually(checkout.Processes).WithPolling(polling).Should(BeEmpty(), "git ends with it")
		target.release()
		start()
		abbey.waitReady("remotemirror/held")
		Expect(target.work.Git("ls-remote", "--heads", "--tags", target.repository)).To(Equal(max.Git("ls-remote", "--heads", "--tags", "origin")))

		By("removing the target, and restoring it")
		gone := target.repository + ".gone"
		Expect(os.Rename(target.repository, gone)).To(Succeed())
		commit := max.Commit("more.txt", "More.\n")
		max.MustPush("more")
		abbey.wait("remotemirror/held", "{.status.updateStatus}", "Failed")
		said := abbey.show("remotemirror/held", "{.status.lastError}")
		Expect(said).To(ContainSubstring("not found"))
		expectNoCredential("the error", said)
		Expect(os.Rename(gone, target.repository)).To(Succeed())
		abbey.kubectl("annotate", "remotemirror", "held", "forgeplane.dev/sync=now")
		Eventually(func() string { return target.work.Git("ls-remote", target.repository) }).WithPolling(polling).
			Should(ContainSubstring(commit + "\trefs/heads/more"))
		abbey.waitReady("remotemirror/held")
		abbey.kubectl("delete", "remotemirror", "held")
	})

	It("is given up if its target hangs, and is pushed to when the target answers again", suite.Soak, func() {
		target := held("abbey-battery-staple")
		abbey.wait("remotemirror/held", "{.status.updateStatus}", "Failed")
		Expect(abbey.show("remotemirror/held", "{.status.lastError}")).To(Equal("the push took longer than allowed"))
		target.release()
		abbey.kubectl("annotate", "remotemirror", "held", "forgeplane.dev/sync=now")
		abbey.wait("remotemirror/held", "{.status.updateStatus}", "Finished")
		Expect(target.work.Git("ls-remote", "--heads", "--tags", target.repository)).To(Equal(max.Git("ls-remote", "--heads", "--tags", "origin")))
		abbey.kubectl("delete", "remotemirror", "held")
	})
})
