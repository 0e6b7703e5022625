package triggertoken_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/credential"
	"github.com/forgeplane/forgeplane/internal/triggertoken"
	"github.com/forgeplane/forgeplane/test/forge"
)

// chosen is a value that a user has chosen.
const chosen = "a-value-that-is-long-enough"

// offered are the labels of a Secret that a token can use.
var offered = map[string]string{v1alpha1.LabelSecret: v1alpha1.SecretOfTriggerToken}

// secret returns a Secret of the team with one key, for use by a token.
func secret(name, key, value string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: acme.Namespace, Name: name, Labels: offered}, Data: map[string][]byte{key: []byte(value)},
	}
}

// secretOf returns the Secret that a token uses.
func secretOf(t *v1alpha1.TriggerToken) *corev1.Secret {
	GinkgoHelper()
	f.Refresh(t)
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: forge.PlatformNamespace, Name: t.Status.SecretRef.Name}}
	if s.Name == "" {
		s.Namespace, s.Name = t.Namespace, t.Spec.SecretRef.Name
	}
	f.Refresh(s)
	return s
}

// valueOf returns the accepted value of a token.
func valueOf(t *v1alpha1.TriggerToken) string {
	GinkgoHelper()
	s := secretOf(t)
	value := string(s.Data["token"])
	if s.Namespace == t.Namespace {
		value = string(s.Data[t.Spec.SecretRef.Key])
	}
	Expect(t.Status.Digest).To(Equal(credential.Digest(value)))
	return value
}

// expectAnother waits until a value other than the given one is in force, and returns it.
func expectAnother(t *v1alpha1.TriggerToken, than string) string {
	GinkgoHelper()
	f.Eventually(t).Should(HaveField("Status.Digest", Not(BeElementOf("", credential.Digest(than)))))
	f.ExpectReady(t)
	return valueOf(t)
}

