package storagemove_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/database/databasetest"
	"github.com/forgeplane/forgeplane/internal/storagemove"
)

var noon = time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC)

func open(t *testing.T, name string) *storagemove.History {
	t.Helper()
	return storagemove.NewHistory(databasetest.Open(t, name, storagemove.Migrations()))
}

func move(id int64, uid types.UID, state v1alpha1.StorageMoveState) storagemove.Move {
	return storagemove.Move{
		ID: id, UID: uid, Created: noon.Add(time.Duration(id) * time.Minute), State: state, Source: "a", Destination: "b",
		Project: storagemove.Project{UID: "p", ID: 7, Name: "App", NameWithNamespace: "Acme / App", Path: "app", PathWithNamespace: "acme/app", Created: noon},
	}
}

func TestHistory_keepsLastStateOfMove(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g, h := NewWithT(t), open(t, name)
		g.Expect(h.Record(t.Context(), move(1, "m", v1alpha1.StorageMoveStarted))).To(Succeed())
		g.Expect(h.Begin(t.Context(), move(1, "m", v1alpha1.StorageMoveScheduled))).To(Succeed(), "it is later than what is known")
		g.Expect(h.Get(t.Context(), 1)).To(Equal(move(1, "m", v1alpha1.StorageMoveStarted)))
		finished := move(1, "m", v1alpha1.StorageMoveFinished)
		finished.Project.Name = "Renamed"
		g.Expect(h.Record(t.Context(), finished)).To(Succeed())
		g.Expect(h.Get(t.Context(), 1)).To(Equal(finished))

		g.Expect(h.Record(t.Context(), move(1, "another", v1alpha1.StorageMoveFailed))).To(MatchError(storagemove.ErrIDTaken))
		g.Expect(h.Get(t.Context(), 1)).To(Equal(finished), "the id belongs to the first move")
		_, err := h.Get(t.Context(), 2)
		g.Expect(err).To(MatchError(storagemove.ErrNotRecorded))
		g.Expect(h.Has(t.Context(), 1)).To(BeTrue())
		g.Expect(h.Has(t.Context(), 2)).To(BeFalse())
	})
}

func TestHistory_endsMoveOfProjectThatIsGone(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g, h := NewWithT(t), open(t, name)
		g.Expect(h.Record(t.Context(), move(1, "m", v1alpha1.StorageMoveStarted))).To(Succeed())
		m := &v1alpha1.StorageMove{Spec: v1alpha1.StorageMoveSpec{ID: 1}, Status: v1alpha1.StorageMoveStatus{Source: "a", Destination: "b"}}
		m.UID = "another"
		g.Expect(h.End(t.Context(), m, v1alpha1.StorageMoveFailed)).To(Succeed())
		g.Expect(h.Get(t.Context(), 1)).To(HaveField("State", v1alpha1.StorageMoveStarted))
		m.UID = "m"
		g.Expect(h.End(t.Context(), m, v1alpha1.StorageMoveFailed)).To(Succeed())
		g.Expect(h.Get(t.Context(), 1)).To(Equal(move(1, "m", v1alpha1.StorageMoveFailed)))
	})
}

func TestHistory_hasOpenMoves(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g, h := NewWithT(t), open(t, name)
		for i, state := range []v1alpha1.StorageMoveState{
			v1alpha1.StorageMoveFinished, v1alpha1.StorageMoveFailed, v1alpha1.StorageMoveCleanupFailed, v1alpha1.StorageMoveReplicated,
		} {
			g.Expect(h.Record(t.Context(), move(int64(i), "m", state))).To(Succeed())
		}
		g.Expect(h.Open(t.Context())).To(ConsistOf(move(3, "m", v1alpha1.StorageMoveReplicated)))
	})
}

func TestHistory_listsNewestFirst(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g, h := NewWithT(t), open(t, name)
		for id := range int64(5) {
			m := move(id+1, "m", v1alpha1.StorageMoveFinished)
			if id == 2 {
				m.Project.UID = "other"
			}
			g.Expect(h.Record(t.Context(), m)).To(Succeed())
		}
		list := func(project types.UID, skip, limit int) (ids []int64, total int) {
			moves, total, err := h.List(t.Context(), project, skip, limit)
			g.Expect(err).NotTo(HaveOccurred())
			for _, m := range moves {
				ids = append(ids, m.ID)
			}
			return ids, total
		}
		ids, total := list("", 0, 3)
		g.Expect(ids).To(Equal([]int64{5, 4, 3}))
		g.Expect(total).To(Equal(5))
		ids, total = list("", 3, 3)
		g.Expect(ids).To(Equal([]int64{2, 1}))
		g.Expect(total).To(Equal(5))
		ids, total = list("p", 0, 10)
		g.Expect(ids).To(Equal([]int64{5, 4, 2, 1}))
		g.Expect(total).To(Equal(4))
		ids, total = list("none", 0, 10)
		g.Expect(ids).To(BeEmpty())
		g.Expect(total).To(BeZero())
	})
}
