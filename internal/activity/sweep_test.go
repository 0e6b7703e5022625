package activity_test

import (
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/forgeplane/forgeplane/internal/activity"
	"github.com/forgeplane/forgeplane/internal/catalog/catalogtest"
	"github.com/forgeplane/forgeplane/internal/catalog/catalogtest/objects"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/database/databasetest"
	"github.com/forgeplane/forgeplane/internal/draftnote"
	"github.com/forgeplane/forgeplane/internal/epic"
	"github.com/forgeplane/forgeplane/internal/iid"
	"github.com/forgeplane/forgeplane/internal/issue"
	"github.com/forgeplane/forgeplane/internal/mergerequest"
	"github.com/forgeplane/forgeplane/internal/milestone"
	"github.com/forgeplane/forgeplane/internal/note"
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
			place := database.Subject{Kind: database.KindProject, ID: 20, UID: "gone"}
			broken := issue.Issue{In: place, Title: "Broken"}
			g.Expect(s.Issues.Create(t.Context(), &broken)).To(Succeed())
			acme := objects.Group("a", "acme", objects.Pinned(10))
			acme.UID = "acme"
			labeled := epic.Epic{In: database.Subject{Kind: database.KindGroup, ID: 10, UID: acme.UID}, Labels: []epic.Label{{ID: 30, UID: "gone"}}}
			g.Expect(s.Epics.Create(t.Context(), &labeled)).To(Succeed())
			r, err := s.Containers.Ensure(t.Context(), 20, "gone", "")
			g.Expect(err).NotTo(HaveOccurred())

			sweeper := s.Sweeper(catalogtest.New(t, acme).Catalog(), c.images, clock, logr.Discard())
			g.Expect(sweeper.Look(t.Context())).To(Succeed())
			clock.Step(25 * time.Hour)
			g.Expect(sweeper.Look(t.Context())).To(Succeed())
			for _, kind := range []string{tokenuse.KindAccessToken, tokenuse.KindBotToken, tokenuse.KindTriggerToken} {
				g.Expect(s.Uses.LastUsed(t.Context(), kind, "gone")).To(BeEmpty(), kind)
			}
			g.Expect(s.Containers.Get(t.Context(), r.ID)).To(HaveField("Status", c.status))
			g.Expect(s.Epics.Get(t.Context(), acme.UID, labeled.ID)).To(HaveField("Labels", BeEmpty()))
			_, err = s.Issues.Get(t.Context(), place.UID, broken.IID)
			g.Expect(err).To(MatchError(issue.ErrNotFound))
		})
	}
}

func TestStores_giveActivityToProjectThatAdopts(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g := NewWithT(t)
		s, err := activity.Open(t.Context(), name, clocktesting.NewFakeClock(time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC)))
		g.Expect(err).NotTo(HaveOccurred())
		t.Cleanup(func() { g.Expect(s.Database.Close()).To(Succeed()) })
		former, next := database.Subject{Kind: database.KindProject, ID: 7, UID: "former"}, database.Subject{Kind: database.KindProject, ID: 9, UID: "next"}
		images, err := s.Containers.Ensure(t.Context(), former.ID, former.UID, "app")
		g.Expect(err).NotTo(HaveOccurred())
		first, own := issue.Issue{In: former, Title: "Broken"}, issue.Issue{In: next, Title: "New"}
		g.Expect(s.Issues.Create(t.Context(), &first)).To(Succeed())
		request := mergerequest.MergeRequest{In: former, Source: former, SourceBranch: "fix", TargetBranch: "main", Title: "Fix"}
		g.Expect(s.MergeRequests.Create(t.Context(), &request)).To(Succeed())
		comment := note.Note{In: former, On: first.Item(), Body: "Indeed."}
		g.Expect(s.Notes.Create(t.Context(), &comment)).To(Succeed())
		draft := draftnote.Draft{In: former, On: request.Item(), Body: "Why?"}
		g.Expect(s.DraftNotes.Create(t.Context(), &draft)).To(Succeed())

		for range 2 {
			g.Expect(s.Adopt(t.Context(), former.UID, next.ID, next.UID)).To(Succeed())
		}
		g.Expect(s.Containers.Get(t.Context(), images.ID)).To(HaveField("ProjectUID", next.UID))
		g.Expect(s.Issues.Get(t.Context(), next.UID, first.IID)).To(HaveField("In", next))
		g.Expect(s.MergeRequests.Get(t.Context(), next.UID, request.IID)).To(And(HaveField("In", next), HaveField("Source", next)))
		g.Expect(s.Notes.Get(t.Context(), first.Item(), comment.ID)).To(HaveField("In", next))
		g.Expect(s.DraftNotes.Get(t.Context(), request.Item(), draft.ID)).To(HaveField("In", next))
		g.Expect(s.Issues.Create(t.Context(), &own)).To(Succeed())
		g.Expect(own.IID).To(Equal(first.IID + 1))
		late := []error{
			s.Issues.Create(t.Context(), &issue.Issue{In: former, Title: "Late"}), s.Milestones.Create(t.Context(), &milestone.Milestone{In: former, Title: "Late"}),
			s.MergeRequests.Create(t.Context(), &mergerequest.MergeRequest{In: former, Source: former, SourceBranch: "late", TargetBranch: "main", Title: "Late"}),
		}
		g.Expect(late).To(HaveEach(MatchError(iid.ErrMoved)), "the items would be lost")
	})
}

