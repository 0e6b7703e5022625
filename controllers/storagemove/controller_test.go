package storagemove_test

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/controllers/storagemove"
	"github.com/forgeplane/forgeplane/test/forge"
)

// moves expects that a move reaches a state.
func moves(m *v1alpha1.StorageMove, state v1alpha1.StorageMoveState) {
	GinkgoHelper()
	f.Eventually(m).Should(HaveField("Status.State", state), "the last error: %s", m.Status.LastError)
}

var _ = Describe("A storage move", func() {
	BeforeEach(func() { install(forge.Options{}) })

	forge.DescribeIDs(func() *forge.Forge { return f }, func(name string) v1alpha1.Identified {
		return forge.StorageMove(name).Of(website).To(source.Name).Build()
	})

	It("moves a project to another shard, and removes the former copy", func() {
		f.Run()
		head := branch(on(source))
		m := forge.StorageMove("off").Of(website).To(target.Name).Build()
		f.Create(m)
		f.ExpectReady(m)
		Expect(m.Status.State).To(Equal(v1alpha1.StorageMoveFinished))
		Expect(m.Status.Source).To(Equal(source.Name))
		Expect(m.Status.Destination).To(Equal(target.Name))
		Expect(m.Status.TargetPath).To(Equal("acme/website"))
		Expect(m.Status.Attempt).To(BeEquivalentTo(1))
		Expect(m.Status.StartedAt).NotTo(BeNil())
		Expect(m.Status.FinishedAt).NotTo(BeNil())
		expectOnly(target, source, head)
		declared := website.DeepCopy()
		f.ExpectReady(website)
		Expect(website.Spec).To(Equal(declared.Spec), "a move changes no declaration")
		Expect(website.Generation).To(Equal(declared.Generation))

		By("being pushed to at once")
		head = commit("second")
		push()
		Expect(branch(on(target))).To(Equal(head))
	})

	It("says in events how far it is", func() {
		f.Run()
		m := forge.StorageMove("off").Of(website).To(target.Name).Build()
		f.Create(m)
		moves(m, v1alpha1.StorageMoveFinished)
		all := &unstructured.UnstructuredList{}
		all.SetAPIVersion("events.k8s.io/v1")
		all.SetKind("EventList")
		Eventually(func() (notes []string) {
			Expect(f.Live().List(GinkgoT().Context(), all, client.InNamespace(m.Namespace))).To(Succeed())
			for _, e := range all.Items {
				if of, _, _ := unstructured.NestedString(e.Object, "regarding", "uid"); of == string(m.UID) {
					notes = append(notes, fmt.Sprintf("%s: %s", e.Object["reason"], e.Object["note"]))
				}
			}
			return notes
		}).Should(ContainElement("Replicated: the project uses storage " + target.Name))
	})

	It("moves a project that is renamed meanwhile", func() {
		f.Run()
		head := branch(on(source))
		m := forge.StorageMove("off").Of(website).To(target.Name).Build()
		f.Create(m)
		f.Change(website, func() { website.Spec.Path = "renamed" })
		moves(m, v1alpha1.StorageMoveFinished)
		expectOnly(target, source, head)
		f.ExpectReady(website)
		Expect(website.Status.FullPath).To(Equal("acme/renamed"))
		head = commit("second")
		push()
		Expect(branch(on(target))).To(Equal(head))
	})

	It("moves a project back", func() {
		f.Run()
		head := branch(on(source))
		for i, s := range []*v1alpha1.RepositoryStorage{target, source, target} {
			m := forge.StorageMove("m" + string(rune('0'+i))).Of(website).To(s.Name).Build()
			f.Create(m)
			moves(m, v1alpha1.StorageMoveFinished)
		}
		expectOnly(target, source, head)
	})

	It("moves the wiki and the designs too", func() {
		f.Run()
		for _, name := range []string{".wiki.git", ".design.git"} {
			worker.Git(GinkgoTB(), "clone", "--quiet", "--bare", on(source), beside(source, name))
		}
		m := forge.StorageMove("off").Of(website).To(target.Name).Build()
		f.Create(m)
		moves(m, v1alpha1.StorageMoveFinished)
		Expect(left(source)).To(BeEmpty())
		for _, name := range []string{".wiki.git", ".design.git"} {
			Expect(branch(beside(target, name))).To(Equal(worker.Git(GinkgoTB(), "rev-parse", "HEAD")))
		}
	})

	It("chooses another shard by weight", func() {
		next := f.NewStorage("next")
		f.Run()
		m := forge.StorageMove("off").Of(website).Build()
		f.Create(m)
		moves(m, v1alpha1.StorageMoveFinished)
		Expect(m.Status.Destination).To(Equal(next.Name))
	})

	It("leads to a shard that admits the namespace of the project", func() {
		f.Run()
		closed := forge.RepositoryStorage("closed").At(f.NewDirectory("closed")).Admitting(v1alpha1.NamespacesFromSame).Build()
		f.Create(closed)
		f.ExpectReady(closed)
		byWeight, named := forge.StorageMove("off").Of(website).Build(), forge.StorageMove("named").Of(website).To(closed.Name).Build()
		f.Create(byWeight, named)
		f.ExpectWaiting(byWeight, v1alpha1.ReasonStorageUnavailable, "is ready and admits the namespace")
		f.ExpectWaiting(named, v1alpha1.ReasonReferenceNotAllowed, "destination: RepositoryStorage closed does not admit the namespace")
		f.Delete(byWeight)
		f.Change(closed, func() { closed.Spec.AllowedNamespaces = nil })
		moves(named, v1alpha1.StorageMoveFinished)
		Expect(named.Status.Destination).To(Equal(closed.Name))
	})

	It("waits for a shard", func() {
		f.Run()
		m := forge.StorageMove("off").Of(website).Build()
		f.Create(m)
		f.ExpectWaiting(m, v1alpha1.ReasonStorageUnavailable, "no other RepositoryStorage with a weight above 0 is ready")
		Expect(m.Status.State).To(Equal(v1alpha1.StorageMoveInitial))
		f.NewStorage("next")
		moves(m, v1alpha1.StorageMoveFinished)
		Expect(m.Status.Destination).To(Equal("next"))
	})

	It("to the same shard finishes without copying or removing anything", func() {
		f.Run()
		head, before := branch(on(source)), inode(on(source))
		m := forge.StorageMove("same").Of(website).To(source.Name).Build()
		f.Create(m)
		moves(m, v1alpha1.StorageMoveFinished)
		Expect(inode(on(source))).To(Equal(before))
		expectOnly(source, target, head)
	})

	It("waits for a project that appears later, and for its repository", func() {
		f.Run()
		shop := forge.Project("shop").In(acme).On(source.Name).Build()
		m := forge.StorageMove("off").Of(shop).To(target.Name).Build()
		f.Create(m)
		f.ExpectWaiting(m, v1alpha1.ReasonReferenceNotFound, "projectRef")
		shop.Spec.Storage = ""
		f.Create(shop)
		moves(m, v1alpha1.StorageMoveFinished)
	})

	It("moves a project whose group is missing", func() {
		f.Run()
		head := branch(on(source))
		f.Change(website, func() { website.Spec.GroupRef = v1alpha1.Reference{Name: "missing"} })
		f.ExpectWaiting(website, v1alpha1.ReasonReferenceNotFound, "groupRef")
		m := forge.StorageMove("off").Of(website).To(target.Name).Build()
		f.Create(m)
		moves(m, v1alpha1.StorageMoveFinished)
		expectOnly(target, source, head)
	})

	It("waits for its destination", func() {
		f.Run()
		m := forge.StorageMove("off").Of(website).To("missing").Build()
		f.Create(m)
		f.ExpectWaiting(m, v1alpha1.ReasonReferenceNotFound, "destination")
		f.NewStorage("missing")
		moves(m, v1alpha1.StorageMoveFinished)
	})

	It("follows another move of the project", func() {
		f.Run()
		first := forge.StorageMove("first").Of(website).To(target.Name).Build()
		second := forge.StorageMove("second").Of(website).To(source.Name).Build()
		f.Create(first, second)
		moves(first, v1alpha1.StorageMoveFinished)
		moves(second, v1alpha1.StorageMoveFinished)
		f.Refresh(website)
		Expect(website.Status.Move).To(BeNil())
		branch(repositoryOf().Dir())
	})

	It("fails, and changes nothing, if the source is damaged", func() {
		f.Run()
		damage(on(source))
		before := files(on(source))
		m := forge.StorageMove("off").Of(website).To(target.Name).Build()
		f.Create(m)
		f.ExpectStalled(m, v1alpha1.ReasonMoveFailed)
		Expect(m.Status.State).To(Equal(v1alpha1.StorageMoveFailed))
		Expect(m.Status.LastError).NotTo(BeEmpty())
		Expect(files(on(source))).To(Equal(before))
		Expect(left(target)).To(BeEmpty())
		f.Refresh(website)
		Expect(website.Status.Storage).To(Equal(source.Name))
		Expect(website.Status.Move).To(BeNil())
		Expect(repositoryOf().Closed()).To(BeFalse())
	})

	It("fails if the destination has the repository of another project at the path", func() {
		f.Run()
		head := branch(on(source))
		Expect(os.MkdirAll(filepath.Dir(on(target)), 0o755)).To(Succeed())
		worker.Git(GinkgoTB(), "clone", "--quiet", "--bare", on(source), on(target))
		m := forge.StorageMove("off").Of(website).To(target.Name).Build()
		f.Create(m)
		f.ExpectStalled(m, v1alpha1.ReasonMoveFailed, "another project")
		Expect(branch(on(target))).To(Equal(head), "it is not touched")
		f.Refresh(website)
		Expect(website.Status.Storage).To(Equal(source.Name))
	})

	It("is deleted when its time is over, unless it is declared", func() {
		f.Run()
		m := forge.StorageMove("off").Of(website).To(target.Name).For(time.Hour).Build()
		f.CreateOverREST(m)
		moves(m, v1alpha1.StorageMoveFinished)
		declared := forge.StorageMove("declared").Of(website).To(target.Name).For(time.Hour).Build()
		f.Create(declared)
		moves(declared, v1alpha1.StorageMoveFinished)
		f.Clock.SetTime(f.Clock.Now().Add(2 * time.Hour))
		for _, m := range []*v1alpha1.StorageMove{declared, m} {
			woken := m.DeepCopy()
			metav1.SetMetaDataAnnotation(&woken.ObjectMeta, "test/wake", "1")
			// Something else may have woken the controller already.
			Expect(client.IgnoreNotFound(f.Live().Patch(GinkgoT().Context(), woken, client.MergeFrom(m)))).To(Succeed())
		}
		f.ExpectGone(m)
		Expect(website.Status.Storage).NotTo(BeEmpty())
		f.ExpectRestartWritesNothing()
		f.ExpectReady(declared)
	})

	It("that has ended writes nothing more, also after a restart", func() {
		running := f.Run()
		m := forge.StorageMove("off").Of(website).To(target.Name).Build()
		f.Create(m)
		moves(m, v1alpha1.StorageMoveFinished)
		running.ExpectIdle()
		running.Stop()
		f.ExpectRestartWritesNothing()
	})

	It("can be deleted at any time, and leaves one copy", func() {
		f.Run()
		head := branch(on(source))
		for range 10 {
			m := forge.StorageMove("off").Of(website).To(target.Name).Build()
			f.Create(m)
			f.Delete(m)
			f.ExpectGone(m)
			f.Refresh(website)
			Expect(website.Status.Move).To(BeNil())
			here, other := source, target
			if website.Status.Storage == target.Name {
				here, other = target, source
			}
			expectOnly(here, other, head)
		}
	})

	It("fails if the project is deleted, and leaves nothing at the destination", func() {
		f.Run()
		website.Spec.DeletionPolicy = v1alpha1.DeletionPolicyDelete
		f.Change(website, func() { website.Spec.DeletionPolicy = v1alpha1.DeletionPolicyDelete })
		m := forge.StorageMove("off").Of(website).To(target.Name).Build()
		f.Create(m)
		f.Delete(website)
		f.ExpectGone(website)
		Expect(left(source)).To(BeEmpty())
		f.Eventually(m).Should(HaveField("Status.State", Not(BeElementOf(v1alpha1.StorageMoveScheduled, v1alpha1.StorageMoveStarted))))
		Eventually(func() []string { return left(target) }).Should(BeEmpty())
	})

	It("fails if the project is deleted while it waits", func() {
		f.Run()
		m := forge.StorageMove("off").Of(website).To("missing").Build()
		f.Create(m)
		f.ExpectWaiting(m, v1alpha1.ReasonReferenceNotFound, "destination")
		f.Delete(website)
		f.ExpectStalled(m, v1alpha1.ReasonMoveFailed, "the project was deleted before it was moved")
		Expect(m.Status.State).To(Equal(v1alpha1.StorageMoveFailed))
	})

	It("does not begin while it is suspended, and goes on if it is suspended later", func() {
		f.Run()
		head := branch(on(source))
		m := forge.StorageMove("off").Of(website).To(target.Name).Build()
		m.Spec.Suspend = true
		f.Create(m)
		f.ExpectSettled(m, v1alpha1.ReasonSuspended, "nothing is moved: spec.suspend is true")
		Expect(m.Status.State).To(Equal(v1alpha1.StorageMoveInitial))
		expectOnly(source, target, head)

		By("letting another move of the project through")
		other := forge.StorageMove("other").Of(website).To(target.Name).Build()
		f.Create(other)
		moves(other, v1alpha1.StorageMoveFinished)
		f.ExpectSettled(m, v1alpha1.ReasonSuspended)

		By("being resumed, and suspended at once")
		back := forge.StorageMove("back").Of(website).To(source.Name).Build()
		back.Spec.Suspend = true
		f.Create(back)
		f.Change(back, func() { back.Spec.Suspend = false })
		f.Eventually(back).ShouldNot(HaveField("Status.State", v1alpha1.StorageMoveInitial))
		f.Change(back, func() { back.Spec.Suspend = true })
		moves(back, v1alpha1.StorageMoveFinished)
		expectOnly(source, target, head)
	})

	It("fails if the project is deleted while it is suspended", func() {
		f.Run()
		m := forge.StorageMove("off").Of(website).To(target.Name).Build()
		m.Spec.Suspend = true
		f.Create(m)
		f.ExpectSettled(m, v1alpha1.ReasonSuspended)
		f.Delete(website)
		f.ExpectStalled(m, v1alpha1.ReasonMoveFailed, "the project was deleted before it was moved")
	})

	It("cannot change what it declares", func() {
		m := forge.StorageMove("off").Of(website).To(target.Name).Build()
		f.Create(m)
		f.ExpectChangeRefused(m, func() { m.Spec.Destination = source.Name }, "destination cannot change")
		f.ExpectChangeRefused(m, func() { m.Spec.Destination = "" }, "destination cannot change")
		f.ExpectRefused(forge.StorageMove("never").Of(website).For(-time.Second).Build(), "ttlAfterFinished must be a duration")
	})
})

