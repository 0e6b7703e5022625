package activity_test

import (
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/forgeplane/forgeplane/internal/activity"
	"github.com/forgeplane/forgeplane/internal/catalog/catalogtest"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/database/databasetest"
	"github.com/forgeplane/forgeplane/internal/registry/record"
	"github.com/forgeplane/forgeplane/internal/tokenuse"
)

func TestSweeper_removesActivityOfDeletedObjects(t *testing.T) {
	for name, c := range map[string]struct {
		images bool
		status record.Status
	}{
		"with images":    {true, record.DeleteScheduled},
		"without images": {false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g, clock := NewWithT(t), clocktesting.NewFakeClock(time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC))
			s, err := activity.Open(t.Context(), databasetest.SQLite(t), clock)
			g.Expect(err).NotTo(HaveOccurred())
			t.Cleanup(func() { g.Expect(s.Database.Close()).To(Succeed()) })
			for _, kind := range []string{tokenuse.KindAccessToken, tokenuse.KindBotToken, tokenuse.KindTriggerToken} {
				g.Expect(s.Uses.Use(t.Context(), database.Subject{Kind: kind, ID: 1, UID: "gone"}, clock.Now())).To(Succeed())
			}
			r, err := s.Containers.Ensure(t.Context(), 20, "gone", "")
			g.Expect(err).NotTo(HaveOccurred())

			sweeper := s.Sweeper(catalogtest.New(t).Catalog(), c.images, clock, logr.Discard())
			g.Expect(sweeper.Look(t.Context())).To(Succeed())
			clock.Step(25 * time.Hour)
			g.Expect(sweeper.Look(t.Context())).To(Succeed())
			for _, kind := range []string{tokenuse.KindAccessToken, tokenuse.KindBotToken, tokenuse.KindTriggerToken} {
				g.Expect(s.Uses.LastUsed(t.Context(), kind, "gone")).To(BeEmpty(), kind)
			}
			g.Expect(s.Containers.Get(t.Context(), r.ID)).To(HaveField("Status", c.status))
		})
	}
}
