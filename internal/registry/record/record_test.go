package record_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/database/databasetest"
	"github.com/forgeplane/forgeplane/internal/registry/record"
	"github.com/forgeplane/forgeplane/test/patience"
)

var noon = time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC)

func onEachEngine(t *testing.T, test func(t *testing.T, g *WithT, s *record.Store, c *clocktesting.FakePassiveClock)) {
	t.Helper()
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		c := clocktesting.NewFakePassiveClock(noon)
		test(t, NewWithT(t), record.New(databasetest.Open(t, name, record.Migrations()), c), c)
	})
}

func TestStore_createsRepositoryOnce(t *testing.T) {
	onEachEngine(t, func(t *testing.T, g *WithT, s *record.Store, _ *clocktesting.FakePassiveClock) {
		first, err := s.Ensure(t.Context(), 7, "p", "web")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(first).To(Equal(record.Repository{ID: first.ID, ProjectID: 7, ProjectUID: "p", Name: "web", Place: first.Place, Created: noon}))
		g.Expect(s.Ensure(t.Context(), 7, "p", "web")).To(Equal(first))
		g.Expect(s.Get(t.Context(), first.ID)).To(Equal(first))
		g.Expect(s.Find(t.Context(), "p", "web")).To(Equal(first))
		other, err := s.Ensure(t.Context(), 7, "another project with the same id", "web")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(other.ID).NotTo(Equal(first.ID))
		g.Expect(other.Place).NotTo(Equal(first.Place))
		g.Expect(s.Places(t.Context(), []string{first.Place, "unknown", other.Place})).To(ConsistOf(first.Place, other.Place))
		_, err = s.Find(t.Context(), "p", "")
		g.Expect(err).To(MatchError(record.ErrNotFound))
	})
}

func TestStore_neverUsesIdAgain(t *testing.T) {
	onEachEngine(t, func(t *testing.T, g *WithT, s *record.Store, _ *clocktesting.FakePassiveClock) {
		first, err := s.Ensure(t.Context(), 7, "p", "web")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(s.Remove(t.Context(), first.ID)).To(Succeed())
		g.Expect(s.Remove(t.Context(), first.ID)).To(Succeed())
		again, err := s.Ensure(t.Context(), 7, "p", "web")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(again.ID).To(BeNumerically(">", first.ID))
	})
}

func TestStore_listsRepositoriesOfProjects(t *testing.T) {
	onEachEngine(t, func(t *testing.T, g *WithT, s *record.Store, _ *clocktesting.FakePassiveClock) {
		for _, at := range []struct {
			project types.UID
			name    string
		}{{"p", "a"}, {"q", "b"}, {"p", "c"}, {"r", "d"}} {
			_, err := s.Ensure(t.Context(), 1, at.project, at.name)
			g.Expect(err).NotTo(HaveOccurred())
		}
		names := func(all []record.Repository) (names []string) {
			for _, r := range all {
				names = append(names, r.Name)
			}
			return names
		}
		page, total, err := s.Of(t.Context(), []types.UID{"q", "p"}, 1, 5)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(total).To(Equal(3))
		g.Expect(names(page)).To(Equal([]string{"b", "c"}))
		page, total, err = s.Of(t.Context(), []types.UID{"p"}, 9, 5)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(total).To(Equal(2))
		g.Expect(page).To(BeEmpty())
		page, err = s.After(t.Context(), 0, 2)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(names(page)).To(Equal([]string{"a", "b"}))
		page, err = s.After(t.Context(), page[1].ID, 9)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(names(page)).To(Equal([]string{"c", "d"}))
	})
}

func TestStore_refusesChangesOfRepositoryThatIsBeingDeleted(t *testing.T) {
	onEachEngine(t, func(t *testing.T, g *WithT, s *record.Store, _ *clocktesting.FakePassiveClock) {
		r, err := s.Ensure(t.Context(), 7, "p", "web")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(s.Change(t.Context(), r.ID)).To(Equal(int64(1)))
		g.Expect(s.Get(t.Context(), r.ID)).To(HaveField("Changes", int64(1)))
		g.Expect(s.Removing(t.Context(), r.ID, record.DeleteScheduled)).To(Succeed())
		_, err = s.Change(t.Context(), r.ID)
		g.Expect(err).To(MatchError(record.ErrDeleted))
		_, _, err = s.BeginCleanup(t.Context(), r.ID, "a", noon, time.Hour)
		g.Expect(err).To(MatchError(record.ErrDeleted))
		g.Expect(s.Removing(t.Context(), r.ID, record.DeleteOngoing)).To(Succeed())
		g.Expect(s.Get(t.Context(), r.ID)).To(HaveField("Status", record.DeleteOngoing))
		g.Expect(s.Remove(t.Context(), r.ID)).To(Succeed())
		_, err = s.Change(t.Context(), r.ID)
		g.Expect(err).To(MatchError(record.ErrNotFound))
	})
}

