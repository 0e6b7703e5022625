package activity_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/forgeplane/forgeplane/internal/activity"
)

func TestWritten_isTheNewestOfTheOthers(t *testing.T) {
	onEachEngine(t, func(t *testing.T, database string) {
		g := NewWithT(t)
		now := clocktesting.NewFakePassiveClock(noon)
		store, err := activity.Open(t.Context(), activity.Options{Database: database, Clock: now})
		g.Expect(err).NotTo(HaveOccurred())
		t.Cleanup(func() { g.Expect(store.Close()).To(Succeed()) })
		others := func(server string) map[string]int64 {
			t.Helper()
			revisions, err := store.WrittenByOthers(t.Context(), server, time.Minute)
			g.Expect(err).NotTo(HaveOccurred())
			return revisions
		}
		g.Expect(others("a")).To(BeEmpty())
		g.Expect(store.Wrote(t.Context(), "a", map[string]int64{"Project": 1 << 40, "User": 7})).To(Succeed())
		g.Expect(store.Wrote(t.Context(), "b", map[string]int64{"Project": 5})).To(Succeed())
		g.Expect(others("a")).To(Equal(map[string]int64{"Project": 5}))
		g.Expect(others("b")).To(Equal(map[string]int64{"Project": 1 << 40, "User": 7}))
		g.Expect(others("c")).To(Equal(map[string]int64{"Project": 1 << 40, "User": 7}))

		now.SetTime(noon.Add(59 * time.Second))
		// After a restore of the cluster, revisions begin again.
		g.Expect(store.Wrote(t.Context(), "a", map[string]int64{"Project": 3})).To(Succeed())
		g.Expect(others("b")).To(Equal(map[string]int64{"Project": 3, "User": 7}))
		now.SetTime(noon.Add(time.Minute))
		g.Expect(others("b")).To(Equal(map[string]int64{"Project": 3}))

		now.SetTime(noon.Add(time.Hour + time.Second))
		g.Expect(store.ForgetServers(t.Context())).To(Succeed())
		now.SetTime(noon.Add(time.Minute))
		g.Expect(others("c")).To(Equal(map[string]int64{"Project": 3}), "the others were removed")
	})
}
