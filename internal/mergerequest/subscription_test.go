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

func TestStore_keepsSubscriptionsAndKnowsAuthorsOfMerged(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g := NewWithT(t)
		db := databasetest.Open(t, name, iid.Migrations(), mergerequest.Migrations())
		store := mergerequest.New(db, clocktesting.NewFakePassiveClock(time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC)))
		in := database.Subject{Kind: database.KindProject, ID: 20, UID: "web"}
		ann, bob := database.User{ID: 2, UID: "ann"}, database.User{ID: 3, UID: "bob"}
		m := mergerequest.MergeRequest{In: in, Source: in, SourceBranch: "search", TargetBranch: "main", Title: "Search", Author: ann}
		g.Expect(store.Create(t.Context(), &m)).To(Succeed())
		expect := func(wantOn, wantKnown bool) {
			t.Helper()
			on, known, err := store.Subscribed(t.Context(), m.ID, bob.UID)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect([]bool{on, known}).To(Equal([]bool{wantOn, wantKnown}))
		}
		g.Expect(store.Subscribe(t.Context(), m.ID, ann, true)).To(Succeed())
		expect(false, false)
		g.Expect(store.Subscribe(t.Context(), m.ID, bob, true)).To(Succeed())
		expect(true, true)
		g.Expect(store.Subscribe(t.Context(), m.ID, bob, false)).To(Succeed())
		expect(false, true)

		g.Expect(store.HasMerged(t.Context(), in.UID, ann.UID)).To(BeFalse())
		_, err := store.Update(t.Context(), in.UID, m.IID, func(m *mergerequest.MergeRequest) error {
			m.State = mergerequest.Merged
			return nil
		})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(store.HasMerged(t.Context(), in.UID, ann.UID)).To(BeTrue())
		g.Expect(store.HasMerged(t.Context(), in.UID, bob.UID)).To(BeFalse())
		g.Expect(store.HasMerged(t.Context(), "other", ann.UID)).To(BeFalse())
	})
}
