package project_test

import (
	"os"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/git/refs"
	"github.com/forgeplane/forgeplane/internal/git/upkeep"
	"github.com/forgeplane/forgeplane/internal/repository"
	"github.com/forgeplane/forgeplane/test/forge"
)

var _ = Describe("A project", func() {
	forge.DescribeIDs(func() *forge.Forge { return f }, func(name string) v1alpha1.Identified { return forge.Project(name).In(acme).Build() })

	It("becomes ready with an empty repository", func() {
		web := forge.Project("Website").In(acme).Build()
		f.Create(web)
		f.ExpectReady(web)
		Expect(web.Spec.Visibility).To(Equal(v1alpha1.VisibilityPrivate))
		Expect(web.Spec.DeletionPolicy).To(Equal(v1alpha1.DeletionPolicyRetain))
		Expect(web.Spec.DefaultBranch).To(BeEmpty(), "what nobody has declared is not written there")
		Expect(web.Spec.Storage).To(BeEmpty())
		s := web.Status
		Expect(s.FullPath).To(Equal("acme/Website"))
		Expect(s.Visibility).To(Equal(v1alpha1.VisibilityPrivate))
		Expect(s.Storage).To(Equal("shard"))
		Expect(s.RepositoryPath).To(Equal(repository.Path(web)))
		Expect(s.DefaultBranch).To(Equal("main"))
		Expect(s.HeadCommit).To(BeEmpty())
		Expect(s.RefsChecksum).To(HaveLen(64))
		Expect(s.SizeBytes).To(BeNumerically(">", 0))
		Expect(s.ReadOnly).To(BeFalse())
		Expect(s.ProtectedDefaultBranch).To(BeEmpty())
		Expect(f.Events()).To(BeEmpty())

		r := repositoryOf(web)
		Expect(r.Dir()).To(Equal(place(web, shard)))
		Expect(r.Check()).To(Succeed())
		Expect(upkeep.Fsck(GinkgoT().Context(), r, true)).To(Succeed())
		commit := push(web, "main")
		f.ExpectReady(web)
		Expect(web.Status.HeadCommit).To(Equal(commit))
	})

	It("can use SHA-256 for its objects, and cannot change the format", func() {
		web := forge.Project("website").In(acme).ObjectFormat(v1alpha1.ObjectFormatSHA256).Build()
		f.Create(web)
		f.ExpectReady(web)
		commit := push(web, "main")
		Expect(commit).To(HaveLen(64))
		f.ExpectReady(web)
		Expect(web.Status.HeadCommit).To(Equal(commit))
		f.ExpectChangeRefused(web, func() { web.Spec.ObjectFormat = v1alpha1.ObjectFormatSHA1 }, "objectFormat cannot change")
	})

	It("shows that pushes are refused as long as they are", func() {
		web := forge.Project("website").In(acme).Build()
		f.Create(web)
		f.ExpectReady(web)
		for _, change := range []func(){
			func() { web.Spec.ReadOnly = true },
			func() { web.Spec.ReadOnly, web.Spec.Archived = false, true },
		} {
			f.Change(web, change)
			f.ExpectReady(web)
			Expect(web.Status.ReadOnly).To(BeTrue())
		}
		f.Change(web, func() { web.Spec.Archived = false })
		f.ExpectReady(web)
		Expect(web.Status.ReadOnly).To(BeFalse())
	})

	It("is not changed by a restart, nor is its repository", func() {
		f.Run()
		one, two := forge.Project("one").In(acme).Build(), forge.Project("two").In(acme).Build()
		f.Create(one, two)
		f.ExpectReady(one, two)
		f.ExpectRestartWritesNothing()
	})
})

