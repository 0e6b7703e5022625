package project_test

import (
	"fmt"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/internal/git/upkeep"
	"github.com/forgeplane/forgeplane/test/forge"
)

// open creates a shard that every project can choose.
func open(name string) *v1alpha1.RepositoryStorage {
	GinkgoHelper()
	s := forge.RepositoryStorage(name).At(f.NewDirectory(name)).Admitting(v1alpha1.NamespacesFromAll).Build()
	f.Create(s)
	f.ExpectReady(s)
	return s
}

var _ = Describe("The storage of a project", func() {
	It("can be chosen only if it admits the namespace, and is waited for until it does", func() {
		f.Run()
		other := forge.RepositoryStorage("other").At(f.NewDirectory("other")).Admitting(v1alpha1.NamespacesFromSame).Build()
		f.Create(other)
		f.ExpectReady(other)
		web := forge.Project("website").In(acme).On("other").Build()
		f.Create(web)
		refused := []string{"storage: RepositoryStorage other does not admit this namespace", "omit spec.storage, or ask an administrator"}
		f.ExpectWaiting(web, v1alpha1.ReasonReferenceNotAllowed, refused...)
		Expect(place(web, other)).NotTo(BeADirectory())
		f.Change(other, func() { other.Spec.AllowedNamespaces = &v1alpha1.AllowedNamespaces{From: v1alpha1.NamespacesFromAll} })
		f.ExpectReady(web)
		Expect(web.Status.Storage).To(Equal("other"))

		f.Change(other, func() { other.Spec.AllowedNamespaces = &v1alpha1.AllowedNamespaces{From: v1alpha1.NamespacesFromSame} })
		next := forge.Project("next").In(acme).On("other").Build()
		f.Create(next)
		f.ExpectWaiting(next, v1alpha1.ReasonReferenceNotAllowed, refused...)
		f.Change(web, func() { web.Spec.Description = "still here" })
		push(web, "main")
		f.ExpectReady(web)
		Expect(web.Status.Storage).To(Equal("other"), "its repository is there")
		f.Change(next, func() { next.Spec.Storage = "" })
		f.ExpectReady(next)
	})

	It("can be admitted by the labels of the namespace", func() {
		f.Run()
		fast := forge.RepositoryStorage("fast").At(f.NewDirectory("fast")).AdmittingLabelled("tier", "gold").Build()
		f.Create(fast)
		web := forge.Project("website").In(acme).On("fast").Build()
		f.Create(web)
		f.ExpectWaiting(web, v1alpha1.ReasonReferenceNotAllowed, "RepositoryStorage fast does not admit")
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
		f.Change(ns, func() { metav1.SetMetaDataLabel(&ns.ObjectMeta, "tier", "gold") })
		f.ExpectReady(web)
		Expect(web.Status.Storage).To(Equal("fast"))
	})

	It("is one that admits the namespace of the project, also by weight", func() {
		f.Run()
		f.Change(shard, func() { shard.Spec.AllowedNamespaces = &v1alpha1.AllowedNamespaces{From: v1alpha1.NamespacesFromSame} })
		f.ExpectReady(shard)
		own := forge.Group("platform").In(forge.PlatformNamespace).Build()
		f.Create(own)
		f.ExpectReady(own)
		tools, web := forge.Project("tools").In(own).Build(), forge.Project("website").In(acme).Build()
		f.Create(tools, web)
		f.ExpectReady(tools)
		Expect(tools.Status.Storage).To(Equal(shard.Name), "each shard admits the namespace of Forgeplane")
		f.ExpectWaiting(web, v1alpha1.ReasonStorageUnavailable, "no RepositoryStorage with a weight above 0 is ready and admits this namespace")
		f.NewStorage("other")
		f.ExpectReady(web)
		Expect(web.Status.Storage).To(Equal("other"))
	})

	It("is chosen again when a shard gets a weight", func() {
		f.Run()
		f.Change(shard, func() { shard.Spec.Weight = new(int32) })
		f.ExpectReady(shard)
		web := forge.Project("website").In(acme).Build()
		f.Create(web)
		f.ExpectWaiting(web, v1alpha1.ReasonStorageUnavailable, "no RepositoryStorage with a weight above 0 is ready")
		f.Change(shard, func() { shard.Spec.Weight = ptr.To(int32(1)) })
		f.ExpectReady(web)
	})

	It("can be chosen once", func() {
		other := open("other")
		web := forge.Project("website").In(acme).On("other").Build()
		f.Create(web)
		f.ExpectReady(web)
		Expect(web.Status.Storage).To(Equal("other"))
		Expect(place(web, other)).To(BeADirectory())
		Expect(place(web, shard)).NotTo(BeADirectory())
		f.ExpectChangeRefused(web, func() { web.Spec.Storage = "shard" }, "storage is chosen once")
		f.Change(web, func() { web.Spec.Storage = "" })
		f.ExpectReady(web)
		Expect(web.Status.Storage).To(Equal("other"))
		f.ExpectChangeRefused(web, func() { web.Spec.Storage = "shard" }, "storage is chosen when the project is created")
		f.Change(web, func() { web.Spec.Storage = "other" })
		f.ExpectReady(web)
	})

	It("is waited for if it does not exist or is not ready", func() {
		f.Run()
		web := forge.Project("website").In(acme).On("later").Build()
		f.Create(web)
		f.ExpectWaiting(web, v1alpha1.ReasonReferenceNotFound, "storage: RepositoryStorage later: not found")
		missing := filepath.Join(f.NewDirectory("parent"), "later")
		later := forge.RepositoryStorage("later").At(missing).Admitting(v1alpha1.NamespacesFromAll).Build()
		f.Create(later)
		f.ExpectWaiting(later, v1alpha1.ReasonStorageUnavailable)
		f.ExpectWaiting(web, v1alpha1.ReasonReferenceNotReady, "RepositoryStorage later is not ready")
		Expect(os.Mkdir(missing, 0o755)).To(Succeed())
		look(later)
		f.ExpectReady(web)
	})

	It("is a ready one with a weight", func() {
		f.Change(shard, func() { shard.Spec.Weight = new(int32) })
		f.ExpectReady(shard)
		web := forge.Project("website").In(acme).Build()
		f.Create(web)
		f.ExpectWaiting(web, v1alpha1.ReasonStorageUnavailable, "no RepositoryStorage with a weight above 0 is ready")

		unready := forge.RepositoryStorage("unready").At(filepath.Join(f.NewDirectory("parent"), "missing")).Build()
		f.Create(unready)
		f.ExpectWaiting(unready, v1alpha1.ReasonStorageUnavailable)
		f.ExpectWaiting(web, v1alpha1.ReasonStorageUnavailable)

		f.NewStorage("heavy")
		for i := range 8 {
			one := forge.Project(fmt.Sprintf("project-%d", i)).In(acme).Build()
			f.Create(one)
			f.ExpectReady(one)
			Expect(one.Status.Storage).To(Equal("heavy"))
		}
		f.ExpectReady(web)
	})

	It("can appear later, and every project that waits gets it", func() {
		f.Run()
		f.Delete(shard)
		f.ExpectGone(shard)
		one, two := forge.Project("one").In(acme).Build(), forge.Project("two").In(acme).Build()
		f.Create(one, two)
		f.ExpectWaiting(one, v1alpha1.ReasonStorageUnavailable)
		f.ExpectWaiting(two, v1alpha1.ReasonStorageUnavailable)
		f.NewStorage("later")
		f.ExpectReady(one, two)
	})

	It("can be let go and declared again", func() {
		f.Run()
		web := forge.Project("website").In(acme).Build()
		f.Create(web)
		f.ExpectReady(web)
		commit := push(web, "main")
		f.Delete(shard)
		f.ExpectWaiting(shard, v1alpha1.ReasonDeleting, "Project "+namespace+"/website")
		f.Change(shard, func() { shard.Finalizers = nil })
		f.ExpectGone(shard)
		f.ExpectWaiting(web, v1alpha1.ReasonReferenceNotFound, "status.storage: RepositoryStorage shard: not found")
		again := forge.RepositoryStorage("shard").At(shard.Spec.Path).Build()
		f.Create(again)
		f.ExpectReady(again, web)
		Expect(web.Status.HeadCommit).To(Equal(commit))
	})

	It("can disappear and come back", func() {
		f.Run()
		web := forge.Project("website").In(acme).Build()
		f.Create(web)
		f.ExpectReady(web)
		before := web.Status.RefsChecksum
		away := shard.Spec.Path + ".away"
		Expect(os.Rename(shard.Spec.Path, away)).To(Succeed())
		look(shard)
		f.ExpectWaiting(shard, v1alpha1.ReasonStorageUnavailable)
		f.ExpectWaiting(web, v1alpha1.ReasonStorageUnavailable, "storage shard is not mounted")
		Expect(web.Status.Storage).To(Equal("shard"))
		Expect(shard.Spec.Path).NotTo(BeADirectory(), "nothing is made where nothing is mounted")
		Expect(os.Rename(away, shard.Spec.Path)).To(Succeed())
		look(shard)
		f.ExpectReady(shard, web)
		Expect(web.Status.RefsChecksum).To(Equal(before))
	})
})

