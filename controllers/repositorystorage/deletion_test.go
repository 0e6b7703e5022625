package repositorystorage_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/repository"
	"github.com/forgeplane/forgeplane/test/forge"
)

var _ = Describe("The deletion of a repository storage", func() {
	var s *v1alpha1.RepositoryStorage
	var acme *v1alpha1.Group

	BeforeEach(func() {
		s = f.NewStorage("ssd")
		acme = forge.Group("acme").In(f.NewNamespace()).Build()
		f.Create(acme)
		f.ExpectReady(acme)
	})

	// made returns a project whose repository is on the shard.
	made := func(p *v1alpha1.Project) *v1alpha1.Project {
		GinkgoHelper()
		f.Create(p)
		f.ExpectReady(p)
		return p
	}
	strip := func(o *v1alpha1.Project) {
		GinkgoHelper()
		f.Change(o, func() { o.Finalizers = nil })
	}
	// gone expects that one reconcile lets the shard go.
	gone := func() {
		GinkgoHelper()
		_, err := f.ReconcileOnce(s)
		Expect(err).NotTo(HaveOccurred())
		f.ExpectGone(s)
	}

	It("does not wait if there is no repository, and leaves the content of the volume", func() {
		Expect(os.WriteFile(filepath.Join(s.Spec.Path, "kept"), nil, 0o600)).To(Succeed())
		f.Delete(s)
		gone()
		Expect(filepath.Join(s.Spec.Path, "kept")).To(BeARegularFile())
	})

	It("does not wait if the path was wrong", func() {
		wrong := forge.RepositoryStorage("wrong").At(s.Spec.Path + "-missing").Build()
		f.Create(wrong)
		f.ExpectWaiting(wrong, v1alpha1.ReasonStorageUnavailable)
		f.Delete(wrong)
		_, err := f.ReconcileOnce(wrong)
		Expect(err).NotTo(HaveOccurred())
		f.ExpectGone(wrong)
	})

	It("waits for its projects and names them, while it serves them and takes no others", func() {
		f.Run()
		web, shop := made(forge.Project("web").In(acme).Discarded().Build()), made(forge.Project("shop").In(acme).Discarded().Build())
		f.Delete(s)
		f.ExpectWaiting(s, v1alpha1.ReasonDeleting, "the shard holds the repositories of 2 objects: Project "+acme.Namespace+"/shop, Project "+acme.Namespace+"/web: move or delete")
		late := forge.Project("late").In(acme).Build()
		f.Create(late)
		f.ExpectWaiting(late, v1alpha1.ReasonStorageUnavailable, "no RepositoryStorage")
		chosen := forge.Project("chosen").In(acme).On("ssd").Build()
		f.Create(chosen)
		f.ExpectWaiting(chosen, v1alpha1.ReasonReferenceNotReady, "RepositoryStorage ssd is not ready")
		f.ExpectReady(web, shop)

		f.Delete(web)
		f.ExpectGone(web)
		f.ExpectWaiting(s, v1alpha1.ReasonDeleting, "the repositories of 1 objects: Project "+acme.Namespace+"/shop:")
		f.Delete(shop)
		f.ExpectGone(shop, s)
		f.NewStorage("next")
		f.ExpectReady(late)
	})

	It("names ten of many", func() {
		var names []string
		for i := range 12 {
			p := made(forge.Project(fmt.Sprintf("p%02d", i)).In(acme).Build())
			names = append(names, "Project "+p.Namespace+"/"+p.Name)
		}
		f.Delete(s)
		f.ExpectWaiting(s, v1alpha1.ReasonDeleting, "of 12 objects: "+strings.Join(names[:10], ", ")+", and 2 more: ")
		Expect(s.Status.Repositories).To(BeEquivalentTo(12))
	})

	It("waits for retained repositories, and ends when they are purged", func() {
		f.Run()
		web := made(forge.Project("web").In(acme).Build())
		f.Delete(web)
		f.ExpectGone(web)
		f.Delete(s)
		f.ExpectWaiting(s, v1alpha1.ReasonDeleting, "of 1 objects: RetainedRepository "+acme.Namespace+"-web", "delete the RetainedRepositories")
		var all v1alpha1.RetainedRepositoryList
		Expect(f.Live().List(GinkgoT().Context(), &all)).To(Succeed())
		Expect(all.Items).To(HaveLen(1))
		f.Delete(&all.Items[0])
		f.ExpectGone(s)
	})

	It("waits for repositories that only the shard knows, and makes their objects", func() {
		web := made(forge.Project("web").In(acme).Build())
		strip(web)
		f.Delete(web)
		f.ExpectGone(web)
		f.Delete(s)
		f.Clock.SetTime(f.Clock.Now().Add(time.Minute))
		_, err := f.ReconcileOnce(s)
		Expect(err).NotTo(HaveOccurred())
		f.ExpectWaiting(s, v1alpha1.ReasonDeleting, "of 1 objects: RetainedRepository "+acme.Namespace+"-web")
		var all v1alpha1.RetainedRepositoryList
		Expect(f.Live().List(GinkgoT().Context(), &all)).To(Succeed())
		Expect(all.Items).To(HaveLen(1))

		By("a shard with a record, whose object was lost")
		r := &all.Items[0]
		f.ExpectReady(r)
		f.Change(r, func() { r.Finalizers = nil })
		f.Delete(r)
		f.ExpectGone(r)
		_, err = f.ReconcileOnce(s)
		Expect(err).NotTo(HaveOccurred())
		f.ExpectWaiting(s, v1alpha1.ReasonDeleting, "of 1 objects: RetainedRepository "+acme.Namespace+"-web")
	})

	It("names the copy of a project that uses another shard, and ends when it is removed", func() {
		web := made(forge.Project("web").In(acme).Build())
		next := f.NewStorage("next")
		Expect(f.Repositories.OwnAlso(GinkgoT().Context(), f.Live(), web, next.Name)).To(Succeed())
		left := filepath.Join(next.Spec.Path, repository.Path(web))
		Expect(os.CopyFS(left, os.DirFS(filepath.Join(s.Spec.Path, repository.Path(web))))).To(Succeed())
		f.Delete(next)
		f.ExpectWaiting(next, v1alpha1.ReasonDeleting, "of 1 objects: the copy of Project "+acme.Namespace+"/web in "+repository.Path(web)+": ",
			"remove the copies of projects that use another shard")
		Expect(os.RemoveAll(left)).To(Succeed())
		_, err := f.ReconcileOnce(next)
		Expect(err).NotTo(HaveOccurred())
		f.ExpectGone(next)
	})

	It("ends when an administrator says that the volume is lost, and nothing is lost if it is not", func() {
		web := made(forge.Project("web").In(acme).Build())
		f.Change(s, func() { metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.AnnotationLost, "true") })
		f.Delete(s)
		f.ExpectWaiting(s, v1alpha1.ReasonDeleting, "Project "+acme.Namespace+"/web: move or delete")
		f.Change(s, func() { s.Annotations = nil })
		Expect(os.Rename(s.Spec.Path, s.Spec.Path+".away")).To(Succeed())
		f.ExpectWaiting(s, v1alpha1.ReasonDeleting, "Project "+acme.Namespace+"/web", "mount "+s.Spec.Path,
			"if the volume is lost, run: kubectl annotate repositorystorage ssd forgeplane.dev/lost=true")
		f.Change(s, func() { metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.AnnotationLost, "true") })
		_, err := f.ReconcileOnce(s)
		Expect(err).NotTo(HaveOccurred())
		f.ExpectGone(s)
		f.ExpectWaiting(web, v1alpha1.ReasonReferenceNotFound, "status.storage: RepositoryStorage ssd: not found")
		again := forge.RepositoryStorage("ssd").At(s.Spec.Path).Build()
		Expect(os.Rename(s.Spec.Path+".away", s.Spec.Path)).To(Succeed())
		f.Create(again)
		f.ExpectReady(again, web)
		Expect(again.Status.Repositories).To(BeEquivalentTo(1))
		Expect(filepath.Join(s.Spec.Path, repository.Path(web))).To(BeADirectory())
	})
})
