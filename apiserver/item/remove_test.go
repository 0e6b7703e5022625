package item_test

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/forgeplane/forgeplane/apiserver/item"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/draftnote"
	"github.com/forgeplane/forgeplane/internal/epic"
	"github.com/forgeplane/forgeplane/internal/note"
	"github.com/forgeplane/forgeplane/internal/reaction"
)

func TestRemove_removesNotesWrittenMeanwhile(t *testing.T) {
	g := NewWithT(t)
	s := familytest.Activity(t, clocktesting.NewFakeClock(time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC)))
	in := database.Subject{Kind: database.KindGroup, ID: 10, UID: "acme"}
	e := epic.Epic{In: in, Title: "Search"}
	g.Expect(s.Epics.Create(t.Context(), &e)).To(Succeed())
	late := note.Note{In: in, On: e.Item(), Body: "Late"}
	drafts := []*draftnote.Draft{{In: in, On: e.Item(), Body: "Early"}, {In: in, On: e.Item(), Body: "Late"}}
	g.Expect(s.DraftNotes.Create(t.Context(), drafts[0])).To(Succeed())
	g.Expect(item.Remove(t.Context(), s, e.Item(), func(ctx context.Context) error {
		g.Expect(s.Notes.Create(ctx, &late)).To(Succeed())
		g.Expect(s.DraftNotes.Create(ctx, drafts[1])).To(Succeed())
		g.Expect(s.Reactions.Add(ctx, &reaction.Reaction{In: in, To: late.Item(), Name: "tada"})).To(Succeed())
		return s.Epics.Delete(ctx, e.ID)
	})).To(Succeed())
	_, err := s.Notes.Get(t.Context(), e.Item(), late.ID)
	g.Expect(err).To(MatchError(note.ErrNotFound))
	for _, d := range drafts {
		_, err := s.DraftNotes.Get(t.Context(), e.Item(), d.ID)
		g.Expect(err).To(MatchError(draftnote.ErrNotFound), d.Body)
	}
	_, total, err := s.Reactions.List(t.Context(), late.Item(), 0, 1)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(total).To(BeZero())
	g.Expect(item.Remove(t.Context(), s, e.Item(), func(ctx context.Context) error { return s.Epics.Delete(ctx, e.ID) })).
		To(MatchError(epic.ErrNotFound), "it is gone already")
}