func TestStore_givesRepositoriesToSuccessor(t *testing.T) {
	onEachEngine(t, func(t *testing.T, g *WithT, s *record.Store, _ *clocktesting.FakePassiveClock) {
		ensure := func(id int64, uid types.UID, name string) int64 {
			r, err := s.Ensure(t.Context(), id, uid, name)
			g.Expect(err).NotTo(HaveOccurred())
			return r.ID
		}
		web, api, other, own := ensure(7, "former", "web"), ensure(7, "former", "api"), ensure(8, "other", "web"), ensure(9, "next", "api")
		for range 2 {
			g.Expect(s.Adopt(t.Context(), "former", 9, "next")).To(Succeed())
			g.Expect(s.Get(t.Context(), web)).To(And(HaveField("ProjectID", int64(9)), HaveField("ProjectUID", types.UID("next"))))
			g.Expect(s.Get(t.Context(), api)).To(HaveField("ProjectUID", types.UID("former")), "the successor has its own")
			g.Expect(s.Get(t.Context(), own)).To(HaveField("ProjectUID", types.UID("next")))
			g.Expect(s.Get(t.Context(), other)).To(HaveField("ProjectUID", types.UID("other")))
		}
	})
}

func TestStore_listsProjectsOfRepositoriesInUse(t *testing.T) {
	onEachEngine(t, func(t *testing.T, g *WithT, s *record.Store, _ *clocktesting.FakePassiveClock) {
		for _, at := range []struct {
			id   int64
			uid  types.UID
			name string
		}{{7, "p", "a"}, {7, "p", "b"}, {7, "former", "a"}, {9, "q", "a"}, {8, "leaving", "a"}} {
			_, err := s.Ensure(t.Context(), at.id, at.uid, at.name)
			g.Expect(err).NotTo(HaveOccurred())
		}
		leaving, err := s.Find(t.Context(), "leaving", "a")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(s.Removing(t.Context(), leaving.ID, record.DeleteScheduled)).To(Succeed())
		var removed []string
		rows := s.Projects(func(_ context.Context, r record.Repository) error {
			removed = append(removed, string(r.ProjectUID)+"/"+r.Name)
			return nil
		})
		subject := func(id int64, uid types.UID) database.Subject {
			return database.Subject{Kind: record.KindProject, ID: id, UID: uid}
		}
		g.Expect(rows.After(t.Context(), database.Subject{Kind: record.KindProject})).To(Equal([]database.Subject{subject(7, "former"), subject(7, "p"), subject(9, "q")}))
		g.Expect(rows.After(t.Context(), subject(7, "former"))).To(Equal([]database.Subject{subject(7, "p"), subject(9, "q")}))
		g.Expect(rows.Remove(t.Context(), subject(7, "p"))).To(Succeed())
		g.Expect(removed).To(Equal([]string{"p/a", "p/b"}))
	})
}

func TestStore_listsReferrers(t *testing.T) {
	onEachEngine(t, func(t *testing.T, g *WithT, s *record.Store, _ *clocktesting.FakePassiveClock) {
		r, err := s.Ensure(t.Context(), 7, "p", "web")
		g.Expect(err).NotTo(HaveOccurred())
		for _, f := range []record.Referrer{
			{Subject: "s", Digest: "b", ArtifactType: "signature", Descriptor: "{}"},
			{Subject: "s", Digest: "a", ArtifactType: "sbom", Descriptor: "{}"},
			{Subject: "other", Digest: "c", ArtifactType: "sbom", Descriptor: "{}"},
		} {
			f.RepositoryID = r.ID
			g.Expect(s.Refer(t.Context(), f)).To(Succeed())
			g.Expect(s.Refer(t.Context(), f)).To(Succeed())
		}
		digests := func(subject, artifactType, after string, limit int) (digests []string) {
			found, err := s.Referrers(t.Context(), r.ID, subject, artifactType, after, limit)
			g.Expect(err).NotTo(HaveOccurred())
			for _, f := range found {
				digests = append(digests, f.Digest)
			}
			return digests
		}
		g.Expect(digests("s", "", "", 9)).To(Equal([]string{"a", "b"}))
		g.Expect(digests("s", "", "a", 9)).To(Equal([]string{"b"}))
		g.Expect(digests("s", "", "", 1)).To(Equal([]string{"a"}))
		g.Expect(digests("s", "signature", "", 9)).To(Equal([]string{"b"}))
		g.Expect(s.Unrefer(t.Context(), r.ID, "b")).To(Succeed())
		g.Expect(digests("s", "", "", 9)).To(Equal([]string{"a"}))
		g.Expect(s.Remove(t.Context(), r.ID)).To(Succeed())
		g.Expect(digests("s", "", "", 9)).To(BeEmpty(), "they go with their repository")
	})
}

