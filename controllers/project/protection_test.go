package project_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/test/forge"
)

var _ = Describe("The protection of a project's default branch", func() {
	var web *v1alpha1.Project
	BeforeEach(func() { web = forge.Project("website").In(acme).Build() })

	// made returns the protection that the project has created.
	made := func() *v1alpha1.ProtectedBranch {
		GinkgoHelper()
		b := &v1alpha1.ProtectedBranch{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: v1alpha1.NaturalName("website", "main")}}
		f.Refresh(b)
		return b
	}

	// create creates the project and pushes the first commit to its default branch, which has the protection created.
	create := func() {
		GinkgoHelper()
		f.Create(web)
		f.ExpectReady(web)
		push(web, web.Status.DefaultBranch)
		look(web)
		Eventually(func() string {
			f.ExpectReady(web)
			return web.Status.ProtectedDefaultBranch
		}).WithPolling(polling).Should(Equal(web.Status.DefaultBranch))
	}

	It("is created with the branch, and the project owns it", func() {
		f.Create(web)
		f.ExpectReady(web)
		Expect(protections()).To(BeEmpty())
		Expect(web.Status.ProtectedDefaultBranch).To(BeEmpty())
		push(web, "main")
		look(web)
		f.ExpectReady(web)
		Expect(web.Status.ProtectedDefaultBranch).To(Equal("main"))
		b := made()
		Expect(web.Status.ProtectedDefaultBranchVersion).To(Equal(b.ResourceVersion))
		Expect(b.Labels).To(HaveKey(v1alpha1.LabelDefaultProtection))
		Expect(metav1.IsControlledBy(b, web)).To(BeTrue())
		Expect(b.Spec.ProjectRef).To(Equal(&v1alpha1.Reference{Name: "website", UID: string(web.UID)}))
		Expect(b.Spec.Branch).To(Equal("main"))
		maintainers := []v1alpha1.AccessLevel{{Role: v1alpha1.AccessMaintainer}}
		Expect([][]v1alpha1.AccessLevel{b.Spec.Push, b.Spec.Merge, b.Spec.Unprotect}).To(HaveEach(maintainers))
		Expect(b.Spec.AllowForcePush).To(BeFalse())
		f.ExpectReady(b)
		Expect(b.Status.TargetPath).To(Equal("acme/website"))
	})

	It("is not there for a new project, which is written twice", func() {
		process := f.Run()
		f.Create(web)
		f.ExpectReady(web)
		process.ExpectIdle()
		var writes []string
		for _, request := range process.Writes.All() {
			if words := strings.Fields(request); !strings.Contains(words[1], "/configmaps") { // the counters of ids
				writes = append(writes, words[0]+" "+words[1])
			}
		}
		of := func(path string) string { return "/apis/forgeplane.dev/v1alpha1/namespaces/" + namespace + path }
		Expect(writes).To(ConsistOf(
			"PATCH "+of("/projects/website"), // the id, the finalizer and the planned storage
			"PATCH "+of("/projects/website/status"),
			"PATCH /apis/forgeplane.dev/v1alpha1/repositorystorages/shard/status",
		))
	})

	It("is for the default branch of the repository, and only for the first one", func() {
		web.Spec.DefaultBranch = "trunk"
		create()
		f.Change(web, func() { web.Spec.DefaultBranch = "next" })
		f.ExpectReady(web)
		Expect(protections()).To(ConsistOf(HaveField("Spec.Branch", "trunk")))
	})

	It("can be changed, and stays changed", func() {
		f.Run()
		create()
		b := made()
		f.Change(b, func() { b.Spec.Push = []v1alpha1.AccessLevel{forge.Role(v1alpha1.AccessDeveloper)} })
		look(web)
		f.ExpectReady(web, b)
		f.ExpectRestartWritesNothing()
		Expect(made().Spec.Push).To(ConsistOf(HaveField("Role", v1alpha1.AccessDeveloper)))
	})

	It("is not created again after its deletion", func() {
		f.Run()
		create()
		b := made()
		f.Delete(b)
		f.ExpectGone(b)
		look(web)
		f.ExpectReady(web)
		f.ExpectRestartWritesNothing()
		Expect(protections()).To(BeEmpty())
	})

	It("is not created if another one is declared", func() {
		declared := forge.ProtectedBranch("main").Of(web).Push(forge.Role(v1alpha1.AccessNoOne)).Build()
		f.Create(declared)
		create()
		Expect(protections()).To(ConsistOf(HaveField("Name", declared.Name)))
		Expect(web.Status.ProtectedDefaultBranch).To(Equal("main"))
		f.Delete(declared)
		f.ExpectReady(web)
		Expect(protections()).To(BeEmpty(), "what somebody declares, somebody takes away")
	})

	It("is created even if a group above protects a branch of the same name", func() {
		above := forge.ProtectedBranch("main").Of(acme).Build()
		f.Create(above)
		create()
		Expect(protections()).To(HaveLen(2))
	})

	DescribeTable("gives way to a declared protection",
		func(ref func() v1alpha1.Reference) {
			f.Run()
			create()
			b := made()
			f.ExpectReady(b)
			declared := forge.ProtectedBranch("main").Of(web).Named("declared").Build()
			*declared.Spec.ProjectRef = ref()
			f.Create(declared)
			f.ExpectReady(declared)
			f.ExpectGone(b)
			f.ExpectRestartWritesNothing()
			Expect(protections()).To(ConsistOf(HaveField("Name", "declared")))
		},
		Entry("by name", func() v1alpha1.Reference { return v1alpha1.Reference{Name: "website"} }),
		Entry("by full path", func() v1alpha1.Reference { return v1alpha1.Reference{Path: "acme/website"} }),
		Entry("by id", func() v1alpha1.Reference { return v1alpha1.Reference{ID: web.Spec.ID} }),
	)

	It("can be declared under its own object name, as a replace does, and is not changed then", func() {
		f.Run()
		create()
		b := made()
		f.ExpectReady(b)
		declared := forge.ProtectedBranch("main").Of(web).Named(b.Name).Push(forge.Role(v1alpha1.AccessNoOne)).Build()
		f.Replace(declared)
		f.ExpectReady(declared)
		Expect(declared.UID).To(Equal(b.UID))
		Expect(declared.Labels).To(BeEmpty())
		look(web)
		f.ExpectReady(web)
		Expect(made().Spec.Push).To(ConsistOf(HaveField("Role", v1alpha1.AccessNoOne)))
		f.ExpectRestartWritesNothing()
	})

	It("is left to the garbage collector when the project is deleted", func() {
		f.Run()
		create()
		b := made()
		f.Delete(web)
		f.ExpectGone(web, b)
	})

	It("belongs to the new project if the project is created again under the name of a deleted one", func() {
		f.Run()
		web.Spec.DeletionPolicy = v1alpha1.DeletionPolicyDelete
		create()
		before := made()
		f.Delete(web)
		f.ExpectGone(web)
		web = forge.Project("website").In(acme).Build()
		create()
		Expect(made().UID).NotTo(Equal(before.UID))
		Expect(metav1.IsControlledBy(made(), web)).To(BeTrue())
	})

	It("waits until the protection of a deleted project of the same name is gone", func() {
		left := forge.ProtectedBranch("main").Of(web).Named(v1alpha1.NaturalName("website", "main")).Build()
		left.Finalizers = []string{"forgeplane.dev/test"}
		left.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: v1alpha1.GroupVersion.String(), Kind: "Project", Name: "website", UID: "former",
		}}
		f.Create(left, web)
		f.ExpectReady(web)
		commit := push(web, "main")
		look(web)
		f.ExpectWaiting(web, v1alpha1.ReasonProgressing, left.Name)
		Expect(web.Status.HeadCommit).To(Equal(commit))
		Expect(web.Status.ProtectedDefaultBranch).To(BeEmpty())
		f.Change(left, func() { left.Finalizers = nil })
		f.ExpectGone(left)
		f.ExpectReady(web)
		Expect(metav1.IsControlledBy(made(), web)).To(BeTrue())
	})

	Describe("with a name that another object has", func() {
		var other *v1alpha1.ProtectedBranch
		BeforeEach(func() {
			process := f.Run()
			other = forge.ProtectedBranch("release").Of(web).Named(v1alpha1.NaturalName("website", "main")).Build()
			f.Create(other, web)
			f.ExpectReady(web)
			push(web, "main")
			look(web)
			f.ExpectStalled(web, v1alpha1.ReasonAlreadyExists, "ProtectedBranch "+other.Name, "delete that object", "only Maintainers can push")
			process.ExpectIdle()
		})

		It("is created when that is gone", func() {
			f.Delete(other)
			f.ExpectReady(web)
			Expect(metav1.IsControlledBy(made(), web)).To(BeTrue())
			f.ExpectRestartWritesNothing()
		})

		It("is not needed when another one is declared", func() {
			f.Create(forge.ProtectedBranch("main").Of(web).Named("declared").Build())
			f.ExpectReady(web)
			Expect(web.Status.ProtectedDefaultBranch).To(Equal("main"))
			Expect(made().Spec.Branch).To(Equal("release"))
		})
	})

	It("waits until one that was edited by hand and that a deleted project has left is removed", func() {
		f.Run()
		web.Spec.DeletionPolicy = v1alpha1.DeletionPolicyDelete
		create()
		edited := made()
		f.Change(edited, func() { edited.Spec.AllowForcePush = true })
		f.ExpectReady(edited)
		Eventually(func() []metav1.OwnerReference { f.Refresh(edited); return edited.OwnerReferences }).WithPolling(polling).Should(BeEmpty(), "it is declared now")
		f.Delete(web)
		f.ExpectGone(web)
		web = forge.Project("website").In(acme).Build()
		f.Create(web)
		f.ExpectReady(web)
		push(web, "main")
		look(web)
		f.ExpectStalled(web, v1alpha1.ReasonAlreadyExists, "ProtectedBranch "+edited.Name, "delete that object")
		f.Delete(edited)
		f.ExpectReady(web)
		Expect(metav1.IsControlledBy(made(), web)).To(BeTrue())
	})

	It("does not replace a protection that only looks like it", func() {
		f.Run()
		create()
		b := made()
		f.Delete(b)
		f.ExpectGone(b)
		// It has the same name and label, but the project did not create it.
		alike := forge.ProtectedBranch("main").Of(web).Named(b.Name).Build()
		alike.Labels = map[string]string{v1alpha1.LabelDefaultProtection: "true"}
		declared := forge.ProtectedBranch("main").Of(web).Named("declared").Build()
		f.Create(alike, declared)
		f.ExpectReady(declared)
		f.ExpectStalled(alike, v1alpha1.ReasonAlreadyExists, "declared")
		look(web)
		f.ExpectReady(web)
		f.Refresh(alike)
	})
})
