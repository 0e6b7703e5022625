package storagemove_test

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/storagemove"
)

func onA() *v1alpha1.Project {
	return &v1alpha1.Project{
		ObjectMeta: metav1.ObjectMeta{Name: "app", UID: "p"}, Status: v1alpha1.ProjectStatus{Storage: "a", RefsChecksum: "0"},
	}
}

func named(name string) *v1alpha1.StorageMove {
	return &v1alpha1.StorageMove{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
}

func TestHold_admitsOneMove(t *testing.T) {
	g, p := NewWithT(t), onA()
	g.Expect(storagemove.Hold(p, named("first"), "b")).To(Succeed())
	g.Expect(storagemove.Hold(p, named("first"), "c")).To(Succeed(), "again")
	g.Expect(p.Status.Move).To(Equal(&v1alpha1.ProjectMove{Name: "first", UID: "first", Source: "a", Destination: "b"}))
	err := storagemove.Hold(p, named("second"), "b")
	g.Expect(err).To(MatchError("StorageMove first of the same project has not ended"))
}

func TestHold_refusesProjects(t *testing.T) {
	g, empty, leaving := NewWithT(t), onA(), onA()
	empty.Status.RefsChecksum = ""
	leaving.DeletionTimestamp = ptr.To(metav1.Now())
	g.Expect(storagemove.Hold(empty, named("m"), "b")).To(MatchError(storagemove.ErrNoRepository))
	g.Expect(storagemove.Hold(leaving, named("m"), "b")).To(MatchError(storagemove.ErrLeaving))
}

func TestSwitch_isForLastAttemptOnly(t *testing.T) {
	g, p, m := NewWithT(t), onA(), named("m")
	g.Expect(storagemove.Switch(p, m, 0)).To(MatchError(storagemove.ErrNotHeld))
	g.Expect(storagemove.Hold(p, m, "b")).To(Succeed())
	for range 2 {
		g.Expect(storagemove.Advance(p, m)).To(Succeed())
	}
	g.Expect(storagemove.Switch(p, m, 1)).To(MatchError(storagemove.ErrNotHeld))
	g.Expect(storagemove.Switch(p, named("other"), 2)).To(MatchError(storagemove.ErrNotHeld))
	g.Expect(storagemove.Switched(p, m)).To(BeNil())
	g.Expect(storagemove.Switch(p, m, 2)).To(Succeed())
	g.Expect(p.Status.Storage).To(Equal("b"))
	g.Expect(p.Status.Move).To(BeNil())
	g.Expect(storagemove.Switched(p, m)).To(HaveField("Attempt", int64(2)))
	g.Expect(storagemove.Advance(p, m)).To(MatchError(storagemove.ErrNotHeld))
	g.Expect(storagemove.Hold(p, m, "c")).To(MatchError(storagemove.ErrSwitched))
	g.Expect(storagemove.Hold(p, named("next"), "a")).To(Succeed())
}

func TestRelease_isForItsAttemptOnly(t *testing.T) {
	g, p, m := NewWithT(t), onA(), named("m")
	g.Expect(storagemove.Hold(p, m, "b")).To(Succeed())
	g.Expect(storagemove.Advance(p, m)).To(Succeed())
	g.Expect(storagemove.Release(p, m, 0)).To(MatchError(storagemove.ErrNotHeld))
	g.Expect(storagemove.Release(p, named("other"), 1)).To(Succeed())
	g.Expect(p.Status.Move).NotTo(BeNil())
	g.Expect(storagemove.Release(p, m, 1)).To(Succeed())
	g.Expect(p.Status.Move).To(BeNil())
}

func TestBlocking_namesMoveToWaitFor(t *testing.T) {
	for name, c := range map[string]struct {
		state  v1alpha1.StorageMoveState
		source string
		left   string // the shard that the project has left by the move
		blocks bool
	}{
		"waiting":                          {v1alpha1.StorageMoveInitial, "", "", false},
		"scheduled":                        {v1alpha1.StorageMoveScheduled, "a", "", true},
		"started":                          {v1alpha1.StorageMoveStarted, "a", "", true},
		"removing from the destination":    {v1alpha1.StorageMoveReplicated, "b", "b", true},
		"removing from elsewhere":          {v1alpha1.StorageMoveReplicated, "a", "a", false},
		"finished":                         {v1alpha1.StorageMoveFinished, "b", "b", false},
		"ended without removing the other": {v1alpha1.StorageMoveCleanupFailed, "b", "b", false},
		"waiting when it was last seen":    {v1alpha1.StorageMoveInitial, "", "b", true},
		"the same, and left elsewhere":     {v1alpha1.StorageMoveInitial, "", "a", false},
	} {
		t.Run(name, func(t *testing.T) {
			other := named("other")
			other.Status.State, other.Status.Source = c.state, c.source
			p := onA()
			if c.left != "" {
				p.Status.LastMove = &v1alpha1.ProjectMove{Name: "other", UID: "other", Source: c.left, Destination: "c"}
			}
			found := storagemove.Blocking([]*v1alpha1.StorageMove{named("m"), other}, p, named("m"), "b")
			NewWithT(t).Expect(found != nil).To(Equal(c.blocks))
		})
	}
}

func TestChoose_prefersOtherShards(t *testing.T) {
	shard := func(name string, weight int32) *v1alpha1.RepositoryStorage {
		return &v1alpha1.RepositoryStorage{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}, Spec: v1alpha1.RepositoryStorageSpec{Weight: &weight}}
	}
	g := NewWithT(t)
	g.Expect(storagemove.Choose([]*v1alpha1.RepositoryStorage{shard("a", 100), shard("b", 1), shard("c", 0)}, onA())).To(Equal("b"))
	g.Expect(storagemove.Choose([]*v1alpha1.RepositoryStorage{shard("a", 100), shard("c", 0)}, onA())).To(BeEmpty(), "it would not move")
	g.Expect(storagemove.Choose([]*v1alpha1.RepositoryStorage{shard("a", 0), shard("c", 0)}, onA())).To(BeEmpty())
}
