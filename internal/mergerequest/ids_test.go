package mergerequest_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/database/databasetest"
	"github.com/forgeplane/forgeplane/internal/mergerequest"
)

func TestOpenFrom_returnsFirstOpenOnesOfTheBranch(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g, s := NewWithT(t), open(t, name)
		closed := s.create(t, mergerequest.MergeRequest{SourceBranch: "fix"})
		_, err := s.Update(t.Context(), web.UID, closed.IID, func(m *mergerequest.MergeRequest) error { m.State = mergerequest.Closed; return nil })
		g.Expect(err).NotTo(HaveOccurred())
		first := s.create(t, mergerequest.MergeRequest{SourceBranch: "fix", Labels: []database.Label{bug}})
		s.create(t, mergerequest.MergeRequest{SourceBranch: "other"})
		s.create(t, mergerequest.MergeRequest{SourceBranch: "fix", Source: fork})
		second := s.create(t, mergerequest.MergeRequest{SourceBranch: "fix", Source: web, In: fork})
		found, err := s.OpenFrom(t.Context(), web.UID, "fix", 3)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(found).To(HaveExactElements(And(HaveField("ID", first.ID), HaveField("Labels", first.Labels)), HaveField("ID", second.ID)))
		g.Expect(s.OpenFrom(t.Context(), web.UID, "fix", 1)).To(HaveLen(1))
	})
}
