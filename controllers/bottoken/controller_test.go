package bottoken_test

import (
	"crypto/rand"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/accesstoken"
	"github.com/forgeplane/forgeplane/internal/credential"
	"github.com/forgeplane/forgeplane/test/forge"
)

// chosen is a value that a user has chosen.
const chosen = "a-value-that-is-long-enough"

// withDigest returns a builder for a token with an unknown value.
func withDigest(name string) *forge.BotTokenBuilder {
	return forge.BotToken(name).Digest(credential.Digest(rand.Text()))
}

var _ = Describe("A bot token", func() {
	forge.DescribeIDs(func() *forge.Forge { return f }, func(name string) v1alpha1.Identified {
		return withDigest(name).Of(website).Build()
	})
	forge.DescribeTarget("a bot token", forge.ProjectsAndGroups, func() *forge.Forge { return f },
		func(name string, project, group *v1alpha1.Reference) v1alpha1.Targeted {
			t := withDigest(name).Build()
			t.Spec.ProjectRef, t.Spec.GroupRef = project, group
			return t
		})

	It("shows which user its bot is, and writes nothing more", func() {
		f.Run()
		of, ofGroup := withDigest("web").Of(website).ID(5).Build(), withDigest("all").OfGroup(acme).ID(6).Build()
		f.Create(of, ofGroup)
		f.ExpectReady(of, ofGroup)
		Expect(of.Status.UserID).To(BeEquivalentTo(1<<52 + 5))
		Expect(of.Status.Username).To(MatchRegexp("^project_7_bot_[0-9a-f]{32}$"))
		Expect(ofGroup.Status.Username).To(MatchRegexp("^group_[0-9]+_bot_[0-9a-f]{32}$"))
		Expect(of.Status.Digest).To(Equal(of.Spec.Digest))
		f.ExpectRestartWritesNothing()
	})

	It("is deleted with its project if it was created over REST, and waits for the project if it was declared", func() {
		f.NewStorage("default")
		f.Run()
		rest, declared := withDigest("rest").Of(website).Build(), withDigest("declared").Of(website).Build()
		rest.Spec.ProjectRef.UID = string(website.UID)
		f.CreateOverREST(rest)
		f.Create(declared)
		f.ExpectReady(website, rest, declared)
		f.Delete(website)
		f.ExpectGone(website, rest)
		f.ExpectWaiting(declared, v1alpha1.ReasonReferenceNotFound, "projectRef")
	})

	It("is settled while it is revoked, and stays revoked", func() {
		f.Run()
		t := withDigest("web").Of(website).Build()
		f.Create(t)
		f.ExpectReady(t)
		f.Change(t, func() { t.Spec.Revoked = true })
		f.ExpectSettled(t, v1alpha1.ReasonRevoked, "revoked")
		Expect(t.Status.Digest).To(Equal(t.Spec.Digest))
		Expect(t.Status.EndedAt).NotTo(BeNil())
		f.ExpectChangeRefused(t, func() { t.Spec.Revoked = false }, "a revoked token stays revoked")
		f.ExpectRestartWritesNothing()
	})

	It("is removed a month after its end if it was created over REST", func() {
		rest, declared := withDigest("rest").Of(website).Build(), withDigest("declared").Of(website).Build()
		rest.Spec.ProjectRef.UID, rest.Spec.Revoked, declared.Spec.Revoked = string(website.UID), true, true
		f.CreateOverREST(rest)
		f.Create(declared)
		f.ExpectSettled(rest, v1alpha1.ReasonRevoked)
		f.ExpectSettled(declared, v1alpha1.ReasonRevoked)
		f.Clock.SetTime(f.Clock.Now().Add(30*24*time.Hour - time.Minute))
		f.ExpectSettled(rest, v1alpha1.ReasonRevoked)
		f.Clock.SetTime(f.Clock.Now().Add(time.Hour))
		_, err := f.Reconcile(rest)
		Expect(err).NotTo(HaveOccurred())
		f.ExpectGone(rest)
		f.ExpectSettled(declared, v1alpha1.ReasonRevoked)
	})

	It("expires, and is accepted again when its expiry is postponed", func() {
		t := withDigest("web").Of(website).Expires(f.Clock.Now().Add(time.Hour)).Build()
		f.Create(t)
		result, err := f.Reconcile(t)
		Expect(err).NotTo(HaveOccurred())
		Expect(result.RequeueAfter).To(Equal(time.Hour))
		f.ExpectReady(t)
		f.Clock.SetTime(t.Spec.ExpiresAt.Time)
		f.ExpectSettled(t, v1alpha1.ReasonExpired, t.Spec.ExpiresAt.UTC().Format(time.RFC3339))
		f.Change(t, func() { t.Spec.ExpiresAt = nil })
		f.ExpectReady(t)
		Expect(t.Status.EndedAt).To(BeNil())
	})
})