var _ = Describe("The default branch of a project", func() {
	It("is where HEAD points, whether the branch exists or not", func() {
		web := forge.Project("website").In(acme).DefaultBranch("trunk").Build()
		f.Create(web)
		f.ExpectReady(web)
		Expect(web.Status.DefaultBranch).To(Equal("trunk"))
		commit := push(web, "trunk", "next")
		f.ExpectReady(web)
		Expect(web.Status.HeadCommit).To(Equal(commit))

		f.Change(web, func() { web.Spec.DefaultBranch = "absent" })
		f.ExpectReady(web)
		Expect(web.Status.DefaultBranch).To(Equal("absent"))
		Expect(web.Status.HeadCommit).To(BeEmpty())
		f.Change(web, func() { web.Spec.DefaultBranch = "next" })
		f.ExpectReady(web)
		head, err := refs.ReadHead(GinkgoT().Context(), repositoryOf(web))
		Expect(err).NotTo(HaveOccurred())
		Expect(head.Branch).To(Equal("next"))
		Expect(web.Status.HeadCommit).To(Equal(commit))
	})

	It("is restored when HEAD was moved in the repository", func() {
		web := forge.Project("website").In(acme).DefaultBranch("main").Build()
		f.Create(web)
		f.ExpectReady(web)
		Expect(refs.SetHead(GinkgoT().Context(), repositoryOf(web), "elsewhere")).To(Succeed())
		f.ExpectReady(web)
		Expect(web.Status.DefaultBranch).To(Equal("main"))
	})

	It("is what HEAD names if none is declared", func() {
		web := forge.Project("website").In(acme).Build()
		f.Create(web)
		f.ExpectReady(web)
		Expect(refs.SetHead(GinkgoT().Context(), repositoryOf(web), "elsewhere")).To(Succeed())
		f.ExpectReady(web)
		Expect(web.Status.DefaultBranch).To(Equal("elsewhere"))
	})

	DescribeTable("is refused by the schema",
		func(branch string) {
			f.ExpectRefused(forge.Project("website").In(acme).DefaultBranch(branch).Build(), "spec.defaultBranch")
		},
		Entry("with a leading dash", "-main"),
		Entry("with refs/heads/", "refs/heads/main"),
		Entry("with a wildcard", "main*"),
		Entry("with a space", "ma in"),
		Entry("with a control character", "ma\x01in"),
		Entry("with a backslash", `ma\in`),
		Entry("that is too long", strings.Repeat("a", 245)),
	)

	It("stops nothing else if it is not the name of a branch", func() {
		web := forge.Project("website").In(acme).Build()
		f.Create(web)
		f.ExpectReady(web)
		f.Change(web, func() { web.Spec.DefaultBranch, web.Spec.ReadOnly = "a..b", true })
		commit := push(web, "main")
		f.ExpectStalled(web, v1alpha1.ReasonInvalid, "defaultBranch is not the name of a branch: ")
		Expect(web.Status).To(And(HaveField("DefaultBranch", "main"), HaveField("HeadCommit", commit), HaveField("ReadOnly", true), HaveField("ProtectedDefaultBranch", "main")))
	})

	DescribeTable("is invalid if Git does not accept it, and no repository is created",
		func(branch string) {
			web := forge.Project("website").In(acme).DefaultBranch(branch).Build()
			f.Create(web)
			f.ExpectStalled(web, v1alpha1.ReasonInvalid, "defaultBranch is not the name of a branch: ")
			Expect(place(web, shard)).NotTo(BeADirectory())
			f.Change(web, func() { web.Spec.DefaultBranch = "main" })
			f.ExpectReady(web)
		},
		Entry("with two dots", "a..b"),
		Entry("with .lock", "main.lock"),
		Entry("with @{", "main@{1}"),
		Entry("with an empty segment", "a//b"),
		Entry("with a segment that begins with a dot", "a/.b"),
	)
})

