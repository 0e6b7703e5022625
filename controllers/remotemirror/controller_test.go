package remotemirror_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/controllers/remotemirror"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/audit/audittest"
	"github.com/forgeplane/forgeplane/internal/credential"
	"github.com/forgeplane/forgeplane/internal/egress"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/internal/git/update"
	"github.com/forgeplane/forgeplane/test/forge"
)

// expectUpdate expects that a mirror reaches an update status.
func expectUpdate(m *v1alpha1.RemoteMirror, u v1alpha1.MirrorUpdate) {
	GinkgoHelper()
	f.Eventually(m).Should(HaveField("Status.UpdateStatus", u))
}

// expectPushed expects that the target has the same refs as the project.
func expectPushed(m *v1alpha1.RemoteMirror) {
	GinkgoHelper()
	f.Refresh(website)
	f.Eventually(m).Should(And(
		HaveField("Status.UpdateStatus", v1alpha1.MirrorFinished), HaveField("Status.PushedChecksum", website.Status.RefsChecksum)))
	f.ExpectReady(m)
	Expect(m.Status.LastError).To(BeEmpty())
	Expect(m.Status.NextAttemptAt).To(BeNil())
}

// expectRefused expects that a mirror says why nothing is pushed, and that no attempt is scheduled.
func expectRefused(m *v1alpha1.RemoteMirror, why string) {
	GinkgoHelper()
	f.Refresh(m)
	Expect(m.Status).To(And(HaveField("UpdateStatus", v1alpha1.MirrorFailed), HaveField("LastError", ContainSubstring(why)),
		HaveField("NextAttemptAt", BeNil())))
}

// hangs begins the first push of a mirror, which the target delays until it is released.
func hangs() *v1alpha1.RemoteMirror {
	GinkgoHelper()
	commit("one")
	push("HEAD:refs/heads/main")
	there.hold.Store(true)
	m := forge.RemoteMirror("backup", there.url()).Of(website).Build()
	f.Create(m)
	Eventually(there.holding.Load).Should(BeEquivalentTo(1))
	return m
}

// pass advances the clock.
func pass(m *v1alpha1.RemoteMirror, d time.Duration) {
	GinkgoHelper()
	f.Clock.SetTime(f.Clock.Now().Add(d))
	f.Change(m, func() { metav1.SetMetaDataAnnotation(&m.ObjectMeta, "test/look", f.Clock.Now().String()) })
}