var _ = Describe("The value of a bot token", func() {
	var t *v1alpha1.BotToken
	BeforeEach(func() { t = forge.BotToken("ci").Of(website).Build() })

	It("is generated into a Secret that is labeled for it, and only its digest is shown", func() {
		f.Run()
		unlabeled := offered("ci", "token", "")
		unlabeled.Labels = nil
		f.Create(unlabeled, t)
		f.ExpectWaiting(t, v1alpha1.ReasonReferenceNotFound, "kubectl label secret ci --namespace "+t.Namespace+" forgeplane.dev/secret=bot-token")
		Expect(t.Status.Digest).To(BeEmpty())
		f.Change(unlabeled, func() { unlabeled.Labels = offered("", "", "").Labels })
		f.ExpectReady(t)
		value := valueOf(t)
		Expect(value).To(HavePrefix(accesstoken.Prefix))
		Expect(t.Status.Digest).To(Equal(credential.Digest(value)))
		f.ExpectRestartWritesNothing()
	})

	It("is adopted, and follows the Secret", func() {
		f.Run()
		s := offered("ci", "token", chosen)
		f.Create(s, t)
		f.ExpectReady(t)
		Expect(t.Status.Digest).To(Equal(credential.Digest(chosen)))
		f.Change(s, func() { s.Data["token"] = []byte("short") })
		f.ExpectStalled(t, v1alpha1.ReasonInvalid, "shorter than 20 characters")
		Expect(t.Status.Digest).To(BeEmpty())
		f.Change(s, func() { s.Data["token"] = []byte(chosen + "-2") })
		f.ExpectReady(t)
		Expect(t.Status.Digest).To(Equal(credential.Digest(chosen + "-2")))
	})

	It("is replaced on request if Forgeplane has generated it", func() {
		f.Run()
		f.Create(offered("ci", "token", ""), t)
		f.ExpectReady(t)
		value := valueOf(t)
		f.Change(t, func() { t.Annotations = map[string]string{v1alpha1.AnnotationRotate: "june"} })
		f.Eventually(t).Should(HaveField("Status.Rotated", "june"))
		f.ExpectReady(t)
		Expect(valueOf(t)).NotTo(Equal(value))
		Expect(t.Status.Digest).To(Equal(credential.Digest(valueOf(t))))
		f.ExpectRestartWritesNothing()
	})

	It("stays on request if it was not generated", func() {
		t.Annotations = map[string]string{v1alpha1.AnnotationRotate: "june"}
		f.Create(offered("ci", "token", chosen), t)
		f.ExpectStalled(t, v1alpha1.ReasonInvalid, "Forgeplane did not generate the value in Secret ci")
		Expect(valueOf(t)).To(Equal(chosen))
		Expect(t.Status.Digest).To(Equal(credential.Digest(chosen)))
	})

	It("is removed when the token ends, and generated again when it does not end after all", func() {
		t.Spec.ExpiresAt = &metav1.Time{Time: f.Clock.Now().Add(time.Hour)}
		f.Create(offered("ci", "token", ""), t)
		f.ExpectReady(t)
		value := valueOf(t)
		f.Clock.SetTime(t.Spec.ExpiresAt.Time)
		f.ExpectSettled(t, v1alpha1.ReasonExpired)
		Expect(valueOf(t)).To(BeEmpty())
		Expect(t.Status.Digest).To(Equal(credential.Digest(value)), "whoever shows it is told why it is refused")
		f.Delete(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: t.Namespace, Name: "ci"}})
		f.ExpectSettled(t, v1alpha1.ReasonExpired)
		f.Create(offered("ci", "token", ""))
		f.Change(t, func() { t.Spec.ExpiresAt = nil })
		f.ExpectReady(t)
		Expect(valueOf(t)).NotTo(BeElementOf("", value))
	})

	It("is removed from the Secret when the token is deleted, if it was generated", func() {
		f.Run()
		other := forge.BotToken("other").Of(website).Build()
		f.Create(offered("ci", "token", ""), offered("other", "token", chosen), t, other)
		f.ExpectReady(t, other)
		f.Delete(t)
		f.Delete(other)
		Eventually(valueOf).WithArguments(t).Should(BeEmpty())
		Expect(valueOf(other)).To(Equal(chosen))
	})

	It("belongs to one token, whose name tokens of other tenants do not learn", func() {
		f.Run()
		team := f.NewNamespace()
		group := forge.Group("bolt").In(team).Build()
		f.Create(offered("ci", "token", chosen), t)
		f.ExpectReady(t)
		copied, other := offered("copied", "token", chosen), forge.BotToken("copied").OfGroup(group).Build()
		copied.Namespace = team
		f.Create(group, copied, other)
		f.ExpectStalled(other, v1alpha1.ReasonAlreadyExists, "key token of Secret copied is the value of another token")
		Expect(other.Status.Digest).To(BeEmpty())
		Expect(f.Events()).NotTo(ContainElement(ContainSubstring(acme.Namespace + "/ci")))
		f.Delete(t)
		f.ExpectReady(other)
		Expect(other.Status.Digest).To(Equal(credential.Digest(chosen)))
	})

	It("is not that of a personal access token", func() {
		ada := forge.User("ada").Build()
		personal := forge.AccessToken("ada").For(ada).Build()
		personal.Spec.SecretRef, personal.Spec.Digest = nil, credential.Digest(chosen)
		f.Create(ada, personal)
		f.ExpectReady(ada, personal)
		f.Create(offered("ci", "token", chosen), t)
		f.ExpectStalled(t, v1alpha1.ReasonAlreadyExists, "is the value of another token")
		Expect(t.Status.Digest).To(BeEmpty())
	})

	It("is not shared by two tokens that name the same key", func() {
		other := forge.BotToken("other").Of(website).Secret("ci", "token").Build()
		f.Create(offered("ci", "token", chosen))
		older, younger := forge.CreateInTurn(f, t, other)
		f.ExpectReady(older)
		f.ExpectStalled(younger, v1alpha1.ReasonAlreadyExists, "key token of Secret ci is held by BotToken")
		Expect(younger.Status.Digest).To(BeEmpty())
	})
})

