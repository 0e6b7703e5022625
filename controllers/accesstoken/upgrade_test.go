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

// asREST returns a client that creates and changes objects like a server for the REST API.
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

var _ = Describe("An access token that was made over REST", func() {
	var ada *v1alpha1.User
	var token *v1alpha1.AccessToken
	BeforeEach(func() { ada, token = newToken() })

	Context("with its digest alone", func() {
		BeforeEach(func() { token = forge.AccessToken("laptop").For(ada).Digest(credential.Digest(value)).Build() })

		It("is accepted without a Secret", func(ctx SpecContext) {
			f.Create(token)
			f.ExpectReady(token)
			Expect(token.Status.Digest).To(Equal(credential.Digest(value)))
			Expect(accesstoken.ByValue(ctx, f.Catalog, value)).To(HaveField("UID", token.UID))
			Expect(values()).To(BeEmpty())
		})

		DescribeTable("goes a month after it has ended", func(ctx SpecContext, reason string, end func()) {
			declared := forge.AccessToken("declared").For(ada).Digest(credential.Digest("another value")).Build()
			end()
			declared.Spec.Revoked, declared.Spec.ExpiresAt = token.Spec.Revoked, token.Spec.ExpiresAt
			Expect(asREST().Create(ctx, token)).To(Succeed())
			f.Create(declared)
			f.ExpectStalled(token, reason)
			f.ExpectStalled(declared, reason)
			ended := time.Now()
			f.Clock.SetTime(ended.Add(29 * 24 * time.Hour))
			result, err := f.ReconcileOnce(token)
			Expect(err).NotTo(HaveOccurred())
			Expect(result.RequeueAfter).To(BeNumerically("~", 24*time.Hour, time.Hour))
			f.ExpectStalled(token, reason)
			f.Clock.SetTime(ended.Add(31 * 24 * time.Hour))
			_, err = f.ReconcileOnce(token)
			Expect(err).NotTo(HaveOccurred())
			f.ExpectGone(token)
			f.ExpectStalled(declared, reason)
			f.Refresh(declared)
		},
			Entry("revoked", v1alpha1.ReasonRevoked, func() { token.Spec.Revoked = true }),
			Entry("expired", v1alpha1.ReasonExpired, func() { token.Spec.ExpiresAt = ptr.To(metav1.NewTime(f.Clock.Now().Add(-time.Hour))) }),
		)

		It("keeps it, and gets no Secret beside it", func() {
			f.Create(token)
			f.ExpectChangeRefused(token, func() { token.Spec.Digest = credential.Digest("another value") }, "digest cannot change")
			f.ExpectChangeRefused(token, func() { token.Spec.Digest = "" }, "digest cannot change")
			f.ExpectChangeRefused(token, func() { token.Spec.SecretRef = &v1alpha1.SecretKeyReference{Name: "mine"} }, "one of secretRef and digest")
			f.ExpectChangeRefused(token, func() {
				token.Spec.Digest, token.Spec.SecretRef = "", &v1alpha1.SecretKeyReference{Name: "mine"}
			}, "digest cannot change")
		})
	})

	// Earlier versions kept the value in a Secret. earlier creates such a token, with its Secret unless done is false.
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
		It("has its digest after the upgrade, and no Secret, and is accepted all the time", func(ctx SpecContext) {
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

		It("loses its Secret though the process ended when the digest was recorded", func(ctx SpecContext) {
			s := earlier(ctx, true)
			token.Spec.Digest, token.Spec.SecretRef = credential.Digest(value), nil
			Expect(asREST().Update(ctx, token)).To(Succeed())
			f.Run()
			f.ExpectGone(s)
			f.ExpectReady(token)
			expectUpgraded(ctx)
			f.ExpectRestartWritesNothing()
		})

		It("goes on while the server that makes it has not finished, and is upgraded when it never does", func(ctx SpecContext) {
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

		It("is upgraded though it is revoked", func(ctx SpecContext) {
			token = forge.AccessToken("laptop").For(ada).Revoked().Build()
			s := earlier(ctx, true)
			f.ExpectStalled(token, v1alpha1.ReasonRevoked)
			f.ExpectGone(s)
			expectUpgraded(ctx)
		})

		It("loses its Secret though its user is missing", func(ctx SpecContext) {
			token.Spec.UserRef = v1alpha1.Reference{ID: ada.Spec.ID + 1}
			s := earlier(ctx, true)
			f.ExpectWaiting(token, v1alpha1.ReasonReferenceNotFound, "userRef")
			f.ExpectGone(s)
			Expect(token.Spec.Digest).To(Equal(credential.Digest(value)))
			Expect(values()).NotTo(ContainElement(value))
			f.ExpectRestartWritesNothing()
		})

		It("stays as it is when somebody else declares it", func(ctx SpecContext) {
			s := earlier(ctx, true)
			patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"description":"declared"}}`))
			Expect(f.Live().Patch(ctx, token, patch, client.FieldOwner("gitops"))).To(Succeed())
			f.Refresh(token)
			f.ExpectReady(token)
			Expect(token.Spec.SecretRef).To(HaveValue(HaveField("Name", s.Name)))
			f.Refresh(s)
		})
	})

	It("leaves a Secret of that name that holds something else", func(ctx SpecContext) {
		s := secret("token-laptop", "token", "somebody else's value")
		f.Create(s, forge.AccessToken("laptop").For(ada).Digest(credential.Digest(value)).Build())
		f.ExpectReady(token)
		f.Refresh(s)
	})

	It("is not known by a digest that is none", func() {
		for _, digest := range []string{"short", credential.Digest(value) + "0", "G" + credential.Digest(value)[1:]} {
			f.ExpectRefused(forge.AccessToken("laptop").For(ada).Digest(digest).Build(), "spec.digest")
		}
		token.Spec.Digest = credential.Digest(value)
		f.ExpectRefused(token, "one of secretRef and digest must be set, and not both")
		token.Spec.Digest, token.Spec.SecretRef = "", nil
		f.ExpectRefused(token, "one of secretRef and digest must be set, and not both")
	})
})
