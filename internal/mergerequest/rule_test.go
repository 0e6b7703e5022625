package mergerequest_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/database/databasetest"
	"github.com/forgeplane/forgeplane/internal/iid"
	"github.com/forgeplane/forgeplane/internal/mergerequest"
)

func TestApprovalRules_belongToMergeRequest(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g := NewWithT(t)
		s := mergerequest.New(databasetest.Open(t, name, iid.Migrations(), mergerequest.Migrations()), clocktesting.NewFakePassiveClock(time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC)))
		in := database.Subject{Kind: database.KindProject, ID: 20, UID: "web"}
		m := mergerequest.MergeRequest{In: in, Source: in, SourceBranch: "topic", TargetBranch: "main", Title: "Mend"}
		g.Expect(s.Create(t.Context(), &m)).To(Succeed())
		ann, acme := database.Subject{Kind: mergerequest.KindUser, ID: 2, UID: "ann"}, database.Subject{Kind: database.KindGroup, ID: 10, UID: "acme"}
		first := mergerequest.ApprovalRule{MergeRequestID: m.ID, Name: "First", Required: 1, Approvers: []database.Subject{acme, ann}}
		second := mergerequest.ApprovalRule{MergeRequestID: m.ID, Name: "Second", Required: 2}
		g.Expect(s.SaveApprovalRule(t.Context(), &first)).To(Succeed())
		g.Expect(s.SaveApprovalRule(t.Context(), &second)).To(Succeed())
		taken := mergerequest.ApprovalRule{MergeRequestID: m.ID, Name: "First"}
		g.Expect(s.SaveApprovalRule(t.Context(), &taken)).To(MatchError(mergerequest.ErrRuleTaken))
		elsewhere := mergerequest.ApprovalRule{ID: first.ID, MergeRequestID: m.ID + 1, Name: "Third"}
		g.Expect(s.SaveApprovalRule(t.Context(), &elsewhere)).To(MatchError(mergerequest.ErrRuleNotFound))
		g.Expect(s.ApprovalRules(t.Context(), m.ID, m.ID+1)).To(Equal(map[int64][]mergerequest.ApprovalRule{m.ID: {first, second}}))

		first.Name, first.Approvers = "Renamed", []database.Subject{ann}
		g.Expect(s.SaveApprovalRule(t.Context(), &first)).To(Succeed())
		g.Expect(s.DeleteApprovalRule(t.Context(), m.ID+1, second.ID)).To(MatchError(mergerequest.ErrRuleNotFound))
		g.Expect(s.DeleteApprovalRule(t.Context(), m.ID, second.ID)).To(Succeed())
		g.Expect(s.DeleteApprovalRule(t.Context(), m.ID, second.ID)).To(MatchError(mergerequest.ErrRuleNotFound))
		g.Expect(s.ApprovalRules(t.Context(), m.ID)).To(Equal(map[int64][]mergerequest.ApprovalRule{m.ID: {first}}))
		g.Expect(s.Delete(t.Context(), m.ID)).To(Succeed())
		g.Expect(s.ApprovalRules(t.Context(), m.ID)).To(BeEmpty())
	})
}
