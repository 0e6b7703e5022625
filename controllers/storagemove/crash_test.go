package storagemove_test

import (
	"os"
	"path/filepath"
	"strconv"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/controllers/storagemove"
	"github.com/forgeplane/forgeplane/test/forge"
)

// The specs set the state in which a killed process has left the objects and the shards. Kills at each point of the copying itself are in the
// tests of internal/git/relocate.
var _ = Describe("A storage move whose process was killed", func() {
	var m *v1alpha1.StorageMove
	var head string
	BeforeEach(func() {
		limits := storagemove.DefaultLimits()
		limits.Settle, limits.Drain = 0, 5*time.Second
		install(forge.Options{Moves: limits})
		head = branch(on(source))
		m = forge.StorageMove("off").Of(website).To(target.Name).ID(4711).Build()
		f.Create(m)
	})

	// hold makes the move the one of its project, at an attempt.
	hold := func(attempt int64) {
		GinkgoHelper()
		f.Refresh(website)
		website.Status.Move = &v1alpha1.ProjectMove{
			Name: m.Name, UID: string(m.UID), Attempt: attempt, Source: source.Name, Destination: target.Name,
		}
		Expect(f.Live().Status().Update(GinkgoT().Context(), website)).To(Succeed())
	}
	// started puts the move into the state started.
	started := func() {
		GinkgoHelper()
		m.Status = v1alpha1.StorageMoveStatus{
			CommonStatus: v1alpha1.CommonStatus{ObservedGeneration: 1, Conditions: []metav1.Condition{
				condition(v1alpha1.ConditionReady, metav1.ConditionFalse), condition(v1alpha1.ConditionReconciling, metav1.ConditionTrue),
			}}, ID: 4711, State: v1alpha1.StorageMoveStarted, Source: source.Name, Destination: target.Name,
			ProjectName: website.Name, ProjectID: website.Status.ID, RepositoryPath: website.Status.RepositoryPath,
			TargetStatus: v1alpha1.TargetStatus{TargetPath: "acme/website", TargetRef: &v1alpha1.Reference{Name: website.Name, UID: string(website.UID)}},
		}
		Expect(f.Live().Status().Update(GinkgoT().Context(), m)).To(Succeed())
	}
	// placed makes a copy at the destination, as an attempt does.
	placed := func() {
		GinkgoHelper()
		Expect(f.Repositories.OwnAlso(GinkgoT().Context(), f.Live(), website, target.Name)).To(Succeed())
		Expect(os.MkdirAll(filepath.Dir(on(target)), 0o755)).To(Succeed())
		worker.Git(GinkgoTB(), "clone", "--quiet", "--mirror", on(source), on(target))
	}
	retired := func(s *v1alpha1.RepositoryStorage, attempt string) {
		GinkgoHelper()
		Expect(os.Symlink(string(m.UID)+"-"+attempt, filepath.Join(on(s), "forgeplane-retired"))).To(Succeed())
	}

	// interrupted sets what an attempt leaves that was killed before the switch.
	interrupted := func(attempt int64) {
		GinkgoHelper()
		hold(attempt)
		started()
		placed()
		retired(source, strconv.FormatInt(attempt, 10))
	}

	It("before its state was written goes on", func() {
		hold(0)
		f.Run()
		moves(m, v1alpha1.StorageMoveFinished)
		expectOnly(target, source, head)
	})

	It("before the switch begins another attempt", func() {
		interrupted(1)
		f.Run()
		moves(m, v1alpha1.StorageMoveFinished)
		Expect(m.Status.Attempt).To(BeEquivalentTo(2))
		expectOnly(target, source, head)
	})

	It("after the switch only removes the former copy", func() {
		started()
		placed()
		retired(source, "3")
		f.Refresh(website)
		website.Status.Storage = target.Name
		website.Status.LastMove = &v1alpha1.ProjectMove{Name: m.Name, UID: string(m.UID), Attempt: 3, Source: source.Name, Destination: target.Name}
		Expect(f.Live().Status().Update(GinkgoT().Context(), website)).To(Succeed())
		before := inode(on(target))
		f.Run()
		moves(m, v1alpha1.StorageMoveFinished)
		Expect(m.Status.Attempt).To(BeEquivalentTo(3))
		Expect(inode(on(target))).To(Equal(before))
		expectOnly(target, source, head)
	})

	It("too often fails, and the project takes writes", func() {
		interrupted(10)
		f.Run()
		f.ExpectStalled(m, v1alpha1.ReasonMoveFailed, "interrupted 10 times")
		expectOnly(source, target, head)
	})

	It("leaves a writable project even if the destination is lost", func() {
		interrupted(1)
		Expect(os.RemoveAll(target.Spec.Path)).To(Succeed())
		f.Run()
		f.ExpectStalled(m, v1alpha1.ReasonMoveFailed)
		f.Refresh(website)
		Expect(website.Status.Move).To(BeNil())
		Eventually(func() bool { return repositoryOf().Closed() }).Should(BeFalse())
		Expect(branch(on(source))).To(Equal(head))
	})

	It("leaves a writable project even if its object is gone without its finalizer", func() {
		hold(1)
		placed()
		retired(source, "1")
		f.Change(m, func() { m.Finalizers = nil })
		f.Delete(m)
		f.ExpectGone(m)
		f.Run()
		f.Eventually(website).Should(HaveField("Status.Move", BeNil()))
		Eventually(func() bool { return repositoryOf().Closed() }).Should(BeFalse())

		By("moving it again")
		again := forge.StorageMove("again").Of(website).To(target.Name).Build()
		f.Create(again)
		moves(again, v1alpha1.StorageMoveFinished)
		expectOnly(target, source, head)
	})

	DescribeTable("ends even if it was changed to lead to another project", func(set func()) {
		shop := forge.Project("shop").In(acme).Build()
		f.Create(shop)
		f.ExpectReady(shop)
		set()
		f.Change(m, func() { m.Spec.ProjectRef = v1alpha1.Reference{Name: shop.Name} })
		f.Run()
		moves(m, v1alpha1.StorageMoveFinished)
		Expect(branch(on(target))).To(Equal(head))
		Expect(on(source)).NotTo(BeADirectory())
		Expect(website.Status.Move).To(BeNil())
		f.ExpectStalled(m, v1alpha1.ReasonInvalid, "projectRef was changed and does not lead to the Project acme/website any more")
		f.Refresh(shop)
		Expect(shop.Status.Storage).To(Equal(source.Name))
	},
		Entry("while it copied", func() { interrupted(1) }),
		Entry("before its state was written", func() {
			started()
			m.Status.State = v1alpha1.StorageMoveInitial
			Expect(f.Live().Status().Update(GinkgoT().Context(), m)).To(Succeed())
			hold(0)
		}),
	)

	It("does not hinder the deletion of the project", func() {
		interrupted(1)
		f.Change(website, func() { website.Spec.DeletionPolicy = v1alpha1.DeletionPolicyDelete })
		f.Delete(website)
		f.Run()
		f.ExpectGone(website)
		moves(m, v1alpha1.StorageMoveFailed)
		Expect(left(source)).To(BeEmpty())
		Expect(left(target)).To(BeEmpty())
	})

	It("keeps one copy of a project that is gone without its finalizer", func() {
		interrupted(1)
		f.Change(website, func() { website.Finalizers = nil })
		f.Delete(website)
		f.Run()
		moves(m, v1alpha1.StorageMoveFinished)
		Expect(left(source)).To(BeEmpty())
		Expect(branch(filepath.Join(target.Spec.Path, m.Status.RepositoryPath))).To(Equal(head))
		Expect(f.Repositories.OwnsOf(GinkgoT().Context(), m, target.Name)).To(BeTrue(), "the shard knows whose it is, and retains it")
	})

	It("fails if the repository is lost, and switches nothing", func() {
		Expect(os.Rename(on(source), on(source)+"-lost")).To(Succeed())
		f.Run()
		f.ExpectStalled(m, v1alpha1.ReasonMoveFailed, "does not exist")
		f.Refresh(website)
		Expect(website.Status.Storage).To(Equal(source.Name))
	})

	It("removes no copy that a later project brought back", func() {
		By("leaving a former copy that somebody reads")
		_, end, err := repositoryOf().BeginRead(GinkgoT().Context())
		Expect(err).NotTo(HaveOccurred())
		f.Run()
		moves(m, v1alpha1.StorageMoveReplicated)
		back := forge.StorageMove("back").Of(website).To(source.Name).Build()
		f.Create(back)
		f.ExpectWaiting(back, v1alpha1.ReasonProgressing, "StorageMove off of the same project has not ended")
		end()
		moves(m, v1alpha1.StorageMoveFinished)
		moves(back, v1alpha1.StorageMoveFinished)
		expectOnly(source, target, head)
	})
})

