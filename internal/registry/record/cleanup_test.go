package record_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/forgeplane/forgeplane/internal/database/databasetest"
	"github.com/forgeplane/forgeplane/internal/registry/record"
)

func TestBeginCleanup_admitsOneRunInAnInterval(t *testing.T) {
	onEachEngine(t, func(t *testing.T, g *WithT, s *record.Store, c *clocktesting.FakePassiveClock) {
		r, err := s.Ensure(t.Context(), 7, "p", "web")
		g.Expect(err).NotTo(HaveOccurred())
		began := make([]bool, 8)
		var all sync.WaitGroup
		for i := range began {
			all.Go(func() {
				var err error
				if _, began[i], err = s.BeginCleanup(t.Context(), r.ID, fmt.Sprint(i), c.Now(), time.Hour); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		holder, count := "", 0
		for i, b := range began {
			if b {
				holder, count = fmt.Sprint(i), count+1
			}
		}
		g.Expect(count).To(Equal(1))
		g.Expect(s.Get(t.Context(), r.ID)).To(HaveField("Cleanup", noon))
		begin := func(run string) bool {
			_, began, err := s.BeginCleanup(t.Context(), r.ID, run, c.Now(), time.Hour)
			g.Expect(err).NotTo(HaveOccurred())
			return began
		}
		c.SetTime(noon.Add(time.Hour - time.Second))
		g.Expect(begin("another")).To(BeFalse())
		c.SetTime(noon.Add(time.Hour))
		g.Expect(begin("another")).To(BeTrue())
		g.Expect(begin(holder)).To(BeTrue(), "it goes on")
	})
}

func TestBeginCleanup_admitsTheSameRunAgain(t *testing.T) {
	onEachEngine(t, func(t *testing.T, g *WithT, s *record.Store, c *clocktesting.FakePassiveClock) {
		r, err := s.Ensure(t.Context(), 7, "p", "web")
		g.Expect(err).NotTo(HaveOccurred())
		begin := func(run string) record.Cleanup {
			found, began, err := s.BeginCleanup(t.Context(), r.ID, run, c.Now(), time.Hour)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(began).To(BeTrue())
			return found
		}
		begin("a")
		g.Expect(s.RecordCleanup(t.Context(), r.ID, "a", "half")).To(Succeed())
		c.SetTime(noon.Add(time.Minute))
		g.Expect(begin("a")).To(And(HaveField("Began", noon), HaveField("Progress", "half")))
		c.SetTime(noon.Add(3 * time.Hour))
		g.Expect(begin("b")).To(And(HaveField("Began", c.Now()), HaveField("Progress", "")))
		g.Expect(begin("a")).To(And(HaveField("Began", noon), HaveField("Progress", "half")), "whatever other runs do")
		g.Expect(s.Get(t.Context(), r.ID)).To(HaveField("Cleanup", c.Now()))
		g.Expect(s.RecordCleanup(t.Context(), r.ID, "a", "all")).To(Succeed())
		g.Expect(s.Cleanups(t.Context(), "a")).To(And(HaveLen(1), HaveKeyWithValue(r.ID, And(HaveField("Began", noon), HaveField("Progress", "all")))))
		g.Expect(s.RecordCleanup(t.Context(), r.ID+1, "a", "all")).To(MatchError(record.ErrNotFound))
	})
}

func TestCancelCleanup_letsOthersBegin(t *testing.T) {
	onEachEngine(t, func(t *testing.T, g *WithT, s *record.Store, c *clocktesting.FakePassiveClock) {
		r, err := s.Ensure(t.Context(), 7, "p", "web")
		g.Expect(err).NotTo(HaveOccurred())
		begin := func(run string) bool {
			_, began, err := s.BeginCleanup(t.Context(), r.ID, run, c.Now(), time.Hour)
			g.Expect(err).NotTo(HaveOccurred())
			return began
		}
		g.Expect(begin("a")).To(BeTrue())
		g.Expect(s.CancelCleanup(t.Context(), r.ID, "another")).To(Succeed())
		g.Expect(begin("b")).To(BeFalse(), "the run of another was taken back")
		g.Expect(s.CancelCleanup(t.Context(), r.ID, "a")).To(Succeed())
		g.Expect(s.Cleanups(t.Context(), "a")).To(BeEmpty())
		g.Expect(begin("b")).To(BeTrue())
		g.Expect(s.CancelCleanup(t.Context(), r.ID, "a")).To(Succeed(), "again, when another has begun")
		g.Expect(begin("c")).To(BeFalse())
	})
}

func TestBeginCleanup_forgetsOldRuns(t *testing.T) {
	onEachEngine(t, func(t *testing.T, g *WithT, s *record.Store, c *clocktesting.FakePassiveClock) {
		r, err := s.Ensure(t.Context(), 7, "p", "web")
		g.Expect(err).NotTo(HaveOccurred())
		for run, after := range []time.Duration{0, 6 * 24 * time.Hour, 8 * 24 * time.Hour} {
			c.SetTime(noon.Add(after))
			_, began, err := s.BeginCleanup(t.Context(), r.ID, fmt.Sprint(run), c.Now(), time.Hour)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(began).To(BeTrue())
		}
		g.Expect(s.Cleanups(t.Context(), "0")).To(BeEmpty())
		g.Expect(s.Cleanups(t.Context(), "1")).To(HaveLen(1))
		g.Expect(s.Remove(t.Context(), r.ID)).To(Succeed())
		g.Expect(s.Cleanups(t.Context(), "1")).To(BeEmpty())
	})
}

func TestBeginCleanup_countsFromTheGivenTime(t *testing.T) {
	onEachEngine(t, func(t *testing.T, g *WithT, s *record.Store, c *clocktesting.FakePassiveClock) {
		r, err := s.Ensure(t.Context(), 7, "p", "web")
		g.Expect(err).NotTo(HaveOccurred())
		c.SetTime(noon.Add(2 * time.Second))
		found, began, err := s.BeginCleanup(t.Context(), r.ID, "a", noon, time.Hour)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(began).To(BeTrue())
		g.Expect(found.Began).To(Equal(c.Now()), "tags that were pushed before count")
		_, began, err = s.BeginCleanup(t.Context(), r.ID, "b", noon.Add(time.Hour), time.Hour)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(began).To(BeTrue())
	})
}

func TestBeginCleanup_agreesBetweenProcesses(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g, c := NewWithT(t), clocktesting.NewFakePassiveClock(noon)
		one, two := record.New(databasetest.Open(t, name, record.Migrations()), c), record.New(databasetest.Open(t, name, record.Migrations()), c)
		r, err := one.Ensure(t.Context(), 7, "p", "web")
		g.Expect(err).NotTo(HaveOccurred())
		_, began, err := one.BeginCleanup(t.Context(), r.ID, "a", noon, time.Hour)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(began).To(BeTrue())
		_, began, err = two.BeginCleanup(t.Context(), r.ID, "b", noon, time.Hour)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(began).To(BeFalse())
		_, began, err = two.BeginCleanup(t.Context(), r.ID, "a", noon, time.Hour)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(began).To(BeTrue(), "a run goes on in another process")
	})
}
