package record_test

import (
	"math"
	"testing"

	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/forgeplane/forgeplane/internal/registry/record"
)

func TestSize_addsRepositoriesOfProject(t *testing.T) {
	onEachEngine(t, func(t *testing.T, g *WithT, s *record.Store, _ *clocktesting.FakePassiveClock) {
		root, err := s.Ensure(t.Context(), 7, "p", "")
		g.Expect(err).NotTo(HaveOccurred())
		web, err := s.Ensure(t.Context(), 7, "p", "web")
		g.Expect(err).NotTo(HaveOccurred())
		other, err := s.Ensure(t.Context(), 8, "q", "")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(s.Size(t.Context(), "p")).To(BeZero())
		g.Expect(s.Unsized(t.Context(), "p", 9)).To(BeEmpty(), "they have no images")
		for _, r := range []record.Repository{root, web, other} {
			g.Expect(s.Change(t.Context(), r.ID)).To(Equal(int64(1)))
		}
		g.Expect(s.Unsized(t.Context(), "p", 9)).To(HaveLen(2))
		g.Expect(s.Unsized(t.Context(), "p", 1)).To(HaveLen(1))
		g.Expect(s.Resize(t.Context(), web.ID, 1, 40)).To(Succeed())
		g.Expect(s.Unsized(t.Context(), "p", 9)).To(ConsistOf(HaveField("ID", root.ID)))
		g.Expect(s.Resize(t.Context(), web.ID, 0, 30)).To(Succeed())
		g.Expect(s.Size(t.Context(), "p")).To(Equal(int64(40)), "an older measurement does not count")
		g.Expect(s.Resize(t.Context(), root.ID, 1, math.MaxInt64)).To(Succeed())
		g.Expect(s.Size(t.Context(), "p")).To(Equal(int64(1<<50 + 40)))
		g.Expect(s.Size(t.Context(), "q")).To(BeZero())
	})
}
