package project_test

import (
	"fmt"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/test/forge"
)

var _ = Describe("The storage of a project", func() {
	It("can be chosen, once", func() {
		other := f.NewStorage("other")
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
	})

	It("is waited for when it is not there, or not ready", func() {
		f.Run()
		web := forge.Project("website").In(acme).On("later").Build()
		f.Create(web)
		f.ExpectWaiting(web, v1alpha1.ReasonReferenceNotFound, "storage: RepositoryStorage later: not found")
		missing := filepath.Join(f.NewDirectory("parent"), "later")
		later := forge.RepositoryStorage("later").At(missing).Build()
		f.Create(later)
		f.ExpectWaiting(later, v1alpha1.ReasonStorageUnavailable)
		f.ExpectWaiting(web, v1alpha1.ReasonReferenceNotReady, "RepositoryStorage later is not ready")
		Expect(os.Mkdir(missing, 0o755)).To(Succeed())
		look(later)
		f.ExpectReady(web)
	})

	It("is one with a weight, of those that are ready", func() {
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

	It("appears later, and every project that waits gets it", func() {
		f.Run()
		f.Delete(shard)
		one, two := forge.Project("one").In(acme).Build(), forge.Project("two").In(acme).Build()
		f.Create(one, two)
		f.ExpectWaiting(one, v1alpha1.ReasonStorageUnavailable)
		f.ExpectWaiting(two, v1alpha1.ReasonStorageUnavailable)
		f.NewStorage("later")
		f.ExpectReady(one, two)
	})

	It("may go and come back", func() {
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
	It("is made in the place of what a crash has left", func() {
		web := forge.Project("website").In(acme).ID(7).Build()
		directory := place(web, shard)
		Expect(os.MkdirAll(directory+".new/123/git/objects", 0o755)).To(Succeed())
		Expect(os.MkdirAll(directory+".trash/456", 0o755)).To(Succeed())
		f.Create(web)
		f.ExpectReady(web)
		Expect(repositoryOf(web).Fsck(GinkgoT().Context(), true)).To(Succeed())
		Expect(directory + ".new").NotTo(BeADirectory())
		Expect(directory + ".trash").NotTo(BeADirectory())
	})

	It("is taken as it is when a crash came between making it and writing it down", func() {
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

	It("is not touched when it is damaged, or something else", func() {
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
