package record_test

import (
	"math"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/forgeplane/forgeplane/internal/registry/record"
)

func TestContents_countOnce(t *testing.T) {
	onEachEngine(t, func(t *testing.T, g *WithT, s *record.Store, c *clocktesting.FakePassiveClock) {
		root, err := s.Ensure(t.Context(), 7, "p", "")
		g.Expect(err).NotTo(HaveOccurred())
		web, err := s.Ensure(t.Context(), 7, "p", "web")
		g.Expect(err).NotTo(HaveOccurred())
		other, err := s.Ensure(t.Context(), 8, "q", "")
		g.Expect(err).NotTo(HaveOccurred())
		keep := func(id int64, name string, size int64, gone ...string) {
			t.Helper()
			g.Expect(s.Keep(t.Context(), record.Content{RepositoryID: id, Name: name, Size: size}, gone...)).To(Succeed())
		}
		stored := func(want int64) {
			t.Helper()
			g.Expect(s.Stored(t.Context(), "p")).To(Equal(want))
		}
		stored(0)
		keep(root.ID, "a", 10)
		keep(root.ID, "a", 10)
		keep(web.ID, "a", 10)
		keep(other.ID, "a", 10)
		stored(20)
		upload := record.Upload("u")
		keep(root.ID, upload, 3, upload)
		keep(root.ID, upload, 5, upload)
		stored(25)
		keep(root.ID, "b", 5, upload)
		stored(25)
		a, b := record.Content{RepositoryID: root.ID, Name: "a", Size: 10}, record.Content{RepositoryID: root.ID, Name: "b", Size: 5}
		g.Expect(s.Contents(t.Context(), root.ID, "", 9)).To(Equal([]record.Content{a, b}))
		g.Expect(s.Contents(t.Context(), root.ID, "a", 9)).To(Equal([]record.Content{b}))
		g.Expect(s.Contents(t.Context(), root.ID, "", 1)).To(Equal([]record.Content{a}))
		g.Expect(s.Recorded(t.Context(), root.ID, "b")).To(Equal(int64(5)))
		_, err = s.Recorded(t.Context(), web.ID, "b")
		g.Expect(err).To(MatchError(record.ErrNotFound))

		g.Expect(s.Drop(t.Context(), root.ID, "a", "unknown")).To(Succeed())
		g.Expect(s.Drop(t.Context(), root.ID, "a")).To(Succeed())
		g.Expect(s.Drop(t.Context(), root.ID)).To(Succeed())
		stored(15)
		g.Expect(s.Remove(t.Context(), web.ID)).To(Succeed())
		stored(15)
		g.Expect(s.Contents(t.Context(), web.ID, "", 9)).To(BeEmpty())
		g.Expect(s.Keep(t.Context(), record.Content{RepositoryID: web.ID, Name: "late", Size: 1})).To(MatchError(record.ErrNotFound))
		g.Expect(s.Drop(t.Context(), web.ID, "late")).To(Succeed())
		g.Expect(s.Forget(t.Context(), c.Now())).To(Succeed())
		stored(15) // until a garbage collection that began later
		g.Expect(s.Forget(t.Context(), c.Now().Add(time.Second))).To(Succeed())
		stored(5)
		keep(root.ID, "large", math.MaxInt64)
		stored(1<<50 + 5)
	})
}

func TestContents_countOnceForSimultaneousClients(t *testing.T) {
	onEachEngine(t, func(t *testing.T, g *WithT, s *record.Store, _ *clocktesting.FakePassiveClock) {
		r, err := s.Ensure(t.Context(), 7, "p", "")
		g.Expect(err).NotTo(HaveOccurred())
		const clients = 8
		failed := make(chan error, 3*clients)
		var all sync.WaitGroup
		for range clients {
			all.Go(func() {
				upload := record.Upload("u")
				failed <- s.Keep(t.Context(), record.Content{RepositoryID: r.ID, Name: upload, Size: 4}, upload)
				failed <- s.Keep(t.Context(), record.Content{RepositoryID: r.ID, Name: "a", Size: 10}, upload)
				failed <- s.Drop(t.Context(), r.ID, upload)
			})
		}
		all.Wait()
		close(failed)
		for err := range failed {
			g.Expect(err).NotTo(HaveOccurred())
		}
		g.Expect(s.Stored(t.Context(), "p")).To(Equal(int64(10)))
	})
}