func TestStore_sweepsOnlyUnusedContent(t *testing.T) {
	onEachEngine(t, func(t *testing.T, g *WithT, s *record.Store, c *clocktesting.FakePassiveClock) {
		removed := 0
		remove := func(context.Context) error { removed++; return nil }
		g.Expect(s.Touch(t.Context(), "a", "b")).To(Succeed())
		g.Expect(s.Sweep(t.Context(), "a", noon, remove)).To(BeFalse())
		g.Expect(s.Sweep(t.Context(), "unknown", noon, remove)).To(BeTrue())
		g.Expect(removed).To(Equal(1))
		c.SetTime(noon.Add(time.Hour))
		g.Expect(s.Touch(t.Context(), "b")).To(Succeed())
		g.Expect(s.Sweep(t.Context(), "a", noon.Add(time.Minute), remove)).To(BeTrue())
		g.Expect(s.Sweep(t.Context(), "b", noon.Add(time.Minute), remove)).To(BeFalse())
		g.Expect(removed).To(Equal(2))
		g.Expect(s.Forget(t.Context(), noon.Add(time.Minute))).To(Succeed())
		g.Expect(s.Sweep(t.Context(), "b", noon.Add(time.Minute), remove)).To(BeFalse(), "it was needed later")
	})
}

func TestStore_makesClientsWaitForSweep(t *testing.T) {
	onEachEngine(t, func(t *testing.T, g *WithT, s *record.Store, c *clocktesting.FakePassiveClock) {
		touched := make(chan error, 1)
		var done atomic.Bool
		g.Expect(s.Sweep(t.Context(), "a", noon, func(ctx context.Context) error {
			g.Expect(s.Sweep(ctx, "a", noon, func(context.Context) error { return errors.New("twice at once") })).To(BeFalse())
			go func() {
				err := s.Touch(t.Context(), "a")
				if !done.Load() {
					err = errors.New("it did not wait")
				}
				touched <- err
			}()
			g.Consistently(touched, "200ms").ShouldNot(Receive())
			done.Store(true)
			return nil
		})).To(BeTrue())
		g.Eventually(touched).WithTimeout(patience.Wait).Should(Receive(BeNil()))
	})
}

func TestStore_takesOverSweepOfLostProcess(t *testing.T) {
	withHolds(t, func(t *testing.T, g *WithT, s *record.Store, c *clocktesting.FakePassiveClock, holds *sql.DB) {
		_, err := s.Sweep(t.Context(), "a", noon, func(context.Context) error {
			expire(g, holds) // the process sleeps
			c.SetTime(noon.Add(11 * time.Minute))
			return s.Touch(t.Context(), "a")
		})
		g.Expect(err).To(MatchError(ContainSubstring("clients may have pushed the same content")))
		g.Expect(s.Sweep(t.Context(), "a", noon.Add(time.Minute), func(context.Context) error { return nil })).To(BeFalse(), "the touch is remembered")
	})
}

func TestStore_refusesContentAfterFailedSweep(t *testing.T) {
	withHolds(t, func(t *testing.T, g *WithT, s *record.Store, c *clocktesting.FakePassiveClock, holds *sql.DB) {
		_, err := s.Sweep(t.Context(), "a", noon, func(context.Context) error { return errors.New("the storage does not answer") })
		g.Expect(err).To(MatchError(ContainSubstring("does not answer")))
		limited, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		g.Expect(s.Touch(limited, "a", "b")).NotTo(Succeed())
		g.Expect(s.Touch(t.Context(), "b")).To(Succeed())
		c.SetTime(noon.Add(11 * time.Minute)) // the clock of the process alone
		limited, cancel = context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		g.Expect(s.Touch(limited, "a")).NotTo(Succeed())
		expire(g, holds)
		g.Expect(s.Touch(t.Context(), "a", "b")).To(Succeed())
		g.Expect(s.Touched(t.Context(), "a", noon)).To(BeTrue())
		g.Expect(s.Touched(t.Context(), "a", noon.Add(12*time.Minute))).To(BeFalse())
	})
}

func TestStore_touchesManyAtOnce(t *testing.T) {
	onEachEngine(t, func(t *testing.T, g *WithT, s *record.Store, _ *clocktesting.FakePassiveClock) {
		var all []string
		for i := range 2100 {
			all = append(all, fmt.Sprint(i%2000))
		}
		g.Expect(s.Touch(t.Context(), all...)).To(Succeed())
		for _, d := range []string{"0", "499", "1999"} {
			g.Expect(s.Touched(t.Context(), d, noon)).To(BeTrue(), d)
		}
	})
}

func TestStore_limitsRepositoriesOfProject(t *testing.T) {
	onEachEngine(t, func(t *testing.T, g *WithT, s *record.Store, _ *clocktesting.FakePassiveClock) {
		for i := range 5000 {
			_, err := s.Ensure(t.Context(), 7, "p", fmt.Sprint(i))
			g.Expect(err).NotTo(HaveOccurred())
		}
		_, err := s.Ensure(t.Context(), 7, "p", "more")
		g.Expect(err).To(MatchError(record.ErrTooMany))
		_, err = s.Ensure(t.Context(), 7, "p", "17")
		g.Expect(err).NotTo(HaveOccurred())
		_, err = s.Ensure(t.Context(), 8, "q", "more")
		g.Expect(err).NotTo(HaveOccurred())
	})
}