var _ = Describe("A mirror", func() {
	It("receives branches, tags and all changes, and nothing if nothing changes", func() {
		f.Run()
		first := commit("one")
		push("HEAD:refs/heads/main", "HEAD:refs/heads/topic", "HEAD:refs/tags/v1")
		m := forge.RemoteMirror("backup", there.url()).Of(website).Build()
		f.Create(m)
		expectPushed(m)
		Expect(there.refs()).To(Equal(map[string]string{"refs/heads/main": first, "refs/heads/topic": first, "refs/tags/v1": first}))
		Expect(m.OwnerReferences).To(BeEmpty())
		Expect(m.Status.LastSuccessfulUpdateAt).NotTo(BeNil())

		By("changing another branch than the default one, rewriting a branch, and removing one")
		worker.Git(GinkgoTB(), "commit", "--quiet", "--amend", "--message", "Rewritten")
		rewritten := worker.Git(GinkgoTB(), "rev-parse", "HEAD")
		push("+HEAD:refs/heads/main", ":refs/heads/topic", "HEAD:refs/heads/next")
		expectPushed(m)
		Expect(there.refs()).To(Equal(map[string]string{"refs/heads/main": rewritten, "refs/heads/next": rewritten, "refs/tags/v1": first}))

		asked := there.asked.Load()
		f.ExpectRestartWritesNothing()
		Expect(there.asked.Load()).To(Equal(asked), "the target is left alone")
	})

	It("appears in the audit log: what was written where, and not with which credentials", func() {
		lines := audittest.Open(GinkgoTB())
		f = forge.New(cluster, forge.Options{Audit: lines.Log})
		f.Run()
		first := commit("one")
		push("HEAD:refs/heads/main", "HEAD:refs/heads/topic")
		f.Create(secret("target", there.privateURL(), map[string]string{"username": username, "password": password}))
		m := forge.RemoteMirror("backup", there.privateURL()).Of(website).Secret("target").Build()
		f.Create(m)
		expectPushed(m)
		push(":refs/heads/topic")
		expectPushed(m)
		f.Change(m, func() { metav1.SetMetaDataAnnotation(&m.ObjectMeta, v1alpha1.AnnotationSync, "now") })
		f.Eventually(m).Should(HaveField("Status.HandledSync", "now"))
		expectPushed(m)
		pushes := slices.DeleteFunc(lines.Events(), func(e audit.Event) bool { return e.Action != "mirror" })
		Expect(pushes).To(HaveExactElements(
			HaveField("Refs", ConsistOf(
				audit.Ref{Ref: update.Ref{Name: "refs/heads/main", New: first}, Result: audit.Done}, audit.Ref{Ref: update.Ref{Name: "refs/heads/topic", New: first}, Result: audit.Done},
			)),
			HaveField("Refs", ConsistOf(audit.Ref{Ref: update.Ref{Name: "refs/heads/topic", Old: first}, Result: audit.Done})),
		), "the last one had nothing to do")
		for _, e := range pushes {
			Expect(e).To(And(HaveField("Door", audit.Controller), HaveField("Controller", "RemoteMirror"), HaveField("Result", audit.Done),
				HaveField("Target", there.privateURL()), HaveField("About.UID", string(website.UID)),
				HaveField("Objects", ConsistOf(And(HaveField("Verb", "push"), HaveField("Name", "backup"), HaveField("UID", string(m.UID)))))))
		}
		Expect(string(lines.Text())).NotTo(ContainSubstring(password))
	})

	It("receives nothing from an empty repository", func() {
		f.Run()
		there.git.Git(GinkgoTB(), "fetch", "--quiet", worker.Dir, "+"+commit("theirs")+":refs/heads/main")
		m := forge.RemoteMirror("backup", there.url()).Of(website).Build()
		f.Create(m)
		f.ExpectReady(m)
		Expect(m.Status).To(And(HaveField("UpdateStatus", v1alpha1.MirrorNone), HaveField("LastSuccessfulUpdateAt", BeNil())), "there is nothing to push")
		Expect(there.refs()).To(HaveKey("refs/heads/main"))
		Expect(there.asked.Load()).To(BeZero())
		commit("one")
		push("HEAD:refs/heads/main")
		expectPushed(m)
	})

	It("receives credentials, which appear nowhere", func() {
		f.Run()
		commit("one")
		push("HEAD:refs/heads/main")
		f.Create(secret("target", there.privateURL(), map[string]string{"username": username, "password": password}))
		m := forge.RemoteMirror("backup", there.privateURL()).Of(website).Secret("target").Build()
		f.Create(m)
		expectPushed(m)
		Expect(there.refs()).To(HaveKey("refs/heads/main"))
		Expect(fmt.Sprint(m)).NotTo(ContainSubstring(password))
	})

	It("is pushed over ssh, only to the server with the pinned key", func() {
		f.Run()
		commit("one")
		push("HEAD:refs/heads/main")
		server := gittest.SSH(GinkgoTB(), filepath.Dir(there.git.Dir))
		url := server.URL + "/t.git"
		s := secret("target", url, map[string]string{"ssh-privatekey": string(server.Identity)})
		m := forge.RemoteMirror("backup", url).Of(website).Secret("target").Build()
		f.Create(s, m)
		f.ExpectWaiting(m, v1alpha1.ReasonPushFailed, "Secret target has no key known_hosts")
		other := "[127.0.0.1]:1 ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIE1PpB+KGusIoz8/UE8m1sWbgH6pSCGQjXdCWsyU0VQe"
		f.Change(s, func() { s.StringData = map[string]string{"known_hosts": other} })
		f.ExpectWaiting(m, v1alpha1.ReasonPushFailed, "the host key of the server is not pinned")
		Expect(there.refs()).To(BeEmpty())
		f.Change(s, func() { s.StringData = map[string]string{"known_hosts": string(server.KnownHosts)} })
		expectPushed(m)
		Expect(there.refs()).To(HaveKey("refs/heads/main"))
		Expect(fmt.Sprint(m)).NotTo(ContainSubstring("PRIVATE KEY"))
	})

	It("says what is wrong with the Secret, and continues when the Secret is corrected", func() {
		f.Run()
		commit("one")
		push("HEAD:refs/heads/main")
		m := forge.RemoteMirror("backup", there.privateURL()).Of(website).Secret("target").Build()
		f.Create(m)
		f.ExpectWaiting(m, v1alpha1.ReasonReferenceNotFound, "secretRef: there is no Secret target with the label forgeplane.dev/secret=remote-mirror")
		elsewhere := secret("target", there.privateURL(), map[string]string{"username": username, "password": password})
		elsewhere.Namespace = f.NewNamespace()
		s := secret("target", there.privateURL(), map[string]string{"other": "x"})
		f.Create(elsewhere, s)
		f.ExpectWaiting(m, v1alpha1.ReasonPushFailed, "secretRef: Secret target has neither the key username nor the key password")
		f.Change(s, func() { s.StringData = map[string]string{"username": username, "password": "wrong-horse"} })
		f.ExpectWaiting(m, v1alpha1.ReasonPushFailed, "does not accept the credentials")
		Expect(fmt.Sprint(m)).NotTo(ContainSubstring("wrong-horse"))
		f.Change(s, func() { s.StringData = map[string]string{"password": password} })
		expectPushed(m)
		Expect(m.Status.Attempts).To(BeZero())
	})

	It("receives only a Secret that names its host, and says how to name the host", func() {
		f.Run()
		commit("one")
		push("HEAD:refs/heads/main")
		database := secret("database", there.privateURL(), map[string]string{"username": username, "password": password})
		database.Labels, database.Annotations = nil, nil
		f.Create(database)
		m := forge.RemoteMirror("backup", there.privateURL()).Of(website).Secret("database").Build()
		f.Create(m)
		f.ExpectWaiting(m, v1alpha1.ReasonReferenceNotFound, "kubectl label secret database --namespace "+m.Namespace+" forgeplane.dev/secret=remote-mirror")
		f.Change(database, func() { database.Labels = map[string]string{v1alpha1.LabelSecret: v1alpha1.SecretOfRemoteMirror} })
		host, err := credential.Origin(there.privateURL())
		Expect(err).NotTo(HaveOccurred())
		remedy := "kubectl annotate secret database --namespace " + m.Namespace + " --overwrite forgeplane.dev/host=" + host
		f.ExpectWaiting(m, v1alpha1.ReasonReferenceNotAllowed, "Secret database has no annotation forgeplane.dev/host", remedy)
		f.Change(database, func() { database.Annotations = map[string]string{v1alpha1.AnnotationHost: "git.example.com"} })
		f.ExpectWaiting(m, v1alpha1.ReasonReferenceNotAllowed, `is for another host: its annotation forgeplane.dev/host is "git.example.com"`, remedy)
		// The host is allowed for https, but not for http.
		f.Change(database, func() { database.Annotations[v1alpha1.AnnotationHost] = strings.TrimPrefix(host, "http://") })
		f.ExpectWaiting(m, v1alpha1.ReasonReferenceNotAllowed, remedy)
		Expect(there.asked.Load()).To(BeZero(), "nothing was sent")
		f.Change(database, func() { database.Annotations[v1alpha1.AnnotationHost] = host })
		expectPushed(m)
	})

	It("receives the credentials from REST, which no field of a tenant can reference, and is deleted together with them", func() {
		f.Run()
		commit("one")
		push("HEAD:refs/heads/main")
		m := forge.RemoteMirror("backup", there.privateURL()).Of(website).Disabled().Build()
		f.Create(m)
		f.ExpectReady(m)
		given := credential.NewStore(nil, forge.PlatformNamespace).New(v1alpha1.SecretOfRemoteMirror, m,
			map[string][]byte{"username": []byte(username), "password": []byte(password)})
		f.Create(given)
		before := m.DeepCopy()
		m.Status.SecretRef.Name = given.Name
		Expect(f.Live().Status().Patch(GinkgoT().Context(), m, client.MergeFrom(before))).To(Succeed())
		f.Change(m, func() { m.Spec.Enabled = nil })
		expectPushed(m)
		Expect(there.refs()).To(HaveKey("refs/heads/main"))

		By("creating another mirror that claims the credentials")
		other := forge.RemoteMirror("other", there.privateURL()).Of(website).Build()
		other.Status.SecretRef.Name = given.Name
		f.Create(other)
		f.ExpectWaiting(other, v1alpha1.ReasonPushFailed, "does not accept the credentials, or requires credentials")
		named := forge.RemoteMirror("named", there.privateURL()).Of(website).Secret(given.Name).Build()
		f.Create(named)
		f.ExpectWaiting(named, v1alpha1.ReasonReferenceNotFound, "there is no Secret")

		f.Delete(m)
		f.ExpectGone(m, given)
	})

	It("is pushed to at once when a Secret with the label is corrected", func() {
		f.Run()
		commit("one")
		push("HEAD:refs/heads/main")
		s := secret("target", there.privateURL(), map[string]string{"username": username, "password": "wrong-horse"})
		f.Create(s)
		m := forge.RemoteMirror("backup", there.privateURL()).Of(website).Secret("target").Build()
		f.Create(m)
		f.ExpectWaiting(m, v1alpha1.ReasonPushFailed, "does not accept the credentials")
		f.ExpectRestartWritesNothing()
		pass(m, 15*time.Second)
		f.Eventually(m).Should(HaveField("Status.Attempts", BeEquivalentTo(2)))
		f.Change(s, func() { s.StringData = map[string]string{"password": password} })
		expectPushed(m)
		Expect(there.refs()).To(HaveKey("refs/heads/main"))

		By("leaving a mirror that works alone")
		asked := there.asked.Load()
		f.Change(s, func() { s.StringData = map[string]string{"note": "unchanged"} })
		f.ExpectRestartWritesNothing()
		Expect(there.asked.Load()).To(Equal(asked))
	})

	It("is tried again with a growing delay, and soon when something is pushed meanwhile", func() {
		f.Run()
		commit("one")
		push("HEAD:refs/heads/main")
		there.down.Store(true)
		m := forge.RemoteMirror("backup", there.url()).Of(website).Build()
		f.Create(m)
		f.ExpectWaiting(m, v1alpha1.ReasonPushFailed, "503")
		Expect(m.Status.UpdateStatus).To(Equal(v1alpha1.MirrorFailed))
		Expect(m.Status.NextAttemptAt.Sub(f.Clock.Now())).To(BeNumerically("~", 11*time.Second, 2*time.Second))
		Expect(there.asked.Load()).To(BeEquivalentTo(1))

		pass(m, 15*time.Second)
		f.Eventually(m).Should(HaveField("Status.Attempts", BeEquivalentTo(2)))
		Expect(m.Status.NextAttemptAt.Sub(f.Clock.Now())).To(BeNumerically("~", 22*time.Second, 4*time.Second))
		f.ExpectRestartWritesNothing()
		Expect(there.asked.Load()).To(BeEquivalentTo(2))

		By("pushing several times, with one attempt ten seconds after the last one")
		for _, content := range []string{"two", "three"} {
			commit(content)
			push("HEAD:refs/heads/main")
			f.Eventually(m).Should(HaveField("Status.NextAttemptAt.Time", BeTemporally("==", m.Status.LastUpdateAt.Add(10*time.Second))))
		}
		f.ExpectRestartWritesNothing()
		Expect(there.asked.Load()).To(BeEquivalentTo(2))
		pass(m, 10*time.Second)
		f.Eventually(m).Should(HaveField("Status.Attempts", BeEquivalentTo(3)))
		Expect(m.Status.NextAttemptAt.Sub(f.Clock.Now())).To(BeNumerically("~", 44*time.Second, 8*time.Second), "this was tried")

		By("pushing a while after the last attempt, to a target that is back")
		there.down.Store(false)
		pass(m, 20*time.Second)
		f.ExpectWaiting(m, v1alpha1.ReasonPushFailed, "503")
		Expect(there.asked.Load()).To(BeEquivalentTo(3))
		commit("four")
		push("HEAD:refs/heads/main")
		expectPushed(m)
		Expect(m.Status.Attempts).To(BeZero())
	})

	It("is tried again at once on request", func() {
		f.Run()
		commit("one")
		push("HEAD:refs/heads/main")
		there.down.Store(true)
		m := forge.RemoteMirror("backup", there.url()).Of(website).Build()
		f.Create(m)
		f.ExpectWaiting(m, v1alpha1.ReasonPushFailed, "503")
		there.down.Store(false)
		f.Change(m, func() {
			metav1.SetMetaDataAnnotation(&m.ObjectMeta, v1alpha1.AnnotationSync, strings.Repeat("now", 40))
		})
		expectPushed(m)
		Expect(m.Status.HandledSync).To(HaveLen(64))
		asked := there.asked.Load()
		f.ExpectRestartWritesNothing()
		Expect(there.asked.Load()).To(Equal(asked))
	})

	It("receives all pushes that happen during an attempt in the next attempt", func() {
		f.Run()
		m := hangs()
		expectUpdate(m, v1alpha1.MirrorStarted)
		f.ExpectWaiting(m, v1alpha1.ReasonProgressing, "the first push is in progress")
		for _, content := range []string{"two", "three", "four"} {
			commit(content)
			push("HEAD:refs/heads/main")
		}
		Expect(there.asked.Load()).To(BeEquivalentTo(1))
		there.hold.Store(false)
		there.release()
		f.Eventually(m).Should(HaveField("Status.UpdateStatus", v1alpha1.MirrorFailed))
		f.Change(m, func() { metav1.SetMetaDataAnnotation(&m.ObjectMeta, v1alpha1.AnnotationSync, "1") })
		expectPushed(m)
		Expect(there.refs()).To(HaveKeyWithValue("refs/heads/main", worker.Git(GinkgoTB(), "rev-parse", "HEAD")))
		Expect(there.asked.Load()).To(BeEquivalentTo(2))
	})

	It("is pushed to again if the process ended during an attempt", func() {
		running := f.Run()
		m := hangs()
		expectUpdate(m, v1alpha1.MirrorStarted)
		running.Stop()
		Eventually(there.holding.Load).Should(BeZero(), "git has ended")
		there.hold.Store(false)
		f.Run()
		expectPushed(m)
	})

	DescribeTable("stops a push if it",
		func(change func(m *v1alpha1.RemoteMirror)) {
			f.Run()
			m := hangs()
			change(m)
			Eventually(there.holding.Load).Should(BeZero())
			Expect(there.refs()).To(BeEmpty())
		},
		Entry("is disabled", func(m *v1alpha1.RemoteMirror) {
			f.Change(m, func() { m.Spec.Enabled = ptr.To(false) })
			f.ExpectReady(m)
		}),
		Entry("is suspended", func(m *v1alpha1.RemoteMirror) {
			f.Change(m, func() { m.Spec.Suspend = true })
			f.ExpectSettled(m, v1alpha1.ReasonSuspended, "nothing is pushed")
			Expect(m.Status.UpdateStatus).To(Equal(v1alpha1.MirrorToRetry))
		}),
		Entry("is deleted", func(m *v1alpha1.RemoteMirror) {
			f.Delete(m)
			f.ExpectGone(m)
		}),
		Entry("loses its project", func(m *v1alpha1.RemoteMirror) {
			f.Delete(website)
			f.ExpectGone(website)
			f.ExpectWaiting(m, v1alpha1.ReasonReferenceNotFound, "projectRef")
		}),
	)

	DescribeTable("says that its project does not exist, even though nothing is pushed, if it",
		func(halt func(m *v1alpha1.RemoteMirror)) {
			f.Run()
			m := forge.RemoteMirror("backup", there.url()).Of(website).Build()
			halt(m)
			f.Create(m)
			f.Eventually(m).Should(HaveField("Status.Conditions", Not(BeEmpty())))
			f.Delete(website)
			f.ExpectGone(website)
			f.ExpectWaiting(m, v1alpha1.ReasonReferenceNotFound, "projectRef")
		},
		Entry("is disabled", func(m *v1alpha1.RemoteMirror) { m.Spec.Enabled = ptr.To(false) }),
		Entry("is suspended", func(m *v1alpha1.RemoteMirror) { m.Spec.Suspend = true }),
	)

	It("receives nothing while it is suspended, even on request, and everything afterwards", func() {
		f.Run()
		commit("one")
		push("HEAD:refs/heads/main")
		m := forge.RemoteMirror("backup", there.url()).Of(website).Build()
		m.Spec.Suspend = true
		f.Create(m)
		f.ExpectSettled(m, v1alpha1.ReasonSuspended)
		commit("two")
		push("HEAD:refs/heads/main")
		f.Change(m, func() { metav1.SetMetaDataAnnotation(&m.ObjectMeta, v1alpha1.AnnotationSync, "now") })
		f.ExpectRestartWritesNothing()
		f.ExpectSettled(m, v1alpha1.ReasonSuspended)
		Expect(there.asked.Load()).To(BeZero())
		Expect(m.Status.HandledSync).To(BeEmpty())

		f.Change(m, func() { m.Spec.Suspend = false })
		f.Eventually(m).Should(HaveField("Status.HandledSync", "now"))
		expectPushed(m)
		Expect(f.Events()).NotTo(ContainElement(HavePrefix("Warning")), "this is ordinary progress")
	})

	It("can be limited to the protected branches of the project and of its groups, and follows them", func() {
		f.Run()
		one := commit("one")
		push("HEAD:refs/heads/main", "HEAD:refs/heads/release/1", "HEAD:refs/heads/topic", "HEAD:refs/tags/v1")
		there.git.Git(GinkgoTB(), "fetch", "--quiet", worker.Dir, one+":refs/heads/theirs")
		m := forge.RemoteMirror("backup", there.url()).Of(website).OnlyProtected().Build()
		f.Create(m)
		expectPushed(m)
		Expect(there.refs()).To(And(HaveLen(3), HaveKey("refs/heads/main"), HaveKey("refs/heads/theirs"), HaveKey("refs/tags/v1")))
		before := m.Status.PushedRules
		f.Create(forge.ProtectedBranch("release/*").Of(acme).Build())
		f.Eventually(m).Should(HaveField("Status.PushedRules", Not(Equal(before))))
		expectPushed(m)
		Expect(there.refs()).To(HaveKey("refs/heads/release/1"))
		f.ExpectRestartWritesNothing()
	})

	It("can be limited to the branches that match", func() {
		f.Run()
		commit("one")
		push("HEAD:refs/heads/main", "HEAD:refs/heads/release/1", "HEAD:refs/heads/topic", "HEAD:refs/tags/v1")
		m := forge.RemoteMirror("backup", there.url()).Of(website).Matching("^(main|rel)").Build()
		f.Create(m)
		expectPushed(m)
		Expect(there.refs()).To(And(HaveLen(3), HaveKey("refs/heads/main"), HaveKey("refs/heads/release/1"), HaveKey("refs/tags/v1")))
		f.Change(m, func() { m.Spec.BranchRegex = "topic" })
		Eventually(there.refs).Should(HaveLen(4))
	})

	It("keeps branches that have diverged, names them, and continues with the rest", func() {
		f.Run()
		commit("one")
		push("HEAD:refs/heads/main")
		m := forge.RemoteMirror("backup", there.url()).Of(website).Keeping().Build()
		f.Create(m)
		expectPushed(m)
		theirs := commit("theirs")
		there.git.Git(GinkgoTB(), "fetch", "--quiet", worker.Dir, theirs+":refs/heads/main")
		worker.Git(GinkgoTB(), "reset", "--quiet", "--hard", "HEAD~1")
		ours := commit("ours")
		push("HEAD:refs/heads/main")
		f.ExpectWaiting(m, v1alpha1.ReasonPushIncomplete, "diverged", "refs/heads/main")
		Expect(m.Status.LastError).To(ContainSubstring("refs/heads/main"))
		Expect(m.Status.UpdateStatus).To(Equal(v1alpha1.MirrorFailed))
		Expect(there.refs()).To(HaveKeyWithValue("refs/heads/main", theirs))

		push("HEAD:refs/heads/topic")
		Eventually(there.refs).Should(HaveKeyWithValue("refs/heads/topic", ours))

		f.Change(m, func() { m.Spec.KeepDivergentRefs = false })
		expectPushed(m)
		Expect(there.refs()).To(HaveKeyWithValue("refs/heads/main", ours))
	})

	It("names the refs that the target refuses, and pushes the rest", func() {
		f.Run()
		there.hook(`test "$1" != refs/heads/locked`)
		commit("one")
		push("HEAD:refs/heads/main", "HEAD:refs/heads/locked")
		m := forge.RemoteMirror("backup", there.url()).Of(website).Build()
		f.Create(m)
		f.ExpectWaiting(m, v1alpha1.ReasonPushIncomplete, "the target refuses these refs: refs/heads/locked (hook declined)")
		Expect(there.refs()).To(HaveKey("refs/heads/main"))
		f.ExpectRestartWritesNothing()
	})

	It("stops a push when it must not continue, says why, and pushes again when it can", func() {
		f.Run()
		m := hangs()
		expectUpdate(m, v1alpha1.MirrorStarted)
		f.Change(m, func() { m.Spec.BranchRegex = "*" })
		f.ExpectStalled(m, v1alpha1.ReasonInvalid, "branchRegex is not in RE2 syntax")
		expectRefused(m, "branchRegex is not in RE2 syntax")
		Eventually(there.holding.Load).Should(BeZero())
		there.hold.Store(false)
		f.Change(m, func() { m.Spec.BranchRegex = "main" })
		expectPushed(m)
	})

	It("says that its project cannot be reached, and continues when it can be", func() {
		f.Run()
		forge.UntilYounger(website)
		late := forge.Project("late").In(acme).Build()
		m := forge.RemoteMirror("backup", there.url()).Of(late).Build()
		f.Create(late, m)
		f.ExpectReady(late, m)
		f.Change(late, func() { late.Spec.Path = website.Spec.Path })
		f.ExpectWaiting(m, v1alpha1.ReasonReferenceNotReady, "does not hold its full path")
		expectRefused(m, "projectRef: the Project late does not hold its full path")
		f.ExpectRestartWritesNothing()
		f.Change(late, func() { late.Spec.Path = "late" })
		f.Eventually(m).Should(HaveField("Status", And(HaveField("UpdateStatus", v1alpha1.MirrorFinished), HaveField("LastError", BeEmpty()))))
		f.ExpectReady(late, m)
	})
})