var _ = Describe("A bot token is refused by the API server", func() {
	DescribeTable("when it is new",
		func(change func(*v1alpha1.BotToken), words ...string) {
			t := forge.BotToken("ci").Of(website).Build()
			change(t)
			f.ExpectRefused(t, words...)
		},
		Entry("without a project and a group", func(t *v1alpha1.BotToken) { t.Spec.ProjectRef = nil }, "projectRef"),
		Entry("with both", func(t *v1alpha1.BotToken) { t.Spec.GroupRef = &v1alpha1.Reference{Name: "acme"} }, "projectRef"),
		Entry("with the scope sudo", func(t *v1alpha1.BotToken) { t.Spec.Scopes = []v1alpha1.TokenScope{v1alpha1.ScopeSudo} }, "scopes must not contain sudo"),
		Entry("without a scope", func(t *v1alpha1.BotToken) { t.Spec.Scopes = []v1alpha1.TokenScope{} }, "spec.scopes"),
		Entry("with an unknown role", func(t *v1alpha1.BotToken) { t.Spec.Role = "Admin" }, "spec.role"),
		Entry("without a name", func(t *v1alpha1.BotToken) { t.Spec.Name = "" }, "spec.name"),
		Entry("with a Secret and a digest", func(t *v1alpha1.BotToken) { t.Spec.Digest = strings.Repeat("a", 64) }, "one of secretRef and digest must be set"),
		Entry("with the name of a Secret elsewhere", func(t *v1alpha1.BotToken) { t.Spec.SecretRef.Name = "../forgeplane-system/root" },
			"this cannot be the name of a Secret"),
	)
})

var _ = It("does not accept a bot token while a User has the id of its bot", func() {
	f.Run()
	t := withDigest("web").Of(website).ID(5).Build()
	f.Create(t)
	f.ExpectReady(t)
	taken := forge.User("taken").Build()
	taken.Spec.ID = 1<<52 + 5
	f.Create(taken)
	f.ExpectStalled(t, v1alpha1.ReasonAlreadyExists, "which User taken has")
	f.Delete(taken)
	f.ExpectReady(t)
})
