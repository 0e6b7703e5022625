package record_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/forgeplane/forgeplane/internal/registry/record"
)

func TestClaim_excludesOthersUntilItEnds(t *testing.T) {
	onEachEngine(t, func(t *testing.T, g *WithT, s *record.Store, c *clocktesting.FakePassiveClock) {
		first, err := s.Claim(t.Context(), "a")
		g.Expect(err).NotTo(HaveOccurred())
		_, err = s.Claim(t.Context(), "a")
		g.Expect(err).To(MatchError(record.ErrBusy))
		other, err := s.Claim(t.Context(), "b")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(other.Release(t.Context())).To(Succeed())

		for minute := range 5 { // while its holder writes
			c.SetTime(noon.Add(time.Duration(minute) * 40 * time.Second))
			g.Expect(first.Hold(t.Context(), record.Writing)).To(Succeed())
			_, err = s.Claim(t.Context(), "a")
			g.Expect(err).To(MatchError(record.ErrBusy))
		}
		g.Expect(first.Release(t.Context())).To(Succeed())
		_, err = s.Claim(t.Context(), "a")
		g.Expect(err).NotTo(HaveOccurred())
	})
}

func TestClaim_lastsAsLongAsItsHolderAsks(t *testing.T) {
	onEachEngine(t, func(t *testing.T, g *WithT, s *record.Store, c *clocktesting.FakePassiveClock) {
		claim, err := s.Claim(t.Context(), "a")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(claim.Hold(t.Context(), record.Committing)).To(Succeed())
		g.Expect(s.Forget(t.Context(), noon.Add(time.Hour))).To(Succeed())
		c.SetTime(noon.Add(record.Committing - time.Second))
		_, err = s.Claim(t.Context(), "a")
		g.Expect(err).To(MatchError(record.ErrBusy))
	})
}

func TestClaim_ofLostProcessGoesToAnother(t *testing.T) {
	onEachEngine(t, func(t *testing.T, g *WithT, s *record.Store, c *clocktesting.FakePassiveClock) {
		lost, err := s.Claim(t.Context(), "a")
		g.Expect(err).NotTo(HaveOccurred())
		c.SetTime(noon.Add(2 * time.Minute))
		g.Expect(lost.Hold(t.Context(), record.Writing)).To(Succeed(), "nobody else has asked")
		c.SetTime(noon.Add(4 * time.Minute))
		next, err := s.Claim(t.Context(), "a")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(lost.Hold(t.Context(), record.Writing)).To(MatchError(record.ErrBusy))
		g.Expect(lost.Release(t.Context())).To(Succeed())
		g.Expect(next.Hold(t.Context(), record.Writing)).To(Succeed())
	})
}
