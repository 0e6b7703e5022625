package repositorystorage_test

import (
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/test/forge"
)

var _ = Describe("The directory of a repository storage", func() {
	var acme *v1alpha1.Group

	BeforeEach(func() {
		acme = forge.Group("acme").In(f.NewNamespace()).Build()
		f.Create(acme)
		f.ExpectReady(acme)
	})

	DescribeTable("belongs to one shard, and others wait until that is gone",
		func(held, wanted string, words ...string) {
			f.Run()
			root := f.NewDirectory("root")
			Expect(os.MkdirAll(filepath.Join(root, "git", "fast"), 0o755)).To(Succeed())
			first := forge.RepositoryStorage("first").At(root + held).Build()
			f.Create(first)
			f.ExpectReady(first)
			second := forge.RepositoryStorage("second").At(root + wanted).Build()
			f.Create(second)
			f.ExpectStalled(second, v1alpha1.ReasonAlreadyExists, append(words, "is held by RepositoryStorage first")...)
			web := forge.Project("web").In(acme).Discarded().Build()
			f.Create(web)
			f.ExpectReady(web)
			Expect(web.Status.Storage).To(Equal("first"))

			f.Delete(first)
			f.ExpectWaiting(first, v1alpha1.ReasonDeleting, "Project "+acme.Namespace+"/web")
			f.ExpectStalled(second, v1alpha1.ReasonAlreadyExists)
			f.Delete(web)
			f.ExpectGone(web, first)
			f.ExpectReady(second)
		},
		Entry("the same", "/git", "/git", "directory "),
		Entry("the same, written differently", "/git", "//git", "directory "),
		Entry("one inside it", "/git", "/git/fast", "/git, which overlaps with "),
		Entry("one around it", "/git/fast", "/git", "/git/fast, which overlaps with "),
	)

	It("can have a name that begins with the name of another", func() {
		root := f.NewDirectory("root")
		Expect(os.Mkdir(root+"-2", 0o755)).To(Succeed())
		for i, path := range []string{root, root + "-2"} {
			s := forge.RepositoryStorage([]string{"one", "two"}[i]).At(path).Build()
			f.Create(s)
			f.ExpectReady(s)
		}
	})

	It("is recognized behind a symbolic link, and stays with the shard that had it first", func() {
		first := f.NewStorage("first")
		link := first.Spec.Path + "-link"
		Expect(os.Symlink(first.Spec.Path, link)).To(Succeed())
		second := forge.RepositoryStorage("second").At(link).Build()
		f.Create(second)
		f.ExpectWaiting(second, v1alpha1.ReasonAlreadyExists, "directory "+link+" is the same as "+first.Spec.Path, "held by RepositoryStorage first")
		f.ExpectReady(first)
		web := forge.Project("web").In(acme).Build()
		f.Create(web)
		f.ExpectReady(web)
		Expect(web.Status.Storage).To(Equal("first"))

		By("deleting the second one, to which the repositories do not belong")
		f.Delete(second)
		_, err := f.ReconcileOnce(second)
		Expect(err).NotTo(HaveOccurred())
		f.ExpectGone(second)
		f.ExpectReady(first)
		Expect(first.Status.Repositories).To(BeEquivalentTo(1))
	})

	It("stays with a shard that is ready when the path of an older one leads there", func() {
		path := f.NewDirectory("old")
		Expect(os.Remove(path)).To(Succeed())
		old := forge.RepositoryStorage("old").At(path).Build()
		f.Create(old)
		f.ExpectWaiting(old, v1alpha1.ReasonStorageUnavailable)
		current := f.NewStorage("current")
		Expect(os.Symlink(current.Spec.Path, path)).To(Succeed())
		f.ExpectWaiting(old, v1alpha1.ReasonAlreadyExists, "held by RepositoryStorage current")
		f.ExpectReady(current)
		Expect(os.Remove(path)).To(Succeed())
		Expect(os.Mkdir(path, 0o755)).To(Succeed())
		f.ExpectReady(old, current)
	})
})
