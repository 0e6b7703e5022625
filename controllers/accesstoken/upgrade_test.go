package accesstoken_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/accesstoken"
	"github.com/forgeplane/forgeplane/internal/credential"
	"github.com/forgeplane/forgeplane/internal/declare"
	"github.com/forgeplane/forgeplane/test/forge"
)

// asREST returns a client that creates and changes objects like a server of the REST API.
func asREST() client.Client {
	return client.WithFieldOwner(f.Live(), string(declare.FieldOwner))
}

// values returns the values in the Secrets of the platform.
func values() (all []string) {
	GinkgoHelper()
	var l corev1.SecretList
	Expect(f.Live().List(GinkgoT().Context(), &l)).To(Succeed())
	for _, s := range l.Items {
		for _, v := range s.Data {
			all = append(all, string(v))
		}
	}
	return all
}

var _ = Describe("An access token that was created over REST", func() {
	var ada *v1alpha1.User
	var token *v1alpha1.AccessToken
	BeforeEach(func() { ada, token = newToken() })

	Context("with only a digest", func() {
		BeforeEach(func() { token = forge.AccessToken("laptop").For(ada).Digest(credential.Digest(value)).Build() })

		It("is accepted without a Secret", func(ctx SpecContext) {
			f.Create(token)
			f.ExpectReady(token)
			Expect(token.Status.Digest).To(Equal(credential.Digest(value)))
			Expect(accesstoken.ByValue(ctx, f.Catalog, value)).To(HaveField("UID", token.UID))
			Expect(values()).To(BeEmpty())
		})

		DescribeTable("is deleted a month after it has ended", func(ctx SpecContext, reason string, end func()) {
			declared := forge.AccessToken("declared").For(ada).Digest(credential.Digest("another value")).Build()
			end()
			declared.Spec.Revoked, declared.Spec.ExpiresAt = token.Spec.Revoked, token.Spec.ExpiresAt
			Expect(asREST().Create(ctx, token)).To(Succeed())
			f.Create(declared)
			f.ExpectSettled(token, reason)
			f.ExpectSettled(declared, reason)
			ended := time.Now()
			f.Clock.SetTime(ended.Add(29 * 24 * time.Hour))
			result, err := f.ReconcileOnce(token)
			Expect(err).NotTo(HaveOccurred())
			Expect(result.RequeueAfter).To(BeNumerically("~", 24*time.Hour, time.Hour))
			f.ExpectSettled(token, reason)
			f.Clock.SetTime(ended.Add(31 * 24 * time.Hour))
			_, err = f.ReconcileOnce(token)
			Expect(err).NotTo(HaveOccurred())
			f.ExpectGone(token)
			f.ExpectSettled(declared, reason)
			f.Refresh(declared)
		},
			Entry("revoked", v1alpha1.ReasonRevoked, func() { token.Spec.Revoked = true }),
			Entry("expired", v1alpha1.ReasonExpired, func() { token.Spec.ExpiresAt = ptr.To(metav1.NewTime(f.Clock.Now().Add(-time.Hour))) }),
		)

		It("is deleted a month after it has ended according to an earlier version", func(ctx SpecContext) {
			token.Spec.Revoked = true
			Expect(asREST().Create(ctx, token)).To(Succeed())
			ended := metav1.NewTime(f.Clock.Now().Add(-29 * 24 * time.Hour).Truncate(time.Second))
			token.Status.Conditions = []metav1.Condition{
				{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonRevoked, Message: "It was revoked.", LastTransitionTime: ended},
				{Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonRevoked, Message: "It was revoked.", LastTransitionTime: ended},
			}
			token.Status.ObservedGeneration = token.Generation
			for i := range token.Status.Conditions {
				token.Status.Conditions[i].ObservedGeneration = token.Generation
			}
			Expect(f.Live().Status().Update(ctx, token)).To(Succeed())
			f.Refresh(token)
			f.ExpectSettled(token, v1alpha1.ReasonRevoked)
			Expect(token.Status.EndedAt.Time).To(BeTemporally("==", ended.Time))
			Expect(f.Events()).To(BeEmpty(), "the state is not news")
		})

		It("keeps its digest, and cannot get a Secret as well", func() {
			f.Create(token)
			f.ExpectChangeRefused(token, func() { token.Spec.Digest = credential.Digest("another value") }, "digest cannot change")
			f.ExpectChangeRefused(token, func() { token.Spec.Digest = "" }, "digest cannot change")
			f.ExpectChangeRefused(token, func() { token.Spec.SecretRef = &v1alpha1.SecretKeyReference{Name: "mine"} }, "one of secretRef and digest")
			f.ExpectChangeRefused(token, func() {
				token.Spec.Digest, token.Spec.SecretRef = "", &v1alpha1.SecretKeyReference{Name: "mine"}
			}, "digest cannot change")
		})
	})

	// Earlier versions kept the value in a Secret. earlier creates such a token, with an owned Secret unless done is false.
	earlier := func(ctx SpecContext, done bool) *corev1.Secret {
		GinkgoHelper()
		s := secret("token-laptop", "token", value)
		Expect(asREST().Create(ctx, s)).To(Succeed())
		token.Spec.SecretRef = &v1alpha1.SecretKeyReference{Name: s.Name, Key: "token"}
		Expect(asREST().Create(ctx, token)).To(Succeed())
		if done {
			s.OwnerReferences = []metav1.OwnerReference{{
				APIVersion: v1alpha1.GroupVersion.String(), Kind: "AccessToken", Name: token.Name, UID: token.UID, Controller: ptr.To(true),
			}}
			Expect(asREST().Update(ctx, s)).To(Succeed())
		}
		f.Refresh(token, s)
		return s
	}
	expectUpgraded := func(ctx SpecContext) {
		GinkgoHelper()
		Expect(token.Spec.SecretRef).To(BeNil())
		Expect(token.Spec.Digest).To(Equal(credential.Digest(value)))
		Expect(accesstoken.ByValue(ctx, f.Catalog, value)).To(HaveField("UID", token.UID))
		Expect(values()).NotTo(ContainElement(value))
	}

	Context("by an earlier version", func() {
		It("has its digest and no Secret after the upgrade, and is accepted all the time", func(ctx SpecContext) {
			s := earlier(ctx, true)
			token.Status.Digest = credential.Digest(value)
			Expect(asREST().Status().Update(ctx, token)).To(Succeed())
			f.Refresh(token)
			Expect(accesstoken.ByValue(ctx, f.Catalog, value)).To(HaveField("UID", token.UID))
			f.ExpectReady(token)
			f.ExpectGone(s)
			expectUpgraded(ctx)
			f.ExpectRestartWritesNothing()
		})

		It("loses its Secret even if the process ended after it recorded the digest", func(ctx SpecContext) {
			s := earlier(ctx, true)
			token.Spec.Digest, token.Spec.SecretRef = credential.Digest(value), nil
			Expect(asREST().Update(ctx, token)).To(Succeed())
			f.Run()
			f.ExpectGone(s)
			f.ExpectReady(token)
			expectUpgraded(ctx)
			f.ExpectRestartWritesNothing()
		})

		It("waits for the server that is creating it, and is upgraded if the server never finishes", func(ctx SpecContext) {
			s := earlier(ctx, false)
			f.Clock.SetTime(token.CreationTimestamp.Add(time.Minute))
			result, err := f.Reconcile(token)
			Expect(err).NotTo(HaveOccurred())
			Expect(result.RequeueAfter).To(Equal(9*time.Minute), "nobody else would wake it")
			Expect(token.Spec.SecretRef).NotTo(BeNil())
			f.Clock.SetTime(token.CreationTimestamp.Add(10 * time.Minute))
			f.ExpectReady(token)
			f.ExpectGone(s)
			expectUpgraded(ctx)
		})

		It("is upgraded even if it is revoked", func(ctx SpecContext) {
			token = forge.AccessToken("laptop").For(ada).Revoked().Build()
			s := earlier(ctx, true)
			f.ExpectSettled(token, v1alpha1.ReasonRevoked)
			f.ExpectGone(s)
			expectUpgraded(ctx)
		})

		It("loses its Secret even if its user is missing", func(ctx SpecContext) {
			token.Spec.UserRef = v1alpha1.Reference{ID: ada.Spec.ID + 1}
			s := earlier(ctx, true)
			f.ExpectWaiting(token, v1alpha1.ReasonReferenceNotFound, "userRef")
			f.ExpectGone(s)
			Expect(token.Spec.Digest).To(Equal(credential.Digest(value)))
			Expect(values()).NotTo(ContainElement(value))
			f.ExpectRestartWritesNothing()
		})

		It("keeps its Secret when somebody else declares the token", func(ctx SpecContext) {
			s := earlier(ctx, true)
			patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"description":"declared"}}`))
			Expect(f.Live().Patch(ctx, token, patch, client.FieldOwner("gitops"))).To(Succeed())
			f.Refresh(token)
			f.ExpectReady(token)
			Expect(token.Spec.SecretRef).To(HaveValue(HaveField("Name", s.Name)))
			f.Refresh(s)
		})
	})

	It("does not touch a Secret of that name that holds something else", func(ctx SpecContext) {
		s := secret("token-laptop", "token", "somebody else's value")
		f.Create(s, forge.AccessToken("laptop").For(ada).Digest(credential.Digest(value)).Build())
		f.ExpectReady(token)
		f.Refresh(s)
	})

	It("is refused with an invalid digest", func() {
		for _, digest := range []string{"short", credential.Digest(value) + "0", "G" + credential.Digest(value)[1:]} {
			f.ExpectRefused(forge.AccessToken("laptop").For(ada).Digest(digest).Build(), "spec.digest")
		}
		token.Spec.Digest = credential.Digest(value)
		f.ExpectRefused(token, "one of secretRef and digest must be set, and not both")
		token.Spec.Digest, token.Spec.SecretRef = "", nil
		f.ExpectRefused(token, "one of secretRef and digest must be set, and not both")
	})
})
