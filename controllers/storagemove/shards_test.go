package storagemove_test

import (
	"os"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/test/forge"
)

var _ = Describe("A storage move to a shard that cannot take the project", func() {
	BeforeEach(func() { install(forge.Options{}) })

	// scheduled makes a move the one of the website, as a REST server does.
	scheduled := func(destination string) *v1alpha1.StorageMove {
		GinkgoHelper()
		m := forge.StorageMove("off").Of(website).To(destination).Build()
		f.Create(m)
		f.Refresh(website)
		website.Status.Move = &v1alpha1.ProjectMove{Name: m.Name, UID: string(m.UID), Source: source.Name, Destination: destination}
		Expect(f.Live().Status().Update(GinkgoT().Context(), website)).To(Succeed())
		return m
	}
	// link makes a directory the one of the source.
	link := func(directory string) {
		GinkgoHelper()
		Expect(os.RemoveAll(directory)).To(Succeed())
		Expect(os.Symlink(source.Spec.Path, directory)).To(Succeed())
	}
	// unchanged expects that the website is where it was.
	unchanged := func(head string) {
		GinkgoHelper()
		f.Eventually(website).Should(HaveField("Status.Move", BeNil()))
		Expect(website.Status.Storage).To(Equal(source.Name))
		Expect(branch(on(source))).To(Equal(head))
		Expect(repositoryOf().Closed()).To(BeFalse(), "it takes writes")
		Expect(f.Repositories.HasOwner(GinkgoT().Context(), website, source.Name)).To(BeTrue(), "the shard still knows whose it is")
	}

	It("fails if the destination is refused because it is the directory of the source, and can be deleted", func() {
		head := branch(on(source))
		alias := forge.RepositoryStorage("alias").At(f.NewDirectory("alias")).Build()
		link(alias.Spec.Path)
		f.Create(alias)
		f.ExpectWaiting(alias, v1alpha1.ReasonAlreadyExists, source.Name)
		m := scheduled(alias.Name)
		f.Run()
		f.ExpectStalled(m, v1alpha1.ReasonMoveFailed, "destination: RepositoryStorage alias is not ready")
		unchanged(head)
		f.Delete(m)
		f.ExpectGone(m)
	})

	It("fails if the destination has become the directory of the source", func() {
		head := branch(on(source))
		f.Run().ExpectIdle() // the shard is looked at again half a minute later
		link(target.Spec.Path)
		m := forge.StorageMove("off").Of(website).To(target.Name).Build()
		f.Create(m)
		f.ExpectStalled(m, v1alpha1.ReasonMoveFailed, "the RepositoryStorages old and new have the same directory")
		unchanged(head)
	})

	It("fails if the destination is no longer ready when the move begins", func() {
		head := branch(on(source))
		Expect(os.RemoveAll(target.Spec.Path)).To(Succeed())
		f.ExpectWaiting(target, v1alpha1.ReasonStorageUnavailable)
		m := scheduled(target.Name)
		f.Run()
		f.ExpectStalled(m, v1alpha1.ReasonMoveFailed, "destination: RepositoryStorage new is not ready")
		unchanged(head)
	})
})