var _ = Describe("The full path of a project", func() {
	It("follows renames of the project and of the groups above it, and the repository does not move", func() {
		f.Run()
		sub := forge.Group("sub").Below(acme).Build()
		web := forge.Project("website").In(sub).Build()
		f.Create(sub, web)
		f.ExpectReady(web)
		Expect(web.Status.FullPath).To(Equal("acme/sub/website"))
		directory := repositoryOf(web).Dir()

		f.Change(web, func() { web.Spec.Path = "site" })
		f.Eventually(web).Should(HaveField("Status.FullPath", "acme/sub/site"))
		f.Change(acme, func() { acme.Spec.Path = "example" })
		f.Eventually(web).Should(HaveField("Status.FullPath", "example/sub/site"))
		f.Change(web, func() { web.Spec.GroupRef.Name = "acme" })
		f.Eventually(web).Should(HaveField("Status.FullPath", "example/site"))
		f.ExpectReady(web)
		Expect(repositoryOf(web).Dir()).To(Equal(directory))
		Expect(repositoryOf(web).Check()).To(Succeed())
		f.ExpectRestartWritesNothing()
	})

	It("belongs to the oldest claim, and passes on when the holder is renamed", func() {
		one := forge.Project("website").In(acme).Named("one").Build()
		two := forge.Project("WEBSITE").InPath(namespace, "acme").Named("two").Build()
		// If two projects are created in the same second, the first one can count as the younger one. It would then have a storage before the other
		// exists.
		f.Create(one, two)
		f.Run()
		older, younger := forge.ByAge(one, two)
		f.ExpectReady(older)
		f.ExpectStalled(younger, v1alpha1.ReasonAlreadyExists, "full path acme/", "held by Project "+older.Name)
		Expect(younger.Status.FullPath).To(BeEmpty())
		Expect(younger.Status.Storage).To(BeEmpty())
		f.Change(older, func() { older.Spec.Path = "other" })
		f.ExpectReady(younger)
		Expect(strings.ToLower(younger.Status.FullPath)).To(Equal("acme/website"))
	})

	It("is empty while the project has no place, and the repository stays", func() {
		f.Run()
		web := forge.Project("website").In(acme).Build()
		f.Create(web)
		f.ExpectReady(web)
		commit := push(web, "main")
		f.Delete(acme)
		f.ExpectWaiting(web, v1alpha1.ReasonReferenceNotFound, "groupRef: group acme: not found")
		Expect(web.Status.FullPath).To(BeEmpty())
		Expect(web.Status.Visibility).To(BeEmpty())
		Expect(repositoryOf(web).Check()).To(Succeed())
		f.Create(forge.Group("acme").In(namespace).Build())
		f.ExpectReady(web)
		Expect(web.Status.HeadCommit).To(Equal(commit))
	})

	DescribeTable("is not available in a group",
		func(group func() *v1alpha1.Group, check func(web *v1alpha1.Project)) {
			g := group()
			f.Create(g)
			web := forge.Project("website").In(g).Build()
			f.Create(web)
			check(web)
			Expect(web.Status.Storage).To(BeEmpty())
		},
		Entry("that is its own parent", func() *v1alpha1.Group {
			g := forge.Group("loop").In(namespace).Build()
			g.Spec.ParentRef = &v1alpha1.Reference{Name: "loop"}
			return g
		}, func(web *v1alpha1.Project) { f.ExpectStalled(web, v1alpha1.ReasonReferenceCycle, "groupRef") }),
		Entry("that does not admit the namespace of the project", func() *v1alpha1.Group {
			return forge.Group("sub").In(f.NewNamespace()).BelowPath("acme").Build()
		}, func(web *v1alpha1.Project) {
			f.ExpectWaiting(web, v1alpha1.ReasonReferenceNotAllowed, "groupRef", "allowedNamespaces")
		}),
		Entry("that does not hold its own path", func() *v1alpha1.Group {
			younger := forge.Group("acme").In(f.NewNamespace()).Build()
			forge.UntilYounger(acme)
			return younger
		}, func(web *v1alpha1.Project) { f.ExpectWaiting(web, v1alpha1.ReasonReferenceNotReady, "a parent group") }),
	)

	It("is not available if the namespace cannot have the root group", func() {
		f = forge.New(cluster, forge.Options{RootGroups: []catalog.RootGroupRule{{Namespace: "platform", Path: "*"}}})
		web := forge.Project("website").In(acme).Build()
		f.Create(web)
		f.ExpectStalled(web, v1alpha1.ReasonNamespaceNotAllowed, "groupRef")
	})
})

var _ = Describe("The visibility of a project", func() {
	It("is the narrowest of its own visibility and those of all groups above it", func() {
		f.Run()
		sub := forge.Group("sub").Below(acme).Visibility(v1alpha1.VisibilityPublic).Build()
		web := forge.Project("website").In(sub).Visibility(v1alpha1.VisibilityPublic).Build()
		f.Create(sub, web)
		f.ExpectReady(web)
		Expect(web.Status.Visibility).To(Equal(v1alpha1.VisibilityPublic))

		f.Change(sub, func() { sub.Spec.Visibility = v1alpha1.VisibilityInternal })
		f.Eventually(web).Should(HaveField("Status.Visibility", v1alpha1.VisibilityInternal))
		f.Change(acme, func() { acme.Spec.Visibility = v1alpha1.VisibilityPrivate })
		f.Eventually(web).Should(HaveField("Status.Visibility", v1alpha1.VisibilityPrivate))
		f.Change(acme, func() { acme.Spec.Visibility = v1alpha1.VisibilityPublic })
		f.Eventually(web).Should(HaveField("Status.Visibility", v1alpha1.VisibilityInternal))
		f.Change(web, func() { web.Spec.Visibility = v1alpha1.VisibilityPrivate })
		f.Eventually(web).Should(HaveField("Status.Visibility", v1alpha1.VisibilityPrivate))
		f.ExpectRestartWritesNothing()
	})
})

