package watermark_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/forgeplane/forgeplane/internal/database/databasetest"
	"github.com/forgeplane/forgeplane/internal/watermark"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

func TestWrittenByOthers_returnsNewestRevisions(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g := NewWithT(t)
		now := clocktesting.NewFakePassiveClock(noon)
		store := watermark.NewWritten(databasetest.Open(t, name, watermark.Migrations()), now)
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
		// Revisions begin again after a restore of the cluster.
		g.Expect(store.Wrote(t.Context(), "a", map[string]int64{"Project": 3})).To(Succeed())
		g.Expect(others("b")).To(Equal(map[string]int64{"Project": 3, "User": 7}))
		now.SetTime(noon.Add(time.Minute))
		g.Expect(others("b")).To(Equal(map[string]int64{"Project": 3}))

		now.SetTime(noon.Add(time.Hour + time.Second))
		g.Expect(store.Forget(t.Context())).To(Succeed())
		now.SetTime(noon.Add(time.Minute))
		g.Expect(others("c")).To(Equal(map[string]int64{"Project": 3}), "the others were removed")
	})
}