var _ = Describe("A storage move that is deleted while its former copy cannot be removed", func() {
	It("says so, and does not write in a loop", func() {
		limits := storagemove.DefaultLimits()
		limits.Settle, limits.Removal = 0, 50*time.Millisecond
		registry := prometheus.NewRegistry()
		install(forge.Options{Moves: limits, Metrics: registry})
		_, end, err := repositoryOf().BeginRead(GinkgoT().Context())
		Expect(err).NotTo(HaveOccurred())
		defer end()
		running := f.Run()
		m := forge.StorageMove("off").Of(website).To(target.Name).Build()
		f.Create(m)
		moves(m, v1alpha1.StorageMoveCleanupFailed)
		f.Delete(m)
		f.ExpectWaiting(m, v1alpha1.ReasonDeleting, "the former copy on storage old could not be removed", storagemove.Finalizer)
		version := m.ResourceVersion
		Consistently(func() string { f.Refresh(m); return m.ResourceVersion }).WithTimeout(3 * time.Second).Should(Equal(version))

		By("trying again")
		f.Clock.SetTime(f.Clock.Now().Add(time.Minute))
		f.Change(m, func() { metav1.SetMetaDataAnnotation(&m.ObjectMeta, "test/wake", "1") })
		f.Eventually(m).Should(HaveField("Status.FinishedAt.Time", BeTemporally("==", f.Clock.Now())))
		Expect(metrics(registry)).To(HaveKeyWithValue("forgeplane_storage_moves_total cleanup_failed", 1.0), "it has ended once")
		running.Stop()
	})
})
