package accesstoken_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
