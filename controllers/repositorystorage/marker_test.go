package repositorystorage_test

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/repository"
	"github.com/forgeplane/forgeplane/test/forge"
)

var _ = Describe("The marker of a repository storage", func() {
	var s *v1alpha1.RepositoryStorage
	var acme *v1alpha1.Group

	BeforeEach(func() {
		s = f.NewStorage("ssd")
		acme = forge.Group("acme").In(f.NewNamespace()).Build()
		f.Create(acme)
		f.ExpectReady(acme)
	})

	file := func() string { return filepath.Join(s.Spec.Path, ".forgeplane-storage") }
	content := func(s *v1alpha1.RepositoryStorage) string { return fmt.Sprintf(`{"name":%q,"uid":%q}`, s.Name, s.UID) }
	// made returns a project whose repository is on the shard.
	made := func(name string) *v1alpha1.Project {
		GinkgoHelper()
		p := forge.Project(name).In(acme).Build()
		f.Create(p)
		f.ExpectReady(p)
		return p
	}
	unmount := func() {
		GinkgoHelper()
		Expect(os.Rename(s.Spec.Path, s.Spec.Path+".away")).To(Succeed())
		Expect(os.Mkdir(s.Spec.Path, 0o755)).To(Succeed())
	}
	mount := func() {
		GinkgoHelper()
		Expect(os.Remove(s.Spec.Path)).To(Succeed(), "nothing was written below the mount point")
		Expect(os.Rename(s.Spec.Path+".away", s.Spec.Path)).To(Succeed())
	}
	// unmark makes the shard one that was declared again, and whose volume has lost its marker.
	unmark := func() {
		GinkgoHelper()
		Expect(os.Remove(file())).To(Succeed())
		s.Status.MarkerUID = ""
		Expect(f.Live().Status().Update(GinkgoT().Context(), s)).To(Succeed())
		f.Refresh(s)
	}
	// abandon deletes the shard as an administrator does whose volume is lost.
	abandon := func() {
		GinkgoHelper()
		f.Delete(s)
		f.Change(s, func() { s.Finalizers = nil })
		f.ExpectGone(s)
	}

	It("is written once, with the name and the UID", func() {
		Expect(os.ReadFile(file())).To(MatchJSON(content(s)))
		Expect(s.Status.MarkerUID).To(BeEquivalentTo(s.UID))
		before, err := os.Stat(file())
		Expect(err).NotTo(HaveOccurred())
		f.ExpectReady(s)
		Expect(os.Stat(file())).To(HaveField("ModTime()", before.ModTime()))
		Expect(os.ReadDir(s.Spec.Path)).To(HaveLen(1))
	})

	It("is missing from the empty directory of a volume that is not mounted, where nothing is written", func() {
		f.Run()
		web := made("web")
		unmount()
		By("creating a project before the next check of the shard")
		late := forge.Project("late").In(acme).Build()
		f.Create(late)
		f.ExpectWaiting(late, v1alpha1.ReasonStorageUnavailable, "storage ssd is not mounted")
		look(s)
		f.ExpectWaiting(s, v1alpha1.ReasonStorageUnavailable, "the volume of storage ssd is not available: mount it at "+s.Spec.Path, content(s))
		f.ExpectWaiting(web, v1alpha1.ReasonStorageUnavailable, "storage ssd is not mounted")
		f.ExpectWaiting(late, v1alpha1.ReasonStorageUnavailable, "storage ssd is not mounted")
		mount()
		look(s)
		f.ExpectReady(s, web, late)

		By("unmounting it between two checks of the shard")
		unmount()
		next := forge.Project("next").In(acme).Build()
		f.Create(next)
		f.ExpectWaiting(next, v1alpha1.ReasonStorageUnavailable, "storage ssd is not mounted")
		mount()
		f.Clock.SetTime(f.Clock.Now().Add(time.Minute))
		look(s)
		f.ExpectReady(next)
	})

	It("is asked for before a repository is created on a shard that was not checked yet", func() {
		shop := forge.Project("shop").In(acme).Build()
		unmark()
		f.Create(shop)
		f.ExpectFailing(shop, v1alpha1.ReasonStorageUnavailable, "the volume of storage ssd is not available: mount it at "+s.Spec.Path)
		Expect(os.ReadDir(s.Spec.Path)).To(BeEmpty())
		f.ExpectReady(s, shop)
	})

	It("is missed on a shard without repositories, too, and is not written again", func() {
		unmount()
		f.ExpectWaiting(s, v1alpha1.ReasonStorageUnavailable, "the volume of storage ssd is not available")
		mount()
		f.ExpectReady(s)
		Expect(os.Remove(file())).To(Succeed())
		f.ExpectWaiting(s, v1alpha1.ReasonStorageUnavailable, "if this is the right volume, or a new one in its place, write "+content(s)+" to "+file())
		Expect(file()).NotTo(BeAnExistingFile())
		Expect(os.WriteFile(file(), []byte(content(s)), 0o600)).To(Succeed())
		f.ExpectReady(s)
	})

	It("keeps the deletion of a project from forgetting its repository while the volume is not mounted", func() {
		web := forge.Project("web").In(acme).Discarded().Build()
		f.Create(web)
		f.ExpectReady(web)
		unmount()
		f.Delete(web)
		f.ExpectWaiting(web, v1alpha1.ReasonDeleting, "storage ssd is not mounted, so the repository cannot be removed")
		mount()
		_, err := f.ReconcileOnce(web)
		Expect(err).NotTo(HaveOccurred())
		f.ExpectGone(web)
		Expect(filepath.Join(s.Spec.Path, repository.Path(web))).NotTo(BeADirectory())
	})

	It("is written to the volume of a shard that was declared again if it has the repositories", func() {
		made("web")
		unmark()
		f.ExpectReady(s)
		Expect(os.ReadFile(file())).To(MatchJSON(content(s)))
		Expect(s.Status.MarkerUID).To(BeEquivalentTo(s.UID))
	})

	It("is not written to the directory of a shard that was declared again if it lacks the repositories", func() {
		made("web")
		unmark()
		unmount()
		By("having a directory below the mount point")
		Expect(os.Mkdir(filepath.Join(s.Spec.Path, ".projects"), 0o700)).To(Succeed())
		f.ExpectWaiting(s, v1alpha1.ReasonStorageUnavailable, "1 of its 1 repositories are not in "+s.Spec.Path+": mount its volume there")
		Expect(file()).NotTo(BeAnExistingFile())
		Expect(os.Remove(filepath.Join(s.Spec.Path, ".projects"))).To(Succeed())
		mount()
		f.ExpectReady(s)
	})

	It("is taken over by a RepositoryStorage that is declared again with the same name, which says so", func() {
		web := made("web")
		former := string(s.UID)
		abandon()
		s = forge.RepositoryStorage("ssd").At(s.Spec.Path).Build()
		f.Create(s)
		f.ExpectReady(s, web)
		Expect(os.ReadFile(file())).To(MatchJSON(content(s)))
		Expect(f.Events()).To(ContainElement(And(HavePrefix("Normal TookOver ssd: "), ContainSubstring(former))))
	})

	It("refuses a RepositoryStorage of another name, and names the holder", func() {
		abandon()
		other := forge.RepositoryStorage("other").At(s.Spec.Path).Build()
		f.Create(other)
		f.ExpectWaiting(other, v1alpha1.ReasonAlreadyExists, "directory "+s.Spec.Path+" belongs to RepositoryStorage ssd, which does not exist", "or remove "+file())
		Expect(os.ReadFile(file())).To(MatchJSON(content(s)))
		Expect(os.Remove(file())).To(Succeed())
		f.ExpectReady(other)
	})

	It("refuses a volume that another RepositoryStorage has, whatever the path", func() {
		second := forge.RepositoryStorage("second").At(f.NewDirectory("second")).Build()
		// The directory shows the same volume, as on a machine where both are mounts of it.
		marker := filepath.Join(second.Spec.Path, ".forgeplane-storage")
		Expect(os.WriteFile(marker, []byte(content(s)), 0o600)).To(Succeed())
		f.Create(second)
		f.ExpectWaiting(second, v1alpha1.ReasonAlreadyExists, "directory "+second.Spec.Path+" is held by RepositoryStorage ssd")
		f.ExpectReady(s)
		f.Delete(second)
		_, err := f.ReconcileOnce(second)
		Expect(err).NotTo(HaveOccurred())
		f.ExpectGone(second)
		Expect(marker).To(BeARegularFile(), "it is another's")
	})

	It("is refused if it is something else, and is left alone", func() {
		Expect(os.Rename(file(), file()+".aside")).To(Succeed())
		Expect(os.Symlink(file()+".aside", file())).To(Succeed())
		f.ExpectWaiting(s, v1alpha1.ReasonStorageUnavailable, "too many levels of symbolic links", content(s))
		Expect(os.Readlink(file())).To(Equal(file() + ".aside"))
	})

	It("is removed with the RepositoryStorage, so that another one can have the directory", func() {
		f.Delete(s)
		_, err := f.ReconcileOnce(s)
		Expect(err).NotTo(HaveOccurred())
		f.ExpectGone(s)
		Expect(os.ReadDir(s.Spec.Path)).To(BeEmpty())
	})
})