var _ = Describe("The metrics of storage moves", func() {
	It("count the moves, and what they copy", func() {
		registry := prometheus.NewRegistry()
		install(forge.Options{Metrics: registry})
		f.Run()
		m := forge.StorageMove("off").Of(website).To(target.Name).Build()
		f.Create(m)
		moves(m, v1alpha1.StorageMoveFinished)
		Expect(m.Status.CopiedBytes).To(BeNumerically(">", 0))
		Expect(m.Status.CopiedBytes).To(Equal(m.Status.TotalBytes))
		Expect(m.Status.CopiedObjects).To(BeEquivalentTo(3), "a commit, a tree and a file")
		Expect(metrics(registry)).To(And(
			HaveKeyWithValue("forgeplane_storage_moves_total finished", 1.0),
			HaveKeyWithValue("forgeplane_storage_moves_running copying", 0.0),
			HaveKeyWithValue("forgeplane_storage_moves_running switching", 0.0),
			HaveKeyWithValue("forgeplane_storage_move_copied_bytes_total", float64(m.Status.CopiedBytes)),
			HaveKeyWithValue("forgeplane_storage_move_copied_objects_total", 3.0),
		))
	})
})

var _ = Describe("A storage move that waits only briefly", func() {
	BeforeEach(func() {
		limits := storagemove.DefaultLimits()
		limits.Drain, limits.Settle, limits.Removal = 100*time.Millisecond, 0, 2*time.Second
		install(forge.Options{Moves: limits})
	})

	It("fails if a write takes too long, and the project takes writes again", func() {
		f.Run()
		head := branch(on(source))
		_, end, err := repositoryOf().BeginWrite(GinkgoT().Context())
		Expect(err).NotTo(HaveOccurred())
		defer end()
		m := forge.StorageMove("off").Of(website).To(target.Name).Build()
		f.Create(m)
		moves(m, v1alpha1.StorageMoveFailed)
		expectOnly(source, target, head)
	})

	It("keeps no worker while a long write delays that it is undone", func() {
		_, end, err := repositoryOf().BeginWrite(GinkgoT().Context())
		Expect(err).NotTo(HaveOccurred())
		defer end()
		Expect(os.Symlink("earlier", filepath.Join(on(source), "forgeplane-retired"))).To(Succeed())
		m := forge.StorageMove("off").Of(website).To(target.Name).Build()
		f.Create(m)
		f.Refresh(website)
		website.Status.Move = &v1alpha1.ProjectMove{Name: m.Name, UID: string(m.UID), Attempt: 10, Source: source.Name, Destination: target.Name}
		Expect(f.Live().Status().Update(GinkgoT().Context(), website)).To(Succeed())
		for range 2 {
			_, err = f.ReconcileOnce(m)
			Expect(err).NotTo(HaveOccurred())
		}
		Expect(meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionReady).Message).To(ContainSubstring("has not ended yet"))
	})

	It("does not take an empty mount point of the source for the end of the former copy", func() {
		f.Run()
		config, err := os.Open(filepath.Join(on(source), "config"))
		Expect(err).NotTo(HaveOccurred())
		Expect(syscall.Flock(int(config.Fd()), syscall.LOCK_SH)).To(Succeed())
		m := forge.StorageMove("off").Of(website).To(target.Name).Build()
		f.Create(m)
		moves(m, v1alpha1.StorageMoveCleanupFailed)
		Expect(config.Close()).To(Succeed())

		By("unmounting it")
		away := source.Spec.Path + ".away"
		Expect(os.Rename(source.Spec.Path, away)).To(Succeed())
		Expect(os.Mkdir(source.Spec.Path, 0o700)).To(Succeed())
		f.Change(m, func() { metav1.SetMetaDataAnnotation(&m.ObjectMeta, v1alpha1.AnnotationRetry, "1") })
		f.ExpectStalled(m, v1alpha1.ReasonCleanupFailed, "the volume of storage old is not available: mount it at "+source.Spec.Path)

		By("mounting it again")
		Expect(os.RemoveAll(source.Spec.Path)).To(Succeed())
		Expect(os.Rename(away, source.Spec.Path)).To(Succeed())
		f.Change(m, func() { metav1.SetMetaDataAnnotation(&m.ObjectMeta, v1alpha1.AnnotationRetry, "2") })
		moves(m, v1alpha1.StorageMoveFinished)
		Expect(left(source)).To(BeEmpty())
	})

	It("keeps the former copy while a read is running, says so, and removes it on request", func() {
		f.Run()
		head := branch(on(source))
		config, err := os.Open(filepath.Join(on(source), "config"))
		Expect(err).NotTo(HaveOccurred())
		Expect(syscall.Flock(int(config.Fd()), syscall.LOCK_SH)).To(Succeed())
		m := forge.StorageMove("off").Of(website).To(target.Name).For(0).Build()
		f.CreateOverREST(m)
		f.ExpectStalled(m, v1alpha1.ReasonCleanupFailed, "its former copy on storage old could not be removed", v1alpha1.AnnotationRetry)
		Expect(m.Status.State).To(Equal(v1alpha1.StorageMoveCleanupFailed))
		Expect(branch(on(target))).To(Equal(head))
		Expect(repositoryOf().Closed()).To(BeFalse())
		f.Delete(source)
		f.ExpectWaiting(source, v1alpha1.ReasonDeleting, "StorageMove "+m.Namespace+"/off")

		Expect(config.Close()).To(Succeed())
		f.Change(m, func() { metav1.SetMetaDataAnnotation(&m.ObjectMeta, v1alpha1.AnnotationRetry, "1") })
		f.ExpectGone(m) // its time is over
		Expect(left(source)).To(BeEmpty())
	})
})
