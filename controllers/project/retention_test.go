package project_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/test/forge"
)

var _ = Describe("A repository that nothing was ever written to", func() {
	It("goes with its project, whatever the policy is", func() {
		web := forge.Project("website").In(acme).Build()
		f.Create(web)
		f.ExpectReady(web)
		Expect(web.Spec.DeletionPolicy).To(Equal(v1alpha1.DeletionPolicyRetain))
		directory, id := place(web, shard), web.Spec.ID
		drop(web)
		Expect(retained()).To(BeEmpty())
		Expect(directory).NotTo(BeADirectory())
		again := forge.Project("website").In(acme).Build()
		f.Create(again)
		f.ExpectReady(again)
		Expect(again.Spec.ID).NotTo(Equal(id))
	})

	It("is kept where its branches were removed again", func() {
		web := forge.Project("website").In(acme).Build()
		f.Create(web)
		f.ExpectReady(web)
		push(web, "main")
		directory := place(web, shard)
		gittest.New(GinkgoTB(), "sha1").Git(GinkgoTB(), "--git-dir="+directory, "update-ref", "-d", "refs/heads/main")
		f.ExpectReady(web)
		drop(web)
		Expect(directory).To(BeADirectory())
		f.ExpectReady(only())
	})

	It("is kept where others let the project in by its id", func() {
		web, other := forge.Project("website").In(acme).Build(), forge.Project("other").In(acme).Build()
		f.Create(web, other)
		f.ExpectReady(web, other)
		scope := forge.JobTokenScope("other").Of(other).Build()
		scope.Spec.Allowlist = []v1alpha1.AllowlistEntry{{ProjectRef: catalog.Refer(web)}}
		f.Create(scope)
		id := web.Spec.ID
		drop(web)
		Expect(only().Spec.Project.ID).To(Equal(id))
		again := forge.Project("website").In(acme).Build()
		f.Create(again)
		expectAdopted(again, "")
		Expect(again.Spec.ID).To(Equal(id))
	})
})