var _ = Describe("A mirror to which nothing is pushed:", func() {
	forge.DescribeTarget("a mirror", forge.Projects, func() *forge.Forge { return f },
		func(name string, project, _ *v1alpha1.Reference) v1alpha1.Targeted {
			m := forge.RemoteMirror(name, there.url()).Disabled().Build()
			m.Spec.ProjectRef = *project
			return m
		})
})

var _ = Describe("A target", func() {
	It("is refused in a private network, also by its name", func() {
		f = forge.New(cluster, forge.Options{AllowTargets: []string{}})
		f.Run()
		commit("one")
		push("HEAD:refs/heads/main")
		m := forge.RemoteMirror("literal", there.url()).Of(website).Build()
		f.Create(m)
		f.ExpectStalled(m, v1alpha1.ReasonTargetRefused, "requests to localhost are not allowed")
		Expect(there.asked.Load()).To(BeZero())
		expectRefused(m, "url: 127.0.0.1: requests to localhost are not allowed")
		f.ExpectRestartWritesNothing()
	})

	It("is given up if it is too slow", func() {
		f = forge.New(cluster, forge.Options{Egress: egress.Limits{Patience: time.Second, Throughput: 64 << 10}})
		f.Run()
		there.drip.Store(true)
		commit("one")
		push("HEAD:refs/heads/main")
		m := forge.RemoteMirror("backup", there.url()).Of(website).Build()
		f.Create(m)
		f.ExpectWaiting(m, v1alpha1.ReasonPushFailed,
			"127.0.0.1 is too slow: after the first 1s the server requires at least 64 KiB per second on average")
		Expect(m.Status.LastError).To(HavePrefix("127.0.0.1 is too slow"))
	})

	It("is given up if it hangs", func() {
		limits := remotemirror.DefaultLimits()
		limits.Timeout = time.Second
		f = forge.New(cluster, forge.Options{Mirrors: limits})
		f.Run()
		there.hold.Store(true)
		commit("one")
		push("HEAD:refs/heads/main")
		m := forge.RemoteMirror("backup", there.url()).Of(website).Build()
		f.Create(m)
		f.ExpectWaiting(m, v1alpha1.ReasonPushFailed, "the push took longer than allowed")
	})

	DescribeTable("is reported if it is not available",
		func(url, words string) {
			f.Run()
			commit("one")
			push("HEAD:refs/heads/main")
			m := forge.RemoteMirror("backup", url).Of(website).Build()
			f.Create(m)
			f.ExpectWaiting(m, v1alpha1.ReasonPushFailed, words)
		},
		Entry("if the host does not answer", "http://127.0.0.1:1/t.git", "Failed to connect"),
		Entry("if the host is unknown", "https://nobody.invalid/t.git", "Could not resolve host nobody.invalid"),
	)
})

