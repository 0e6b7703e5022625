package project_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/test/forge"
)

var _ = Describe("The shares of a project", func() {
	It("wait for their groups, while the project works", func() {
		web := forge.Project("website").In(acme).Build()
		web.Spec.SharedWith = []v1alpha1.Share{{GroupRef: v1alpha1.Reference{Path: "bolt"}, Role: v1alpha1.RoleDeveloper}}
		f.Create(web)
		f.ExpectWaiting(web, v1alpha1.ReasonReferenceNotFound, "sharedWith[0]: group bolt: not found")
		Expect(web.Status.DefaultBranch).To(Equal("main"), "it has a repository")
		bolt := forge.Group("bolt").In(f.NewNamespace()).Build()
		f.Create(bolt)
		f.ExpectReady(web)
		Expect(web.Status.RecordedShares).To(Equal([]v1alpha1.Reference{{Path: "bolt", UID: string(bolt.UID)}}))
	})
})