var _ = Describe("The repository of a project", func() {
	It("replaces the remains of a crash", func() {
		web := forge.Project("website").In(acme).ID(7).Build()
		directory := place(web, shard)
		Expect(os.MkdirAll(directory+".new/123/git/objects", 0o755)).To(Succeed())
		Expect(os.MkdirAll(directory+".trash/456", 0o755)).To(Succeed())
		f.Create(web)
		f.ExpectReady(web)
		Expect(upkeep.Fsck(GinkgoT().Context(), repositoryOf(web), true)).To(Succeed())
		Expect(directory + ".new").NotTo(BeADirectory())
		Expect(directory + ".trash").NotTo(BeADirectory())
	})

	It("is adopted unchanged after a crash between creating and recording it", func() {
		web := forge.Project("website").In(acme).ID(7).Build()
		engine, err := git.NewEngine(GinkgoT().Context(), git.Options{})
		Expect(err).NotTo(HaveOccurred())
		made, err := engine.Repository(shard.Spec.Path, filepathOf(web))
		Expect(err).NotTo(HaveOccurred())
		Expect(made.Init(GinkgoT().Context(), git.InitOptions{DefaultBranch: "main"})).To(Succeed())
		c := gittest.New(GinkgoTB(), "sha1")
		commit := c.Commit(GinkgoTB(), "README", "hello")
		c.Git(GinkgoTB(), "push", "--quiet", made.Dir(), "HEAD:refs/heads/main")
		f.Create(web)
		f.ExpectReady(web)
		Expect(web.Status.HeadCommit).To(Equal(commit))
	})

	It("is never replaced by an empty one", func() {
		web := forge.Project("website").In(acme).Build()
		f.Create(web)
		f.ExpectReady(web)
		commit := push(web, "main")
		f.ExpectReady(web)
		directory := repositoryOf(web).Dir()
		Expect(os.Rename(directory, directory+".aside")).To(Succeed())
		f.ExpectFailing(web, v1alpha1.ReasonStorageUnavailable, "the repository is no longer on storage shard", web.Status.RepositoryPath)
		Expect(directory).NotTo(BeADirectory())
		Expect(web.Status.HeadCommit).To(Equal(commit), "what is known of it stays")
		Expect(os.Rename(directory+".aside", directory)).To(Succeed())
		f.ExpectReady(web)
	})

	It("is not touched if it is damaged or something else", func() {
		web := forge.Project("website").In(acme).Build()
		f.Create(web)
		f.ExpectReady(web)
		head := filepath.Join(repositoryOf(web).Dir(), "HEAD")
		Expect(os.Rename(head, head+".aside")).To(Succeed())
		f.ExpectFailing(web, v1alpha1.ReasonFailed, "this is not a Git repository")
		Expect(os.Rename(head+".aside", head)).To(Succeed())
		f.ExpectReady(web)
	})
})

func filepathOf(p *v1alpha1.Project) string {
	GinkgoHelper()
	relative, err := filepath.Rel(shard.Spec.Path, place(p, shard))
	Expect(err).NotTo(HaveOccurred())
	return relative
}