var _ = Describe("The spec of a mirror", func() {
	DescribeTable("is refused by the schema",
		func(change func(m *v1alpha1.RemoteMirror), words ...string) {
			m := forge.RemoteMirror("backup", "https://example.com/t.git").Of(website).Build()
			change(m)
			f.ExpectRefused(m, words...)
		},
		Entry("with credentials in the URL", func(m *v1alpha1.RemoteMirror) { m.Spec.URL = "https://ann:secret@example.com/t.git" }, "secretRef"),
		Entry("with a user name in the URL", func(m *v1alpha1.RemoteMirror) { m.Spec.URL = "https://ann@example.com/t.git" }, "secretRef"),
		Entry("with the end of a password after the host", func(m *v1alpha1.RemoteMirror) { m.Spec.URL = "https://ann:1/secret@example.com/t.git" }, "secretRef"),
		Entry("with a query", func(m *v1alpha1.RemoteMirror) { m.Spec.URL = "https://example.com/t.git?private_token=secret" }, "a query"),
		Entry("with a fragment", func(m *v1alpha1.RemoteMirror) { m.Spec.URL = "https://ann:1#secret" }, "a fragment"),
		Entry("with another protocol", func(m *v1alpha1.RemoteMirror) { m.Spec.URL = "ftp://example.com/t.git" }, "spec.url"),
		Entry("with a line break", func(m *v1alpha1.RemoteMirror) { m.Spec.URL = "https://example.com/\nt.git" }, "spec.url"),
		Entry("with an expression for full names of refs", func(m *v1alpha1.RemoteMirror) {
			m.Spec.BranchRegex = "^refs/heads/release/"
		}, "write ^release/, not ^refs/heads/release/"),
		Entry("with two rules for branches", func(m *v1alpha1.RemoteMirror) {
			m.Spec.OnlyProtectedBranches, m.Spec.BranchRegex = true, "main"
		}, "exclude each other"),
	)

	It("has one target", func() {
		m := forge.RemoteMirror("backup", "https://example.com/t.git").Of(website).Disabled().Build()
		f.Create(m)
		f.ExpectReady(m)
		f.ExpectChangeRefused(m, func() { m.Spec.URL = "https://example.com/other.git" }, "url cannot change")
	})

	It("reports an invalid regular expression", func() {
		m := forge.RemoteMirror("backup", "https://example.com/t.git").Of(website).Matching(`(?!x)`).Build()
		f.Create(m)
		f.ExpectStalled(m, v1alpha1.ReasonInvalid, "branchRegex is not in RE2 syntax")
		expectRefused(m, "branchRegex is not in RE2 syntax")
		f.Change(m, func() { m.Spec.BranchRegex = `^refs\/heads\/main` })
		f.ExpectStalled(m, v1alpha1.ReasonInvalid, "branchRegex is matched against names without refs/heads/: write ^release/")
	})
})