var _ = Describe("A project that is deleted", func() {
	var web *v1alpha1.Project
	create := func(p *v1alpha1.Project) {
		GinkgoHelper()
		web = p
		f.Create(web)
		f.ExpectReady(web)
		push(web, "main")
	}

	It("is deleted with its repository, with the remains of a crash, and with everything that belongs to it", func() {
		f.Run()
		create(forge.Project("website").In(acme).Discarded().Build())
		key, declared := forge.DeployKey("ci").Of(web).Build(), forge.DeployKey("gitops").Of(web).Build()
		key.Spec.ProjectRef.UID = string(web.UID)
		f.CreateOverREST(key)
		f.Create(declared)
		f.ExpectReady(key, declared)
		directory := repositoryOf(web).Dir()
		Expect(os.MkdirAll(directory+".new/123/git", 0o755)).To(Succeed())
		Expect(os.MkdirAll(directory+".trash/456/git", 0o755)).To(Succeed())
		f.Delete(web)
		f.ExpectGone(web, key)
		for _, path := range []string{directory, directory + ".new", directory + ".trash"} {
			Expect(path).NotTo(BeADirectory())
		}
		Eventually(protections).Should(BeEmpty())
		f.ExpectWaiting(declared, v1alpha1.ReasonReferenceNotFound, "projectRef")
	})

	It("waits for its storage, and says so, until that is back", func() {
		f.Run()
		create(forge.Project("website").In(acme).Discarded().Build())
		away := shard.Spec.Path + ".away"
		Expect(os.Rename(shard.Spec.Path, away)).To(Succeed())
		f.Delete(web)
		f.Eventually(web).Should(HaveField("Status.Conditions", ContainElement(And(
			HaveField("Type", "Ready"), HaveField("Reason", v1alpha1.ReasonDeleting), HaveField("Message", ContainSubstring("storage shard is not mounted")),
		))))
		look(shard)
		f.ExpectWaiting(shard, v1alpha1.ReasonStorageUnavailable)
		Expect(os.Rename(away, shard.Spec.Path)).To(Succeed())
		look(shard)
		f.ExpectGone(web)
		Expect(place(web, shard)).NotTo(BeADirectory())
	})

	It("does not wait for a storage that an administrator has let go", func() {
		f.Run()
		create(forge.Project("website").In(acme).Discarded().Build())
		f.Delete(shard)
		f.ExpectWaiting(shard, v1alpha1.ReasonDeleting, "Project "+namespace+"/website")
		look(web)
		f.ExpectReady(web)
		f.Change(shard, func() { shard.Finalizers = nil })
		f.ExpectGone(shard)
		f.ExpectWaiting(web, v1alpha1.ReasonReferenceNotFound, "status.storage: RepositoryStorage shard: not found")
		f.Delete(web)
		f.ExpectGone(web)
		Expect(place(web, shard)).To(BeADirectory())
	})

	It("does not touch the repository of another project that had a claim before it", func() {
		create(forge.Project("website").In(acme).ID(7).Build())
		other := forge.Project("other").In(acme).ID(7).Build()
		forge.UntilYounger(web)
		f.Create(other)
		f.ExpectStalled(other, v1alpha1.ReasonAlreadyExists, "id 7")
		f.Delete(other)
		_, err := f.ReconcileOnce(other)
		Expect(err).NotTo(HaveOccurred())
		f.ExpectGone(other)
		Expect(repositoryOf(web).Check()).To(Succeed())
	})

	It("is deleted together with its namespace", func() {
		f.Run()
		create(forge.Project("website").In(acme).Discarded().Build())
		directory := repositoryOf(web).Dir()
		f.Delete(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
		f.ExpectGone(web)
		Expect(directory).NotTo(BeADirectory())
	})
})

// look reconciles an object immediately.
func look(o v1alpha1.Object) {
	GinkgoHelper()
	f.Change(o, func() {
		if o.GetAnnotations() == nil {
			o.SetAnnotations(map[string]string{})
		}
		o.GetAnnotations()["example.com/looked"] += "x"
	})
}
