package record_test

import (
	"context"
	"database/sql"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/forgeplane/forgeplane/internal/database/databasetest"
	"github.com/forgeplane/forgeplane/internal/registry/record"
	"github.com/forgeplane/forgeplane/test/patience"
)

// withHolds is onEachEngine with the database, in which a test looks at how long claims and sweeps hold a content.
func withHolds(t *testing.T, test func(t *testing.T, g *WithT, s *record.Store, c *clocktesting.FakePassiveClock, holds *sql.DB)) {
	t.Helper()
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		c := clocktesting.NewFakePassiveClock(noon)
		s := record.New(databasetest.Open(t, name, record.Migrations()), c)
		test(t, NewWithT(t), s, c, databasetest.SQL(t, name))
	})
}

// expire ends all holds.
func expire(g *WithT, holds *sql.DB) {
	_, err := holds.Exec("UPDATE container_blobs SET sweeping_until = 1 WHERE sweeping_until IS NOT NULL")
	g.Expect(err).NotTo(HaveOccurred())
}

// until returns the end of the only hold.
func until(g *WithT, holds *sql.DB) (end int64) {
	g.Expect(holds.QueryRow("SELECT sweeping_until FROM container_blobs").Scan(&end)).To(Succeed())
	return end
}

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
	withHolds(t, func(t *testing.T, g *WithT, s *record.Store, c *clocktesting.FakePassiveClock, holds *sql.DB) {
		claim, err := s.Claim(t.Context(), "a")
		g.Expect(err).NotTo(HaveOccurred())
		before := until(g, holds)
		g.Expect(claim.Hold(t.Context(), record.Committing)).To(Succeed())
		g.Expect(until(g, holds)).To(BeNumerically(">=", before+(record.Committing-record.Writing).Milliseconds()))
		g.Expect(s.Forget(t.Context(), noon.Add(time.Hour))).To(Succeed())
		c.SetTime(noon.Add(24 * time.Hour)) // another process has another clock
		_, err = s.Claim(t.Context(), "a")
		g.Expect(err).To(MatchError(record.ErrBusy))
	})
}

func TestKeep_extendsClaimUntilEnd(t *testing.T) {
	withHolds(t, func(t *testing.T, g *WithT, s *record.Store, c *clocktesting.FakePassiveClock, holds *sql.DB) {
		claim, err := s.Claim(t.Context(), "a")
		g.Expect(err).NotTo(HaveOccurred())
		ctx, cancel := context.WithCancel(t.Context())
		g.Expect(claim.Keep(ctx, record.Writing+10*time.Second, func(context.Context) error {
			cancel() // the client has gone
			for range 2 {
				before := until(g, holds)
				c.SetTime(c.Now().Add(time.Hour))
				g.Eventually(func() int64 { return until(g, holds) }).WithTimeout(patience.Wait).Should(BeNumerically(">", before))
			}
			return nil
		})).To(Succeed())
		g.Expect(claim.Release(t.Context())).To(Succeed())
	})
}

func TestKeep_endsWorkOfLostClaim(t *testing.T) {
	withHolds(t, func(t *testing.T, g *WithT, s *record.Store, c *clocktesting.FakePassiveClock, holds *sql.DB) {
		claim, err := s.Claim(t.Context(), "a")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(claim.Keep(t.Context(), time.Second, func(ctx context.Context) error {
			expire(g, holds)
			c.SetTime(noon.Add(time.Minute))
			<-ctx.Done()
			return ctx.Err()
		})).To(MatchError(record.ErrBusy))
	})
}

func TestClaim_ofLostProcessGoesToAnother(t *testing.T) {
	withHolds(t, func(t *testing.T, g *WithT, s *record.Store, c *clocktesting.FakePassiveClock, holds *sql.DB) {
		lost, err := s.Claim(t.Context(), "a")
		g.Expect(err).NotTo(HaveOccurred())
		c.SetTime(noon.Add(2 * time.Minute))
		// The next claim lasts for a shorter time, because its end tells the claims apart, and both can begin in one millisecond.
		g.Expect(lost.Hold(t.Context(), record.Committing)).To(Succeed(), "no other request has asked")
		expire(g, holds)
		c.SetTime(noon.Add(time.Hour))
		next, err := s.Claim(t.Context(), "a")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(lost.Hold(t.Context(), record.Writing)).To(MatchError(record.ErrBusy))
		g.Expect(lost.Release(t.Context())).To(Succeed())
		g.Expect(next.Hold(t.Context(), record.Writing)).To(Succeed())
	})
}
