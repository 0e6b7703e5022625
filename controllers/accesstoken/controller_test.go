package accesstoken_test

import (
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/accesstoken"
	"github.com/forgeplane/forgeplane/internal/credential"
	"github.com/forgeplane/forgeplane/test/forge"
)

// secret returns a Secret of the platform with one key.
func secret(name, key, value string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: forge.PlatformNamespace, Name: name}, Data: map[string][]byte{key: []byte(value)},
	}
}

// stored returns the Secret with a name.
func stored(name string) *corev1.Secret {
	GinkgoHelper()
	s := secret(name, "", "")
	f.Refresh(s)
	return s
}

const value = "a-value-that-is-long-enough"

var _ = Describe("An access token", func() {
	var ada *v1alpha1.User
	var token *v1alpha1.AccessToken
	BeforeEach(func() { ada, token = newToken() })

	forge.DescribeIDs(func() *forge.Forge { return f }, func(name string) v1alpha1.Identified {
		return forge.AccessToken(name).For(ada).Build()
	})

	It("gets a generated value in its own Secret, and shows only the digest", func() {
		f.Create(token)
		f.ExpectReady(token)
		s := stored("laptop")
		generated := string(s.Data["token"])
		Expect(generated).To(HavePrefix(accesstoken.Prefix))
		Expect(len(generated)).To(BeNumerically(">=", 40))
		Expect(token.Status.Digest).To(Equal(credential.Digest(generated)))
		Expect(token.Status.Username).To(Equal(ada.Spec.Username))
		Expect(s.OwnerReferences).To(ConsistOf(And(HaveField("UID", token.UID), HaveField("Controller", HaveValue(BeTrue())))))
		Expect(accesstoken.ByValue(GinkgoT().Context(), f.Catalog, generated)).To(HaveField("UID", token.UID))
	})

	It("never gets the same value twice", func() {
		other := forge.AccessToken("desktop").For(ada).Build()
		f.Create(token, other)
		f.ExpectReady(token, other)
		Expect(token.Status.Digest).NotTo(Equal(other.Status.Digest))
	})

	It("adopts the value of an existing Secret, and does not change the Secret", func() {
		s := secret("laptop", "token", value)
		f.Create(s)
		before := stored("laptop")
		f.Create(token)
		f.ExpectReady(token)
		Expect(token.Status.Digest).To(Equal(credential.Digest(value)))
		Expect(stored("laptop")).To(Equal(before))
	})

	It("puts a generated value under the key that it names, next to other values", func() {
		f.Create(secret("shared", "other", "untouched"))
		token.Spec.SecretRef = &v1alpha1.SecretKeyReference{Name: "shared", Key: "laptop"}
		f.Create(token)
		f.ExpectReady(token)
		s := stored("shared")
		Expect(s.Data).To(HaveKeyWithValue("other", []byte("untouched")))
		Expect(token.Status.Digest).To(Equal(credential.Digest(string(s.Data["laptop"]))))
		Expect(s.OwnerReferences).To(BeEmpty(), "a Secret that somebody else made does not go with the token")
	})

	DescribeTable("does not accept a value that is too short",
		func(short string) {
			f.Create(secret("laptop", "token", short), token)
			f.ExpectWaiting(token, v1alpha1.ReasonInvalid, "key token of Secret laptop", "shorter than 20 characters")
			Expect(token.Status.Digest).To(BeEmpty())
			if short != "" {
				Expect(token.Status.Conditions).NotTo(ContainElement(HaveField("Message", ContainSubstring(short))))
			}
		},
		Entry("by one character", "nineteen-characters"),
		Entry("by far", "x"),
	)

	It("replaces an empty value with a generated one", func() {
		f.Create(secret("laptop", "token", ""), token)
		f.ExpectReady(token)
		Expect(string(stored("laptop").Data["token"])).To(HavePrefix(accesstoken.Prefix))
	})

	It("follows changes of its Secret while the controllers run", func() {
		f.Run()
		f.Create(token)
		f.ExpectReady(token)
		first := token.Status.Digest

		By("changing the value")
		s := stored("laptop")
		f.Change(s, func() { s.Data["token"] = []byte(value) })
		f.Eventually(token).Should(HaveField("Status.Digest", credential.Digest(value)))

		By("making the value too short, and then long enough")
		f.Change(s, func() { s.Data["token"] = []byte("short") })
		f.ExpectWaiting(token, v1alpha1.ReasonInvalid)
		f.Change(s, func() { s.Data["token"] = []byte(value) })
		f.ExpectReady(token)

		By("removing the key")
		f.Change(s, func() { delete(s.Data, "token") })
		f.Eventually(token).ShouldNot(HaveField("Status.Digest", credential.Digest(value)))
		f.ExpectReady(token)
		second := token.Status.Digest
		Expect(second).NotTo(Equal(first))
		Expect(second).To(Equal(credential.Digest(string(stored("laptop").Data["token"]))))

		By("deleting the Secret")
		f.Delete(s)
		f.Eventually(token).ShouldNot(HaveField("Status.Digest", second))
		f.ExpectReady(token)
		Expect(token.Status.Digest).To(Equal(credential.Digest(string(stored("laptop").Data["token"]))))
		f.ExpectRestartWritesNothing()
	})

	It("does not share a key of a Secret with an older one", func() {
		other := forge.AccessToken("other").For(ada).Secret("laptop", "token").Build()
		f.Create(token, other)
		older, younger := forge.ByAge(token, other)
		f.ExpectReady(older)
		f.ExpectStalled(younger, v1alpha1.ReasonAlreadyExists, "key token of Secret laptop is held by AccessToken "+older.Name)
		Expect(younger.Status.Digest).To(BeEmpty())
	})

	It("takes the value over when the older holder names another Secret", func() {
		f.Create(secret("laptop", "token", value))
		f.Run()
		other := forge.AccessToken("other").For(ada).Secret("laptop", "token").Build()
		older, younger := forge.CreateInTurn(f, token, other)
		f.ExpectReady(older)
		f.ExpectStalled(younger, v1alpha1.ReasonAlreadyExists, older.Name)
		f.Change(older, func() { older.Spec.SecretRef.Name = "elsewhere" })
		f.ExpectReady(younger)
		Expect(younger.Status.Digest).To(Equal(credential.Digest(value)))
		f.Eventually(older).ShouldNot(HaveField("Status.Digest", credential.Digest(value)))
	})

	It("shares a Secret under another key, and the Secret outlives the token that created it", func() {
		f.Run()
		first := forge.AccessToken("first").For(ada).Secret("shared", "first").Build()
		f.Create(first)
		f.ExpectReady(first)
		second := forge.AccessToken("second").For(ada).Secret("shared", "second").Build()
		f.Create(second)
		f.ExpectReady(second)
		digest := second.Status.Digest
		f.Delete(first)
		s := stored("shared")
		f.Eventually(s).Should(HaveField("OwnerReferences", ConsistOf(HaveField("UID", second.UID))))
		f.ExpectReady(second)
		Expect(second.Status.Digest).To(Equal(digest))
		f.Delete(second)
		f.ExpectGone(s)
	})

	It("keeps its value when the Secret of an older one gets the same value", func() {
		f.Run()
		f.Create(secret("young", "token", value))
		old, young := forge.CreateInTurn(f, forge.AccessToken("old").For(ada).Build(), forge.AccessToken("young").For(ada).Build())
		f.ExpectReady(old, young)
		s := stored("old")
		f.Change(s, func() { s.Data["token"] = []byte(value) })
		f.ExpectStalled(old, v1alpha1.ReasonAlreadyExists, "the value under key token of Secret old is held by AccessToken young")
		Expect(old.Status.Digest).To(BeEmpty())
		f.ExpectReady(young)
		Expect(accesstoken.ByValue(GinkgoT().Context(), f.Catalog, value)).To(HaveField("UID", young.UID))
		f.ExpectRestartWritesNothing()

		By("changing the value of the younger token")
		y := stored("young")
		f.Change(y, func() { y.Data["token"] = []byte("another-value-that-is-long") })
		f.ExpectReady(old)
		Expect(old.Status.Digest).To(Equal(credential.Digest(value)))

		By("changing it back, until the older token is deleted")
		f.Change(y, func() { y.Data["token"] = []byte(value) })
		f.ExpectStalled(young, v1alpha1.ReasonAlreadyExists, "is held by AccessToken old")
		f.Delete(old)
		f.ExpectReady(young)
		Expect(young.Status.Digest).To(Equal(credential.Digest(value)))
	})

	It("is deleted together with its Secret", func() {
		f.Create(token)
		f.ExpectReady(token)
		s := stored("laptop")
		f.Delete(token)
		f.ExpectGone(token, s)
	})

	It("leaves a Secret that it has adopted", func() {
		s := secret("laptop", "token", value)
		f.Create(s, token)
		f.ExpectReady(token)
		f.Delete(token)
		f.ExpectGone(token)
		Expect(stored("laptop").Data).To(HaveKeyWithValue("token", []byte(value)))
	})

	Context("that is revoked", func() {
		It("says that it is revoked, keeps its digest, and stays revoked", func() {
			f.Create(token)
			f.ExpectReady(token)
			digest := token.Status.Digest
			f.Change(token, func() { token.Spec.Revoked = true })
			f.ExpectSettled(token, v1alpha1.ReasonRevoked, "revoked")
			Expect(token.Status.Digest).To(Equal(digest))
			f.ExpectChangeRefused(token, func() { token.Spec.Revoked = false }, "a revoked token stays revoked")
		})

		It("gets no further value", func() {
			revoked := forge.AccessToken("revoked").For(ada).Revoked().Build()
			f.Create(revoked)
			f.ExpectSettled(revoked, v1alpha1.ReasonRevoked)
			Expect(revoked.Status.Digest).To(BeEmpty())
			var secrets corev1.SecretList
			Expect(f.Live().List(GinkgoT().Context(), &secrets)).To(Succeed())
			Expect(secrets.Items).NotTo(ContainElement(HaveField("Name", "revoked")))
		})
	})

	It("expires, and is accepted again when its expiry is postponed", func() {
		token.Spec.ExpiresAt = ptr.To(metav1.NewTime(f.Clock.Now().Add(time.Hour)))
		f.Create(token)
		result, err := f.Reconcile(token)
		Expect(err).NotTo(HaveOccurred())
		Expect(result.RequeueAfter).To(Equal(time.Hour))
		f.ExpectReady(token)
		f.Clock.SetTime(token.Spec.ExpiresAt.Time)
		f.ExpectSettled(token, v1alpha1.ReasonExpired, token.Spec.ExpiresAt.UTC().Format(time.RFC3339))
		Expect(token.Status.EndedAt.Time).To(BeTemporally("~", f.Clock.Now(), time.Second))
		Expect(f.Events()).To(ConsistOf(HavePrefix("Normal Expired " + token.Name)))
		f.Change(token, func() { token.Spec.ExpiresAt = nil })
		f.ExpectReady(token)
		Expect(token.Status.EndedAt).To(BeNil())
	})

	It("expires by itself while the controllers run", func() {
		f.Run()
		token.Spec.ExpiresAt = ptr.To(metav1.NewTime(f.Clock.Now().Add(time.Second)))
		f.Create(token)
		f.ExpectReady(token)
		f.Clock.SetTime(token.Spec.ExpiresAt.Time)
		f.ExpectSettled(token, v1alpha1.ReasonExpired)
	})

	Context("that has ended", func() {
		expires := func() *metav1.Time { return ptr.To(metav1.NewTime(f.Clock.Now().Add(time.Hour))) }
		// ends are the ways in which a value becomes free. Each has the reason that its token shows, which is empty if the token no longer exists
		// or uses another value.
		ends := map[string]func() string{
			"revoked": func() string {
				f.Change(token, func() { token.Spec.Revoked = true })
				return v1alpha1.ReasonRevoked
			},
			"expired": func() string {
				f.Clock.SetTime(token.Spec.ExpiresAt.Time)
				f.Change(token, func() { token.Labels = map[string]string{"a": "b"} }) // the fake clock does not trigger a reconcile
				return v1alpha1.ReasonExpired
			},
			"deleted": func() string { f.Delete(token); return "" },
			"given another Secret": func() string {
				f.Change(token, func() { token.Spec.SecretRef.Name = "elsewhere" })
				return ""
			},
		}
		for how, end := range ends {
			It("removes the value that was generated for it when it is "+how, func(ctx SpecContext) {
				f.Run()
				token.Spec.SecretRef, token.Spec.ExpiresAt = &v1alpha1.SecretKeyReference{Name: "shared", Key: "laptop"}, expires()
				other := forge.AccessToken("other").For(ada).Secret("shared", "other").Build()
				f.Create(secret("shared", "own", value), token, other)
				f.ExpectReady(token, other)
				s := stored("shared")
				generated, kept := string(s.Data["laptop"]), string(s.Data["other"])
				Expect(generated).To(HavePrefix(accesstoken.Prefix))
				if reason := end(); reason != "" {
					f.ExpectSettled(token, reason)
					Expect(token.Status.Digest).To(Equal(credential.Digest(generated)), "whoever shows it is told why it is refused")
				}
				f.Eventually(s).ShouldNot(HaveField("Data", HaveKey("laptop")))
				Expect(s.Data).To(Equal(map[string][]byte{"own": []byte(value), "other": []byte(kept)}))
				Expect(values()).NotTo(ContainElement(generated))
				f.ExpectReady(other)
				f.ExpectRestartWritesNothing()
			})

			It("keeps a value from another writer when it is "+how, func() {
				f.Run()
				token.Spec.ExpiresAt = expires()
				f.Create(secret("laptop", "own", "untouched"), token)
				f.ExpectReady(token)
				s := stored("laptop")
				Expect(string(s.Data["token"])).To(HavePrefix(accesstoken.Prefix))
				f.Change(s, func() { s.Data["token"] = []byte(value) })
				f.Eventually(token).Should(HaveField("Status.Digest", credential.Digest(value)))
				if reason := end(); reason != "" {
					f.ExpectSettled(token, reason)
				}
				f.ExpectRestartWritesNothing()
				Expect(stored("laptop").Data).To(HaveKeyWithValue("token", []byte(value)))
			})
		}

		It("removes the value that was generated for it when it names another key", func() {
			f.Run()
			f.Create(secret("laptop", "own", value), token)
			f.ExpectReady(token)
			s := stored("laptop")
			Expect(string(s.Data["token"])).To(HavePrefix(accesstoken.Prefix))
			f.Change(token, func() { token.Spec.SecretRef.Key = "another" })
			f.Eventually(s).Should(HaveField("Data", And(Not(HaveKey("token")), HaveKeyWithValue("own", []byte(value)), HaveKey("another"))))
			f.ExpectReady(token)
			Expect(token.Status.Digest).To(Equal(credential.Digest(string(stored("laptop").Data["another"]))))
			f.ExpectRestartWritesNothing()
		})

		It("leaves its value to another token that names the same key", func() {
			f.Run()
			other := forge.AccessToken("other").For(ada).Secret("laptop", "token").Build()
			f.Create(secret("laptop", "own", value))
			older, younger := forge.CreateInTurn(f, token, other)
			f.ExpectReady(older)
			f.ExpectStalled(younger, v1alpha1.ReasonAlreadyExists)
			digest := older.Status.Digest
			f.Delete(older)
			f.ExpectReady(younger)
			Expect(younger.Status.Digest).To(Equal(digest))
			f.ExpectRestartWritesNothing()
			Expect(credential.Digest(string(stored("laptop").Data["token"]))).To(Equal(digest))
		})

		It("removes its value from a Secret that Forgeplane created", func() {
			f.Create(token)
			f.ExpectReady(token)
			f.Change(token, func() { token.Spec.Revoked = true })
			f.ExpectSettled(token, v1alpha1.ReasonRevoked)
			Expect(stored("laptop").Data).To(BeEmpty())
		})

		It("gets another value when its expiry is postponed", func() {
			token.Spec.ExpiresAt = expires()
			f.Create(token)
			f.ExpectReady(token)
			was := token.Status.Digest
			f.Clock.SetTime(token.Spec.ExpiresAt.Time)
			f.ExpectSettled(token, v1alpha1.ReasonExpired)
			f.Change(token, func() { token.Spec.ExpiresAt = nil })
			f.ExpectReady(token)
			Expect(token.Status.Digest).NotTo(Equal(was))
			Expect(token.Status.Digest).To(Equal(credential.Digest(string(stored("laptop").Data["token"]))))
		})

		It("does not remove the value of another token that holds the key", func() {
			f.Run()
			other := forge.AccessToken("other").For(ada).Secret("laptop", "token").Build()
			older, younger := forge.CreateInTurn(f, token, other)
			f.ExpectReady(older)
			f.ExpectStalled(younger, v1alpha1.ReasonAlreadyExists)
			f.Change(younger, func() { younger.Spec.Revoked = true })
			f.Delete(younger)
			f.ExpectReady(older)
			Expect(older.Status.Digest).To(Equal(credential.Digest(string(stored("laptop").Data["token"]))))
		})

		It("is reconciled at its expiry even if its user is blocked", func() {
			token.Spec.ExpiresAt = expires()
			f.Create(token)
			f.Change(ada, func() { ada.Spec.State = v1alpha1.UserBlocked })
			result, err := f.Reconcile(token)
			Expect(err).NotTo(HaveOccurred())
			Expect(result.RequeueAfter).To(Equal(time.Hour))
		})

		It("loses its value in an adopted Secret when it is deleted while no controller runs", func() {
			f.Create(secret("shared", "own", value))
			token.Spec.SecretRef = &v1alpha1.SecretKeyReference{Name: "shared", Key: "laptop"}
			f.Create(token)
			f.ExpectReady(token)
			f.Delete(token)
			s := stored("shared")
			f.Clock.SetTime(s.CreationTimestamp.Add(time.Hour))
			f.Run()
			f.Eventually(s).ShouldNot(HaveField("Data", HaveKey("laptop")))
			Expect(s.Data).To(HaveKeyWithValue("own", []byte(value)))
			Expect(s.Annotations).To(BeEmpty())
		})

		It("keeps its value when a restore creates it again", func() {
			f.Create(secret("shared", "own", value))
			token.Spec.SecretRef = &v1alpha1.SecretKeyReference{Name: "shared", Key: "laptop"}
			again := token.DeepCopy()
			f.Create(token)
			f.ExpectReady(token)
			was := token.Status.Digest
			f.Delete(token)
			f.Run().ExpectIdle()
			f.Create(again)
			f.ExpectReady(again)
			Expect(again.Status.Digest).To(Equal(was))
		})
	})

	It("follows its user while the controllers run", func() {
		f.Run()
		f.Create(token)
		f.ExpectReady(token)

		By("blocking and unblocking the user")
		f.Change(ada, func() { ada.Spec.State = v1alpha1.UserBlocked })
		f.ExpectWaiting(token, v1alpha1.ReasonBlocked, "user ada is blocked")
		f.Change(ada, func() { ada.Spec.State = v1alpha1.UserActive })
		f.ExpectReady(token)
		digest := token.Status.Digest

		By("deleting the user and creating it again")
		f.Delete(ada)
		f.ExpectWaiting(token, v1alpha1.ReasonReferenceNotFound, "userRef: user ada: not found")
		Expect(token.Status.Digest).To(Equal(digest), "it is good again at once when he is declared again")
		f.Create(forge.User("ada").Build())
		f.ExpectReady(token)
		Expect(token.Status.Digest).To(Equal(digest))
	})

	DescribeTable("names its user",
		func(ref func() v1alpha1.Reference) {
			token.Spec.UserRef = ref()
			f.Create(token)
			f.ExpectReady(token)
		},
		Entry("by username", func() v1alpha1.Reference { return v1alpha1.Reference{Path: "ADA"} }),
		Entry("by id", func() v1alpha1.Reference { return v1alpha1.Reference{ID: ada.Spec.ID} }),
	)

	It("does not show its value in events", func() {
		f.Create(secret("laptop", "token", "short-secret"), token)
		f.ExpectWaiting(token, v1alpha1.ReasonInvalid)
		Expect(f.Events()).To(ConsistOf(Not(ContainSubstring("short-secret"))))
	})
})

