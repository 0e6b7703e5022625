package storagemove_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/database/databasetest"
	"github.com/forgeplane/forgeplane/internal/storagemove"
	"github.com/forgeplane/forgeplane/test/forge"
)

var _ = Describe("The history of storage moves", func() {
	var history *storagemove.History
	BeforeEach(func() {
		history = storagemove.NewHistory(databasetest.Open(GinkgoTB(), databasetest.SQLite(GinkgoTB()), storagemove.Migrations()))
		install(forge.Options{History: history})
	})

	// recorded returns the state of a move in the history.
	recorded := func(id int64) func(g Gomega) v1alpha1.StorageMoveState {
		return func(g Gomega) v1alpha1.StorageMoveState {
			m, err := history.Get(GinkgoT().Context(), id)
			g.Expect(err).NotTo(HaveOccurred())
			return m.State
		}
	}

	It("has the moves of a project whose group is missing", func() {
		f.Run()
		f.Change(website, func() { website.Spec.GroupRef = v1alpha1.Reference{Name: "missing"} })
		f.ExpectWaiting(website, v1alpha1.ReasonReferenceNotFound, "groupRef")
		m := forge.StorageMove("off").Of(website).To(target.Name).Build()
		f.Create(m)
		moves(m, v1alpha1.StorageMoveFinished)
		Eventually(recorded(m.Status.ID)).Should(Equal(v1alpha1.StorageMoveFinished))
	})

	It("has a move only once it is scheduled", func() {
		f.Run()
		m := forge.StorageMove("off").Of(website).To("missing").Build()
		f.Create(m)
		f.ExpectWaiting(m, v1alpha1.ReasonReferenceNotFound, "destination")
		Expect(history.Has(GinkgoT().Context(), m.Status.ID)).To(BeFalse())
		f.Delete(m)
		f.ExpectGone(m)
		Expect(history.Has(GinkgoT().Context(), m.Status.ID)).To(BeFalse())
	})

	It("keeps a move from using the id of an earlier one, until it gets another id", func() {
		f.Run()
		first := forge.StorageMove("off").Of(website).To(target.Name).ID(5).Build()
		f.Create(first)
		moves(first, v1alpha1.StorageMoveFinished)
		f.Delete(first)
		f.ExpectGone(first)
		head := branch(on(target))

		restored := forge.StorageMove("off").Of(website).To(source.Name).ID(5).Build()
		f.Create(restored)
		f.ExpectStalled(restored, v1alpha1.ReasonAlreadyExists, "id 5 belongs to an earlier StorageMove", "omit spec.id")
		Expect(restored.Status.State).To(Equal(v1alpha1.StorageMoveInitial))
		Expect(restored.Status.ID).To(BeZero())
		expectOnly(target, source, head)
		Expect(history.Get(GinkgoT().Context(), 5)).To(HaveField("UID", first.UID))

		f.Change(restored, func() { restored.Spec.ID = 0 })
		moves(restored, v1alpha1.StorageMoveFinished)
		Expect(restored.Status.ID).To(BeEquivalentTo(1))
		expectOnly(source, target, head)
		Eventually(recorded(1)).Should(Equal(v1alpha1.StorageMoveFinished))
	})

	It("ends moves whose objects were gone when the controllers began", func() {
		for i, state := range []v1alpha1.StorageMoveState{v1alpha1.StorageMoveStarted, v1alpha1.StorageMoveReplicated} {
			Expect(history.Record(GinkgoT().Context(), storagemove.Move{ID: int64(i + 1), UID: "gone", State: state})).To(Succeed())
		}
		m := forge.StorageMove("off").Of(website).To("missing").ID(3).Build()
		f.Create(m)
		Expect(history.Record(GinkgoT().Context(), storagemove.Move{ID: 3, UID: m.UID, State: v1alpha1.StorageMoveInitial})).To(Succeed())
		f.Run()
		Eventually(recorded(1)).Should(Equal(v1alpha1.StorageMoveFailed))
		Eventually(recorded(2)).Should(Equal(v1alpha1.StorageMoveCleanupFailed))
		Expect(recorded(3)(Default)).To(Equal(v1alpha1.StorageMoveInitial))
	})
})
