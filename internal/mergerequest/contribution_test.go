package mergerequest_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/internal/database/databasetest"
	"github.com/forgeplane/forgeplane/internal/mergerequest"
)

func TestHasMerged_knowsAuthorsOfMerged(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g, s := NewWithT(t), open(t, name)
		m := s.create(t, mergerequest.MergeRequest{SourceBranch: "search", Author: ann})
		g.Expect(s.HasMerged(t.Context(), web.UID, ann.UID)).To(BeFalse())
		_, err := s.Update(t.Context(), web.UID, m.IID, func(m *mergerequest.MergeRequest) error {
			m.State = mergerequest.Merged
			return nil
		})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(s.HasMerged(t.Context(), web.UID, ann.UID)).To(BeTrue())
		g.Expect(s.HasMerged(t.Context(), web.UID, bob.UID)).To(BeFalse())
		g.Expect(s.HasMerged(t.Context(), "other", ann.UID)).To(BeFalse())
	})
}
