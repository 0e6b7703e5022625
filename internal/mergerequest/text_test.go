package mergerequest_test

import (
	"database/sql"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/internal/database/databasetest"
	"github.com/forgeplane/forgeplane/internal/mergerequest"
)

// PostgreSQL computes all trigrams of a text for each version of the row that has it.
func TestText_isIndexedAgainOnlyIfItChanges(t *testing.T) {
	name := databasetest.PostgreSQL(t)
	g, s := NewWithT(t), open(t, name)
	i := s.create(t, mergerequest.MergeRequest{SourceBranch: "fix", Title: "Crash"})
	raw := databasetest.SQL(t, name)
	row := func() (version, text string) {
		t.Helper()
		g.Expect(raw.QueryRowContext(t.Context(), "SELECT ctid::text || ' ' || xmin::text, text FROM merge_request_texts WHERE rowid = $1", i.ID).Scan(&version, &text)).To(Succeed())
		return version, text
	}
	before, _ := row()
	g.Expect(s.Touch(t.Context(), i.ID, noon)).To(Succeed())
	_, err := s.Update(t.Context(), web.UID, i.IID, func(i *mergerequest.MergeRequest) error { i.State = mergerequest.Closed; return nil })
	g.Expect(err).NotTo(HaveOccurred())
	after, _ := row()
	g.Expect(after).To(Equal(before))
	_, err = s.Update(t.Context(), web.UID, i.IID, func(i *mergerequest.MergeRequest) error { i.Title = "Hang"; return nil })
	g.Expect(err).NotTo(HaveOccurred())
	after, text := row()
	g.Expect(after).NotTo(Equal(before))
	g.Expect(text).To(HavePrefix("hang\n"))
	g.Expect(raw.QueryRowContext(t.Context(), "SELECT indexdef FROM pg_indexes WHERE schemaname = current_schema() AND tablename = $1 AND indexdef LIKE '%trigrams%'", "merge_requests").
		Scan(&text)).To(MatchError(sql.ErrNoRows), "a write of the row would compute them")
}