var _ = Describe("An access token is refused by the API server", func() {
	DescribeTable("when it is new",
		func(change func(*v1alpha1.AccessTokenSpec), words ...string) {
			token := forge.AccessToken("laptop").For(forge.User("ada").Build()).Build()
			change(&token.Spec)
			f.ExpectRefused(token, words...)
		},
		Entry("without a user", func(s *v1alpha1.AccessTokenSpec) { s.UserRef = v1alpha1.Reference{} }, "spec.userRef"),
		Entry("without scopes", func(s *v1alpha1.AccessTokenSpec) { s.Scopes = nil }, "spec.scopes"),
		Entry("with an unknown scope", func(s *v1alpha1.AccessTokenSpec) { s.Scopes[0] = "everything" }, "spec.scopes[0]"),
		Entry("with a scope twice", func(s *v1alpha1.AccessTokenSpec) { s.Scopes = append(s.Scopes, s.Scopes[0]) }, "spec.scopes[1]", "Duplicate value"),
		Entry("with a description that is too long", func(s *v1alpha1.AccessTokenSpec) { s.Description = strings.Repeat("a", 256) }, "spec.description"),
		Entry("without the name of a Secret", func(s *v1alpha1.AccessTokenSpec) { s.SecretRef.Name = "" }, "spec.secretRef.name"),
		Entry("with a key that a Secret cannot have", func(s *v1alpha1.AccessTokenSpec) { s.SecretRef.Key = "a/b" }, "spec.secretRef.key"),
	)

	It("when it changes to another user", func() {
		token := forge.AccessToken("laptop").For(forge.User("ada").Build()).Build()
		f.Create(token)
		f.ExpectChangeRefused(token, func() { token.Spec.UserRef.Name = "root" }, "userRef cannot change")
	})
})