var _ = Describe("The value of a trigger token", func() {
	var t *v1alpha1.TriggerToken
	BeforeEach(func() { t = forge.TriggerToken("deploy").Of(website).Build() })

	It("is generated into a Secret of the platform, and only its digest is shown", func() {
		f.Create(t)
		f.ExpectReady(t)
		s := secretOf(t)
		Expect(s.Namespace).To(Equal(forge.PlatformNamespace), "no tenant reads or names it")
		Expect(string(s.Data["token"])).To(MatchRegexp("^glptt-[0-9a-f]{40}$"))
		Expect(credential.Held(s, v1alpha1.SecretOfTriggerToken, t)).To(BeTrue())
		Expect(find(website, valueOf(t))).To(HaveField("UID", t.UID))
		Expect(t.Spec.SecretRef).To(BeNil(), "what was not declared is not written")
		expectNoValue(t, string(s.Data["token"]))

		other := forge.TriggerToken("other").Of(website).Build()
		f.Create(other)
		f.ExpectReady(other)
		Expect(valueOf(other)).NotTo(Equal(valueOf(t)))
	})

	It("is accepted only for its own project", func() {
		other := forge.Project("other").In(acme).Build()
		f.Create(other, t)
		f.ExpectReady(t)
		value := valueOf(t)
		for _, wrong := range []string{"", value[1:], value + "0", strings.ToUpper(value), t.Status.Digest} {
			Expect(find(website, wrong)).Error().To(MatchError(catalog.ErrNotFound), wrong)
		}
		Expect(find(other, value)).Error().To(MatchError(catalog.ErrNotFound))
	})

	It("is put into an empty Secret that is labeled for it", func() {
		f.Run()
		t = forge.TriggerToken("deploy").Of(website).Secret("ci", "TRIGGER").Build()
		f.Create(t)
		f.ExpectWaiting(t, v1alpha1.ReasonReferenceNotFound, "secretRef: there is no Secret ci with the label forgeplane.dev/secret=trigger-token",
			"kubectl label secret ci --namespace "+t.Namespace+" forgeplane.dev/secret=trigger-token")
		empty := secret("ci", "TRIGGER", "")
		empty.Data = nil
		f.Create(empty)
		f.ExpectReady(t)
		Expect(secretOf(t)).To(And(HaveField("UID", empty.UID), HaveField("Data", HaveKey("TRIGGER"))))
		Expect(valueOf(t)).To(HavePrefix(triggertoken.Prefix))
		Expect(t.Status.SecretRef.Name).To(BeEmpty())
		f.ExpectRestartWritesNothing()
	})

	It("is deleted together with the token", func() {
		f.Run()
		f.Create(t)
		f.ExpectReady(t)
		s := secretOf(t)
		f.Delete(t)
		f.ExpectGone(t, s)
	})

	It("differs for a later object of the same name", func() {
		f.Run()
		f.Create(t)
		f.ExpectReady(t)
		value := valueOf(t)
		f.Delete(t)
		t = forge.TriggerToken("deploy").Of(website).Build()
		f.Create(t)
		f.ExpectReady(t)
		Expect(valueOf(t)).NotTo(Equal(value))
	})

	It("is replaced when its Secret or its key is deleted while the controllers run", func() {
		f.Run()
		f.Create(t)
		f.ExpectReady(t)
		first := valueOf(t)

		By("deleting the Secret")
		f.Delete(secretOf(t))
		second := expectAnother(t, first)
		Expect(find(website, second)).To(HaveField("UID", t.UID))
		Eventually(func() error { _, err := find(website, first); return err }).Should(MatchError(catalog.ErrNotFound))

		By("deleting the key")
		s := secretOf(t)
		f.Change(s, func() { delete(s.Data, "token") })
		third := expectAnother(t, second)
		Expect(third).NotTo(Equal(first))
		Expect(secretOf(t).UID).To(Equal(s.UID))

		f.ExpectRestartWritesNothing()
	})

	Describe("with an annotation that asks to replace it", func() {
		rotate := func(text string) {
			GinkgoHelper()
			f.Change(t, func() { metav1.SetMetaDataAnnotation(&t.ObjectMeta, v1alpha1.AnnotationRotate, text) })
		}

		It("is replaced once for each text", func() {
			f.Create(t)
			f.ExpectReady(t)
			first := valueOf(t)
			rotate("2026-06")
			f.ExpectReady(t)
			second := valueOf(t)
			Expect(second).NotTo(Equal(first))
			Expect(t.Status.Rotated).To(Equal("2026-06"))
			Expect(find(website, first)).Error().To(MatchError(catalog.ErrNotFound))
			Expect(find(website, second)).To(HaveField("UID", t.UID))

			f.Change(t, func() { t.Annotations = nil })
			f.ExpectReady(t)
			rotate("2026-06")
			f.ExpectReady(t)
			Expect(valueOf(t)).To(Equal(second), "it was asked before")
			rotate("2026-07")
			f.ExpectReady(t)
			Expect(valueOf(t)).NotTo(BeElementOf(first, second))
			expectNoValue(t, valueOf(t))
		})

		It("is replaced once, even if the status was lost on the way", func() {
			f.Create(t)
			f.ExpectReady(t)
			rotate("now")
			f.ExpectReady(t)
			value := valueOf(t)
			before := t.DeepCopy()
			t.Status = v1alpha1.TriggerTokenStatus{CommonStatus: v1alpha1.CommonStatus{ObservedGeneration: -1}}
			Expect(f.Live().Status().Patch(GinkgoT().Context(), t, client.MergeFrom(before))).To(Succeed())
			f.Change(t, func() { t.Spec.Description = "restored" })
			f.ExpectReady(t)
			Expect(valueOf(t)).To(Equal(value))
			Expect(t.Status.Rotated).To(Equal("now"))
		})

		It("is not replaced if it was generated while the annotation was set", func() {
			t = forge.TriggerToken("deploy").Of(website).Rotate("first").Build()
			f.Create(t)
			f.ExpectReady(t)
			Expect(t.Status.Rotated).To(Equal("first"))
			Expect(secretOf(t).Annotations).To(HaveKeyWithValue(v1alpha1.AnnotationRotated, "first"))
		})

		It("is not replaced if another writer has created it, and the token says so", func() {
			f.Run()
			f.Create(secret("ci", "token", chosen))
			t = forge.TriggerToken("deploy").Of(website).Secret("ci", "token").Build()
			f.Create(t)
			f.ExpectReady(t)
			rotate("now")
			f.ExpectStalled(t, v1alpha1.ReasonInvalid, "the annotation forgeplane.dev/rotate has no effect", "Forgeplane did not generate the value in Secret ci")
			Expect(valueOf(t)).To(Equal(chosen))
			Expect(find(website, chosen)).To(HaveField("UID", t.UID), "the old value goes on")
			s := secretOf(t)
			f.Change(s, func() { s.Data = nil })
			second := expectAnother(t, chosen)
			Expect(t.Status.Rotated).To(Equal("now"))
			rotate("later")
			expectAnother(t, second)
		})

		It("is not replaced for a text that is too long to remember", func() {
			f.Create(t)
			f.ExpectReady(t)
			rotate(strings.Repeat("a", 254))
			f.ExpectStalled(t, v1alpha1.ReasonInvalid, "longer than 253 characters")
		})
	})
})

