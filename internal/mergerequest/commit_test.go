package mergerequest_test

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/database/databasetest"
	"github.com/forgeplane/forgeplane/internal/iid"
	"github.com/forgeplane/forgeplane/internal/mergerequest"
)

func TestStore_findsMergeRequestsOfCommits(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g := NewWithT(t)
		noon := time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC)
		store := mergerequest.New(databasetest.Open(t, name, iid.Migrations(), mergerequest.Migrations()), clocktesting.NewFakePassiveClock(noon))
		web, other := database.Subject{Kind: database.KindProject, ID: 20, UID: "web"}, database.Subject{Kind: database.KindProject, ID: 21, UID: "other"}
		create := func(in database.Subject, after time.Duration, merge, squash string) mergerequest.MergeRequest {
			m := mergerequest.MergeRequest{In: in, Source: in, SourceBranch: fmt.Sprintf("topic-%s-%s", merge, squash), TargetBranch: "main", Title: "Topic"}
			g.Expect(store.Create(t.Context(), &m)).To(Succeed())
			v := mergerequest.Version{MergeRequestID: m.ID, Head: "head-of-" + merge, Base: "base", Start: "start"}
			g.Expect(store.AddVersion(t.Context(), &v, "1")).To(Succeed())
			m, err := store.Update(t.Context(), in.UID, m.IID, func(m *mergerequest.MergeRequest) error {
				m.MergeCommit, m.SquashCommit = merge, squash
				if after > 0 {
					m.State, m.MergedAt = mergerequest.Merged, noon.Add(after)
				}
				return nil
			})
			g.Expect(err).NotTo(HaveOccurred())
			return m
		}
		late, early := create(web, 2*time.Hour, "m1", "s1"), create(web, time.Hour, "m2", "")
		create(web, 0, "open", "")
		create(other, time.Hour, "m1", "s1")
		iids := func(commits ...string) (all []int64) {
			found, err := store.MergedWith(t.Context(), web.UID, commits)
			g.Expect(err).NotTo(HaveOccurred())
			for _, c := range found {
				all = append(all, c.IID)
			}
			return all
		}
		g.Expect(iids("m1")).To(Equal([]int64{late.IID}))
		g.Expect(iids("s1")).To(Equal([]int64{late.IID}))
		g.Expect(iids("head-of-m2")).To(Equal([]int64{early.IID}))
		g.Expect(iids("m1", "s1", "m2", "head-of-open")).To(Equal([]int64{early.IID, late.IID}))
		g.Expect(iids("base", "start")).To(BeEmpty())
		g.Expect(iids()).To(BeEmpty())

		// The commits of one merge request are in two queries.
		many := make([]string, 4000)
		for n := range many {
			many[n] = fmt.Sprintf("%040d", n)
		}
		many[0], many[3999] = "m1", "s1"
		g.Expect(iids(many...)).To(Equal([]int64{late.IID}))

		newest, err := store.Newest(t.Context(), web.UID, 2)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(newest).To(HaveLen(2))
		g.Expect(newest[0].Head).To(Equal("head-of-open"))
		g.Expect(newest[1]).To(HaveField("IID", early.IID))
	})
}