func TestStores_adoptIntoProjectWithItemsOfItsOwn(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g := NewWithT(t)
		s, err := activity.Open(t.Context(), name, clocktesting.NewFakeClock(time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC)))
		g.Expect(err).NotTo(HaveOccurred())
		t.Cleanup(func() { g.Expect(s.Database.Close()).To(Succeed()) })
		former, next := database.Subject{Kind: database.KindProject, ID: 7, UID: "former"}, database.Subject{Kind: database.KindProject, ID: 7, UID: "next"}
		other := database.Subject{Kind: database.KindProject, ID: 8, UID: "other"}
		for _, i := range []issue.Issue{
			{In: former, Title: "Former 1"}, {In: former, Title: "Former 2"}, {In: other, Title: "Other 1"},
			{In: next, Title: "Own 1"}, {In: next, Title: "Own 2"}, {In: next, Title: "Own 3"},
		} {
			g.Expect(s.Issues.Create(t.Context(), &i)).To(Succeed())
		}
		for _, m := range []milestone.Milestone{{In: former, Title: "1.0"}, {In: former, Title: "2.0"}, {In: next, Title: "2.0"}} {
			g.Expect(s.Milestones.Create(t.Context(), &m)).To(Succeed())
		}

		for range 2 {
			g.Expect(s.Adopt(t.Context(), former.UID, next.ID, next.UID)).To(Succeed())
			g.Expect(s.Adopt(t.Context(), next.UID, next.ID, next.UID)).To(Succeed(), "a project that was restored with its UID")
		}
		for number, title := range []string{"Former 1", "Former 2", "Own 1", "Own 2", "Own 3"} {
			g.Expect(s.Issues.Get(t.Context(), next.UID, int64(number)+1)).To(HaveField("Title", title))
		}
		g.Expect(s.Issues.Get(t.Context(), other.UID, 1)).To(HaveField("Title", "Other 1"))
		another := issue.Issue{In: next, Title: "Own 4"}
		g.Expect(s.Issues.Create(t.Context(), &another)).To(Succeed())
		g.Expect(another.IID).To(BeEquivalentTo(6))

		titles := func(in database.Subject) (all []string) {
			page, _, err := s.Milestones.List(t.Context(), milestone.Filter{In: []types.UID{in.UID}}, 0, 10)
			g.Expect(err).NotTo(HaveOccurred())
			for _, m := range page {
				all = append(all, m.Title)
			}
			return all
		}
		g.Expect(titles(next)).To(ConsistOf("1.0", "2.0"))
		g.Expect(titles(former)).To(ConsistOf("2.0"), "it goes with the deleted project")
	})
}
