package project_test

import (
	"os"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/test/forge"
)

var _ = Describe("A crash between creating a repository and writing the status", func() {
	var web *v1alpha1.Project

	// crashed puts a project into the state after a crash between creating the repository and writing the status.
	crashed := func(p *v1alpha1.Project) {
		GinkgoHelper()
		f.Create(p)
		f.ExpectReady(p)
		Expect(p.PlannedStorage()).To(BeEmpty(), "the status says it")
		patch := client.MergeFrom(p.DeepCopy())
		p.Status = v1alpha1.ProjectStatus{CommonStatus: v1alpha1.CommonStatus{ObservedGeneration: -1}} // the default
		Expect(f.Live().Status().Patch(GinkgoT().Context(), p, patch)).To(Succeed())
		f.Refresh(p)
		Expect(p.PlannedStorage()).To(Equal("shard"))
	}

	// prefer makes new repositories go to another shard.
	prefer := func() {
		GinkgoHelper()
		f.NewStorage("other")
		f.Change(shard, func() { shard.Spec.Weight = new(int32) })
		f.ExpectReady(shard)
	}

	BeforeEach(func() { web = forge.Project("website").In(acme).Build() })

	It("leaves the project with that repository, whichever shard it would choose now", func() {
		crashed(web)
		commit := func() string { web.Status.Storage = "shard"; return push(web, "main") }()
		f.Refresh(web)
		prefer()
		f.ExpectReady(web)
		Expect(web.Status.Storage).To(Equal("shard"))
		Expect(web.Status.HeadCommit).To(Equal(commit))
	})

	It("does not leave the repository behind when the project is deleted", func() {
		web.Spec.DeletionPolicy = v1alpha1.DeletionPolicyDelete
		crashed(web)
		made := place(web, shard)
		Expect(made).To(BeADirectory())
		drop(web)
		Expect(made).NotTo(BeADirectory())
		Expect(owners()).To(BeEmpty())
	})

	It("counts for the shard", func() {
		crashed(web)
		f.ExpectReady(shard)
		Expect(shard.Status.Repositories).To(BeEquivalentTo(1))
	})

	It("makes the project wait for a shard that cannot be read", func() {
		crashed(web)
		prefer()
		Expect(owners()).To(HaveLen(1))
		file := owners()[0]
		Expect(os.Rename(file, file+".aside")).To(Succeed())
		Expect(os.Mkdir(file, 0o700)).To(Succeed())
		f.ExpectWaiting(web, v1alpha1.ReasonStorageUnavailable, "storage shard, which may hold the repository, cannot be read")
		Expect(os.Remove(file)).To(Succeed())
		Expect(os.Rename(file+".aside", file)).To(Succeed())
		f.ExpectReady(web)
		Expect(web.Status.Storage).To(Equal("shard"))
	})

	It("leaves the choice of the shard open if the repository was not begun", func() {
		web.Finalizers = []string{"forgeplane.dev/repository"}
		f.Create(web)
		f.Change(web, func() { web.PlanStorage("shard") })
		Expect(web.PlannedStorage()).To(Equal("shard"))
		prefer()
		f.ExpectReady(web)
		Expect(web.Status.Storage).To(Equal("other"))
	})

	It("is not assumed for a project that has the annotation of another one", func() {
		crashed(web)
		prefer()
		tools := forge.Project("tools").In(acme).Build()
		tools.Annotations = web.Annotations
		f.Create(tools)
		Expect(tools.PlannedStorage()).To(BeEmpty())
		f.ExpectReady(tools)
		Expect(tools.Status.Storage).To(Equal("other"))
	})
})
