package repositorystorage_test

import (
	"os"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/test/forge"
)

var _ = Describe("A repository storage", func() {
	It("becomes ready with a writable directory, and shows how full it is", func() {
		s := forge.RepositoryStorage("ssd").At(f.NewDirectory("ssd")).Build()
		f.Create(s)
		result, err := f.Reconcile(s)
		Expect(err).NotTo(HaveOccurred())
		Expect(result.RequeueAfter).To(BeNumerically("~", 21*time.Second, time.Second), "nothing tells of a volume that is full or gone")
		f.ExpectReady(s)
		Expect(s.Spec.Weight).To(HaveValue(BeEquivalentTo(100)))
		Expect(s.Status.CapacityBytes).To(BeEquivalentTo(100 << 30))
		Expect(s.Status.AvailableBytes).To(BeEquivalentTo(42<<30), "rounded to a hundredth")
		Expect(s.Status.Repositories).To(BeZero())
		Expect(os.ReadDir(s.Spec.Path)).To(ConsistOf(HaveField("Name()", ".forgeplane-storage")), "nothing is left of the attempt to write")
	})

	It("is ready with the weight 0, and accepts no new projects", func() {
		s := forge.RepositoryStorage("full").At(f.NewDirectory("full")).Weight(0).Build()
		f.Create(s)
		f.ExpectReady(s)
		acme := forge.Group("acme").In(f.NewNamespace()).Build()
		web := forge.Project("web").In(acme).Build()
		f.Create(acme, web)
		f.ExpectReady(acme)
		f.ExpectWaiting(web, v1alpha1.ReasonStorageUnavailable, "no RepositoryStorage")
	})

	It("accepts new projects only while it is ready", func() {
		f.Run()
		s := f.NewStorage("ssd")
		away := s.Spec.Path + ".away"
		Expect(os.Rename(s.Spec.Path, away)).To(Succeed())
		look(s)
		f.ExpectWaiting(s, v1alpha1.ReasonStorageUnavailable)
		acme := forge.Group("acme").In(f.NewNamespace()).Build()
		web := forge.Project("web").In(acme).Build()
		f.Create(acme, web)
		f.ExpectWaiting(web, v1alpha1.ReasonStorageUnavailable, "no RepositoryStorage with a weight above 0 is ready")
		Expect(web.Status.Storage).To(BeEmpty())
		Expect(os.Rename(away, s.Spec.Path)).To(Succeed())
		look(s)
		f.ExpectReady(s, web)
		Expect(web.Status.Storage).To(Equal("ssd"))
		f.Eventually(s).Should(HaveField("Status.Repositories", BeEquivalentTo(1)))
	})

	It("waits for its volume, and is ready when that is mounted", func() {
		path := f.NewDirectory("volume")
		Expect(os.Remove(path)).To(Succeed())
		s := forge.RepositoryStorage("late").At(path).Build()
		f.Create(s)
		f.ExpectWaiting(s, v1alpha1.ReasonStorageUnavailable, path, "check that the volume is mounted")
		Expect(os.WriteFile(path, nil, 0o600)).To(Succeed())
		f.ExpectWaiting(s, v1alpha1.ReasonStorageUnavailable, "not a directory")
		result, _ := f.Reconcile(s)
		Expect(result.RequeueAfter).To(Equal(20*time.Second), "nothing tells that a volume is mounted")
		Expect(os.Remove(path)).To(Succeed())
		Expect(os.Mkdir(path, 0o755)).To(Succeed())
		f.ExpectReady(s)
		Expect(os.RemoveAll(path)).To(Succeed())
		f.ExpectWaiting(s, v1alpha1.ReasonStorageUnavailable)
		Expect(f.Events()).To(ConsistOf(
			HavePrefix("Warning StorageUnavailable late"), HavePrefix("Normal Ready late"), HavePrefix("Warning StorageUnavailable late")))
	})

	It("waits while its volume is not writable, and is ready when it is", func() {
		path := f.NewDirectory("volume")
		Expect(os.Remove(path)).To(Succeed())
		// No user can create a file there, not even root.
		Expect(os.Symlink("/proc", path)).To(Succeed())
		s := forge.RepositoryStorage("stuck").At(path).Build()
		f.Create(s)
		f.ExpectWaiting(s, v1alpha1.ReasonStorageUnavailable, path+" cannot be written to: ")
		Expect(os.Remove(path)).To(Succeed())
		Expect(os.Mkdir(path, 0o755)).To(Succeed())
		f.ExpectReady(s)
	})

	It("counts its repositories while projects come and go", func() {
		s := f.NewStorage("ssd")
		f.Run()
		acme := forge.Group("acme").In(f.NewNamespace()).Build()
		web, api := forge.Project("web").In(acme).Build(), forge.Project("api").In(acme).Build()
		f.Create(acme, web, api)
		f.ExpectReady(web, api)
		f.Eventually(s).Should(HaveField("Status.Repositories", BeEquivalentTo(2)))
		f.Delete(web)
		f.Eventually(s).Should(HaveField("Status.Repositories", BeEquivalentTo(1)))
		f.ExpectRestartWritesNothing()
	})

	DescribeTable("is refused by the API server",
		func(change func(*v1alpha1.RepositoryStorageSpec), words ...string) {
			s := forge.RepositoryStorage("ssd").At("/srv/git").Build()
			change(&s.Spec)
			f.ExpectRefused(s, words...)
		},
		Entry("without a path", func(s *v1alpha1.RepositoryStorageSpec) { s.Path = "" }, "spec.path"),
		Entry("with a relative path", func(s *v1alpha1.RepositoryStorageSpec) { s.Path = "srv/git" }, "spec.path"),
		Entry("with the root directory", func(s *v1alpha1.RepositoryStorageSpec) { s.Path = "/" }, "spec.path"),
		Entry("with a trailing slash", func(s *v1alpha1.RepositoryStorageSpec) { s.Path = "/srv/git/" }, "spec.path"),
		Entry("with .. in the path", func(s *v1alpha1.RepositoryStorageSpec) { s.Path = "/srv/../etc" }, "must not contain . or .. as a segment"),
		Entry("with . in the path", func(s *v1alpha1.RepositoryStorageSpec) { s.Path = "/srv/./git" }, "must not contain . or .. as a segment"),
		Entry("with a path that is too long", func(s *v1alpha1.RepositoryStorageSpec) { s.Path = "/" + strings.Repeat("a", 1024) }, "spec.path"),
		Entry("with a negative weight", func(s *v1alpha1.RepositoryStorageSpec) { s.Weight = ptr.To(int32(-1)) }, "spec.weight"),
		Entry("with a weight above 100", func(s *v1alpha1.RepositoryStorageSpec) { s.Weight = ptr.To(int32(101)) }, "spec.weight"),
	)

	It("cannot change its path", func() {
		s := f.NewStorage("ssd")
		f.ExpectChangeRefused(s, func() { s.Spec.Path = "/srv/elsewhere" }, "path cannot change")
	})
})

// look reconciles a shard immediately.
func look(s *v1alpha1.RepositoryStorage) {
	GinkgoHelper()
	f.Change(s, func() {
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, "example.com/looked", s.Annotations["example.com/looked"]+"x")
	})
}