var _ = Describe("A Secret that is older than its trigger token", func() {
	var t *v1alpha1.TriggerToken
	BeforeEach(func() { t = forge.TriggerToken("deploy").Of(website).Secret("ci", "token").Build() })

	DescribeTable("is not used, and its digest is not shown, unless it is labeled for trigger tokens",
		func(labels map[string]string) {
			s := secret("ci", "token", chosen)
			s.Labels = labels
			f.Create(s, t)
			f.ExpectWaiting(t, v1alpha1.ReasonReferenceNotFound, "there is no Secret ci with the label forgeplane.dev/secret=trigger-token")
			Expect(t.Status.Digest).To(BeEmpty())
			Expect(find(website, chosen)).Error().To(MatchError(catalog.ErrNotFound))
			Expect(secretOf(t).Labels).To(Equal(labels), "nobody but who may write it says what it is for")
		},
		Entry("with no label", nil),
		Entry("with the label for a mirror", map[string]string{v1alpha1.LabelSecret: v1alpha1.SecretOfRemoteMirror}),
	)

	It("is adopted if it is labeled, and is not changed", func() {
		s := secret("ci", "token", chosen)
		s.Annotations = map[string]string{"note": "mine"}
		f.Create(s, t)
		f.ExpectReady(t)
		Expect(valueOf(t)).To(Equal(chosen))
		Expect(secretOf(t)).To(Equal(s))
		f.Delete(t)
		f.ExpectGone(t)
		f.Refresh(s)
	})

	It("is followed, and released when it loses its label, while the controllers run", func() {
		f.Run()
		s := secret("ci", "token", chosen)
		f.Create(s, t)
		f.ExpectReady(t)
		f.Change(s, func() { s.Data["token"] = []byte(chosen + "-2") })
		Expect(expectAnother(t, chosen)).To(Equal(chosen + "-2"))
		f.Refresh(s)
		f.Change(s, func() { s.Labels = nil })
		f.ExpectWaiting(t, v1alpha1.ReasonReferenceNotFound, "the label forgeplane.dev/secret=trigger-token")
		Expect(find(website, chosen+"-2")).Error().To(MatchError(catalog.ErrNotFound))
		f.Change(s, func() { s.Labels = offered })
		f.ExpectReady(t)
		f.ExpectRestartWritesNothing()
	})

	DescribeTable("is not adopted as long as its value is not acceptable",
		func(change func(s *corev1.Secret), words ...string) {
			s := secret("ci", "token", chosen)
			change(s)
			data := s.DeepCopy().Data
			f.Create(s, t)
			f.ExpectStalled(t, v1alpha1.ReasonInvalid, words...)
			Expect(t.Status.Digest).To(BeEmpty())
			Expect(secretOf(t).Data).To(Equal(data), "nothing is written there")
			for _, value := range data {
				Expect(find(website, string(value))).Error().To(MatchError(catalog.ErrNotFound))
				if len(value) >= 8 {
					expectNoValue(t, string(value))
				}
			}
		},
		Entry("too short", func(s *corev1.Secret) { s.Data["token"] = []byte("short-secret") },
			"key token of Secret ci holds a value shorter than 20 characters", "remove the key to get a generated one"),
		Entry("too long", func(s *corev1.Secret) { s.Data["token"] = []byte(strings.Repeat("0123456789", 26)) }, "longer than 255 characters"),
		Entry("with a line end", func(s *corev1.Secret) { s.Data["token"] = []byte(chosen + "\n") }, "a line break"),
		Entry("for something else", func(s *corev1.Secret) {
			s.Type, s.Data["username"], s.Data["password"] = corev1.SecretTypeBasicAuth, []byte("somebody"), []byte(chosen)
		}, "Secret ci has the type kubernetes.io/basic-auth"),
	)

	It("is adopted when its value becomes valid, and released when it becomes invalid, while the controllers run", func() {
		f.Run()
		s := secret("ci", "token", "short")
		f.Create(s, t)
		f.ExpectStalled(t, v1alpha1.ReasonInvalid)
		f.Change(s, func() { s.Data["token"] = []byte(chosen) })
		f.ExpectReady(t)
		f.Change(s, func() { s.Data["token"] = []byte("short") })
		f.ExpectStalled(t, v1alpha1.ReasonInvalid)
		Expect(find(website, chosen)).Error().To(MatchError(catalog.ErrNotFound))
	})

	It("is not adopted with the value of another project's token, even a younger one, until that is free", func() {
		f.Run()
		bolt := forge.Group("bolt").In(f.NewNamespace()).Build()
		app := forge.Project("app").In(bolt).Build()
		theirs := forge.TriggerToken("theirs").Of(app).Build()
		f.Create(secret("ci", "token", ""), t, bolt, app)
		f.ExpectReady(t)
		f.Create(theirs)
		f.ExpectReady(theirs)
		value := valueOf(theirs)

		s := secretOf(t)
		f.Change(s, func() { s.Data["token"] = []byte(value) })
		f.ExpectStalled(t, v1alpha1.ReasonAlreadyExists, "key token of Secret ci holds the value of a token of another project")
		for _, c := range t.Status.Conditions {
			Expect(c.Message).NotTo(Or(ContainSubstring("theirs"), ContainSubstring("bolt"), ContainSubstring(theirs.Namespace)))
		}
		expectNoValue(t, value)
		Expect(find(website, value)).Error().To(MatchError(catalog.ErrNotFound))
		Expect(find(app, value)).To(HaveField("UID", theirs.UID))
		f.Change(t, func() { t.Spec.Description = "again" })
		f.ExpectStalled(t, v1alpha1.ReasonAlreadyExists)
		f.ExpectReady(theirs)
		f.ExpectRestartWritesNothing()

		f.Delete(theirs)
		f.ExpectReady(t)
		Eventually(find).WithArguments(website, value).Should(HaveField("UID", t.UID))
	})

	It("is not adopted by two tokens, and passes on when the older one is deleted", func() {
		f.Run()
		other := forge.TriggerToken("other").Of(website).Secret("ci", "token").Build()
		f.Create(secret("ci", "token", chosen))
		older, younger := forge.CreateInTurn(f, t, other)
		f.ExpectReady(older)
		f.ExpectStalled(younger, v1alpha1.ReasonAlreadyExists, "key token of Secret ci is held by TriggerToken "+older.Name)
		Expect(younger.Status.Digest).To(BeEmpty())
		Expect(find(website, chosen)).To(HaveField("UID", older.UID))
		f.Delete(older)
		f.ExpectReady(younger)
		Expect(find(website, chosen)).To(HaveField("UID", younger.UID))
	})

	It("loses the value that was generated for a deleted token, and keeps the values of others", func() {
		f.Run()
		s := secret("ci", "own", chosen)
		other := forge.TriggerToken("other").Of(website).Secret("ci", "other").Build()
		f.Create(s, t, other)
		f.ExpectReady(t, other)
		value, kept := valueOf(t), valueOf(other)
		f.Delete(t)
		f.Eventually(s).ShouldNot(HaveField("Data", HaveKey("token")))
		Expect(s.Data).To(Equal(map[string][]byte{"own": []byte(chosen), "other": []byte(kept)}))
		Expect(find(website, value)).Error().To(MatchError(catalog.ErrNotFound))
		f.ExpectReady(other)
		f.ExpectRestartWritesNothing()
	})

	It("loses the value that was generated for a token that names another Secret, and so does the platform", func() {
		f.Run()
		s := secret("ci", "own", chosen)
		t = forge.TriggerToken("deploy").Of(website).Build()
		f.Create(s, secret("another", "own", chosen), t)
		f.ExpectReady(t)
		issued, first := secretOf(t), valueOf(t)
		f.Change(t, func() { t.Spec.SecretRef = &v1alpha1.SecretKeyReference{Name: "ci", Key: "token"} })
		f.ExpectGone(issued)
		second := expectAnother(t, first)
		f.Change(t, func() { t.Spec.SecretRef.Name = "another" })
		f.Eventually(s).Should(HaveField("Data", map[string][]byte{"own": []byte(chosen)}))
		expectAnother(t, second)
		f.ExpectRestartWritesNothing()
	})

	It("keeps a value from another writer when its token is deleted", func() {
		f.Run()
		s := secret("ci", "token", chosen)
		f.Create(s, t)
		f.ExpectReady(t)
		f.Delete(t)
		f.ExpectRestartWritesNothing()
		f.Refresh(s)
		Expect(s.Data).To(Equal(map[string][]byte{"token": []byte(chosen)}))
	})

	It("has no effect if no token names it, whatever its label", func() {
		f.Run()
		f.Create(secret("stray", "token", chosen), secret("ci", "token", ""), t)
		f.ExpectReady(t)
		Expect(find(website, chosen)).Error().To(MatchError(catalog.ErrNotFound))
		Expect(valueOf(t)).To(HavePrefix(triggertoken.Prefix))
	})
})
