package group_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/owner"
	"github.com/forgeplane/forgeplane/test/forge"
)

var _ = Describe("A group whose server was killed before it created the owner", func() {
	var ada *v1alpha1.User
	var acme *v1alpha1.Group
	BeforeEach(func() {
		ada = forge.User("ada").Build()
		f.Create(ada)
		f.ExpectReady(ada)
		acme = forge.Group("acme").In(namespace).Build()
		owner.Expect(acme, ada)
		f.Create(acme)
	})

	members := func(ctx SpecContext) []v1alpha1.Membership {
		GinkgoHelper()
		var l v1alpha1.MembershipList
		Expect(f.Live().List(ctx, &l, client.InNamespace(namespace))).To(Succeed())
		return l.Items
	}
	late := func() { f.Clock.SetTime(acme.CreationTimestamp.Add(time.Minute)) }

	It("gets the owner when the server has had enough time to create it", func(ctx SpecContext) {
		f.Clock.SetTime(acme.CreationTimestamp.Time)
		f.ExpectReady(acme)
		Expect(members(ctx)).To(BeEmpty(), "the server may be about to make it")
		result, err := f.ReconcileOnce(acme)
		Expect(err).NotTo(HaveOccurred())
		Expect(result.RequeueAfter).To(BeNumerically("~", 10*time.Second, time.Second))

		late()
		f.ExpectReady(acme)
		Expect(acme.Annotations).NotTo(HaveKey(v1alpha1.AnnotationOwner))
		found := members(ctx)
		Expect(found).To(HaveLen(1))
		Expect(found[0].Spec).To(Equal(owner.Membership(ada, acme).Spec))
		Expect(found[0].OwnerReferences).To(HaveLen(1))
		Expect(found[0].OwnerReferences[0].UID).To(Equal(acme.UID))
		Expect(found[0].ManagedFields[0].Manager).To(Equal("forgeplane-rest"), "it goes with the user, as what REST makes does")
		f.ExpectReady(&found[0])
		Expect(found[0].Status.EffectiveRole).To(Equal(v1alpha1.RoleOwner))

		f.Delete(&found[0])
		f.ExpectReady(acme)
		Expect(members(ctx)).To(BeEmpty(), "a member who has left does not come back")
	})

	It("keeps the owner that the server has created in the meantime", func(ctx SpecContext) {
		f.ExpectReady(acme)
		made := owner.Membership(ada, acme)
		f.Create(made)
		late()
		f.ExpectReady(acme)
		Expect(acme.Annotations).NotTo(HaveKey(v1alpha1.AnnotationOwner))
		Expect(members(ctx)).To(HaveLen(1))
	})

	It("gets no owner when the user is gone, even if another user has the same id", func(ctx SpecContext) {
		f.ExpectReady(acme)
		id := ada.Status.ID
		f.Delete(ada)
		f.ExpectGone(ada)
		again := forge.User("ada").ID(id).Build()
		f.Create(again)
		f.ExpectReady(again)
		Expect(catalog.Refer(again).ID).To(Equal(id))
		late()
		f.ExpectReady(acme)
		Expect(acme.Annotations).NotTo(HaveKey(v1alpha1.AnnotationOwner))
		Expect(members(ctx)).To(BeEmpty())
	})
})