var _ = Describe("A repository that is gone", func() {
	It("is noticed by the next check of its shard, and so is its return", func() {
		f.Run()
		s := f.NewStorage("ssd")
		acme := forge.Group("acme").In(f.NewNamespace()).Build()
		web := forge.Project("web").In(acme).Build()
		f.Create(acme, web)
		f.ExpectReady(web)
		// check checks the shard as its next turn does.
		check := func() {
			GinkgoHelper()
			f.Clock.SetTime(f.Clock.Now().Add(time.Minute))
			look(s)
		}
		directory := filepath.Join(s.Spec.Path, repository.Path(web))
		Expect(os.Rename(directory, directory+".aside")).To(Succeed())
		check()
		f.ExpectFailing(web, v1alpha1.ReasonStorageUnavailable, "the repository is no longer on storage ssd", repository.Path(web))
		Expect(os.Rename(directory+".aside", directory)).To(Succeed())
		check()
		f.ExpectReady(s, web)

		By("a shard that was not ready before and is not ready afterwards")
		marker := filepath.Join(s.Spec.Path, ".forgeplane-storage")
		Expect(os.Rename(marker, marker+".aside")).To(Succeed())
		check()
		f.ExpectWaiting(s, v1alpha1.ReasonStorageUnavailable)
		f.ExpectReady(web)
		Expect(os.Rename(directory, directory+".aside")).To(Succeed())
		check()
		f.ExpectWaiting(web, v1alpha1.ReasonStorageUnavailable, "storage ssd is not mounted")
		Expect(os.Rename(directory+".aside", directory)).To(Succeed())
		check()
		f.ExpectReady(web)
	})
})
