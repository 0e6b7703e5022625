package group_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/test/forge"
)

var _ = Describe("The shares of a group", func() {
	It("wait for their groups, and do not follow a path to another tenant", func() {
		acme := forge.Group("acme").In(namespace).Build()
		acme.Spec.SharedWith = []v1alpha1.Share{{GroupRef: v1alpha1.Reference{Path: "bolt"}, Role: v1alpha1.RoleDeveloper}}
		f.Create(acme)
		f.ExpectWaiting(acme, v1alpha1.ReasonReferenceNotFound, "sharedWith[0]: group bolt: not found")
		Expect(acme.Status.FullPath).To(Equal("acme"), "the group works without it")

		bolt := forge.Group("bolt").In(f.NewNamespace()).Build()
		f.Create(bolt)
		f.ExpectReady(acme, bolt)
		Expect(acme.Status.RecordedShares).To(Equal([]v1alpha1.Reference{{Path: "bolt", UID: string(bolt.UID)}}))
		f.ExpectRestartWritesNothing()

		f.Delete(bolt)
		f.ExpectWaiting(acme, v1alpha1.ReasonReferenceNotFound, "sharedWith[0]: group bolt: not found")
		other := forge.Group("bolt").In(f.NewNamespace()).Build()
		f.Create(other)
		f.ExpectReady(other)
		f.ExpectWaiting(acme, v1alpha1.ReasonReferenceNotFound, "sharedWith[0]: group bolt: now belongs to a different group")

		f.Change(acme, func() { acme.Spec.SharedWith[0].GroupRef.UID = string(other.UID) })
		f.ExpectReady(acme)
		Expect(acme.Status.RecordedShares).To(BeEmpty(), "the reference itself says which group it means")
	})

	It("are not a problem once the group that they mean is gone for good", func() {
		bolt := forge.Group("bolt").In(namespace).Build()
		f.Create(bolt)
		f.ExpectReady(bolt)
		acme := forge.Group("acme").In(namespace).Build()
		acme.Spec.SharedWith = []v1alpha1.Share{{GroupRef: v1alpha1.Reference{Path: "bolt", UID: string(bolt.UID)}, Role: v1alpha1.RoleDeveloper}}
		f.Create(acme)
		f.ExpectReady(acme)
		f.Delete(bolt)
		f.Change(acme, func() { acme.Spec.Description = "Changed." })
		f.ExpectReady(acme)
	})
})
