package mergerequest_test

import (
	"context"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/database/databasetest"
	"github.com/forgeplane/forgeplane/internal/mergerequest"
)

func TestMove_movesSourcesToo(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		noted := func(context.Context, mergerequest.MergeRequest) error { return nil }
		g, s := NewWithT(t), open(t, name)
		again := database.Subject{Kind: database.KindProject, ID: 30, UID: "again"}
		for n := range 120 {
			s.create(t, mergerequest.MergeRequest{SourceBranch: fmt.Sprint("b", n)})
		}
		other := s.create(t, mergerequest.MergeRequest{In: fork, Source: web, SourceBranch: "up"})
		from := s.create(t, mergerequest.MergeRequest{Source: fork, SourceBranch: "up"})
		g.Expect(s.Subjects(noted).Move(t.Context(), web, again)).To(Succeed())
		g.Expect(s.Subjects(noted).Move(t.Context(), web, again)).To(Succeed(), "it can be repeated")
		for number := range int64(120) {
			g.Expect(s.Get(t.Context(), again.UID, number+1)).To(And(HaveField("In", again), HaveField("Source", again), HaveField("State", mergerequest.Opened)))
		}
		g.Expect(s.WithID(t.Context(), other.ID)).To(And(HaveField("In", fork), HaveField("Source", again)))
		g.Expect(s.WithID(t.Context(), from.ID)).To(And(HaveField("In", again), HaveField("Source", fork)))
	})
}

func TestMove_closesOlderMergeRequestOfSameBranches(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g, s := NewWithT(t), open(t, name)
		again := database.Subject{Kind: database.KindProject, ID: 30, UID: "again"}
		for n := range 2 { // the numbers of the two projects differ, because numbers have moved before
			g.Expect(s.Delete(t.Context(), s.create(t, mergerequest.MergeRequest{SourceBranch: fmt.Sprint("gone", n)}).ID)).To(Succeed())
		}
		own := s.create(t, mergerequest.MergeRequest{SourceBranch: "fix"})
		forked := s.create(t, mergerequest.MergeRequest{Source: fork, SourceBranch: "fix"})
		alone := s.create(t, mergerequest.MergeRequest{SourceBranch: "alone"})
		ownAgain := s.create(t, mergerequest.MergeRequest{In: again, SourceBranch: "fix"})
		forkedAgain := s.create(t, mergerequest.MergeRequest{In: again, Source: fork, SourceBranch: "fix"})
		var closed []int64
		noted := func(_ context.Context, m mergerequest.MergeRequest) error {
			closed = append(closed, m.ID)
			return nil
		}
		g.Expect(s.Subjects(noted).Move(t.Context(), web, again)).To(Succeed())
		g.Expect(closed).To(ConsistOf(own.ID, forked.ID))
		for id, want := range map[int64]mergerequest.State{
			own.ID: mergerequest.Closed, forked.ID: mergerequest.Closed, alone.ID: mergerequest.Opened,
			ownAgain.ID: mergerequest.Opened, forkedAgain.ID: mergerequest.Opened,
		} {
			g.Expect(s.WithID(t.Context(), id)).To(And(HaveField("In", again), HaveField("State", want)), "%d", id)
		}
	})
}
