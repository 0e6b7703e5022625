package labeling_test

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/utils/clock"

	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/database/databasetest"
	"github.com/forgeplane/forgeplane/internal/iid"
	"github.com/forgeplane/forgeplane/internal/issue"
)

func TestRows_areMovedAndForgotten(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g, s := NewWithT(t), issue.New(databasetest.Open(t, name, iid.Migrations(), issue.Migrations()), clock.RealClock{})
		web := database.Subject{Kind: database.KindProject, ID: 20, UID: "web"}
		bug, docs, other := database.Label{ID: 9, UID: "bug"}, database.Label{ID: 10, UID: "docs"}, database.Label{ID: 9, UID: "other"}
		for _, labels := range [][]database.Label{{bug}, {bug, docs}, {other}} {
			g.Expect(s.Create(t.Context(), &issue.Issue{In: web, Title: "An issue", Labels: labels})).To(Succeed())
		}
		g.Expect(s.Labels().Move(t.Context(), bug, docs)).To(Succeed())
		for number, want := range map[int64][]database.Label{1: {docs}, 2: {docs}, 3: {other}} {
			g.Expect(s.Get(t.Context(), web.UID, number)).To(HaveField("Labels", want))
		}
		rows := func(after database.Subject) []database.Subject {
			t.Helper()
			found, err := s.Labels().After(t.Context(), after)
			g.Expect(err).NotTo(HaveOccurred())
			return found
		}
		first, second := database.Subject{Kind: "label", ID: 9, UID: "other"}, database.Subject{Kind: "label", ID: 10, UID: "docs"}
		g.Expect(rows(database.Subject{Kind: "label"})).To(Equal([]database.Subject{first, second}))
		g.Expect(rows(first)).To(Equal([]database.Subject{second}))
		g.Expect(s.Labels().Remove(t.Context(), first)).To(Succeed())
		g.Expect(rows(database.Subject{Kind: "label"})).To(Equal([]database.Subject{second}))
	})
}
