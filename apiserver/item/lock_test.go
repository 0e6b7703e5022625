package item_test

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/uptrace/bun"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/forgeplane/forgeplane/apiserver/item"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/internal/activity"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/issue"
)

func TestLock_needsItemInItsPlace(t *testing.T) {
	noon := time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC)
	for name, write := range map[string]func(context.Context, bun.IDB, item.Item) error{
		"Lock":  item.Lock,
		"Touch": func(ctx context.Context, db bun.IDB, i item.Item) error { return item.Touch(ctx, db, i, noon) },
	} {
		for meanwhile, tt := range map[string]struct {
			happens func(context.Context, activity.Stores, issue.Issue) error
			want    error
		}{
			"nothing":  {func(context.Context, activity.Stores, issue.Issue) error { return nil }, nil},
			"deletion": {func(ctx context.Context, s activity.Stores, i issue.Issue) error { return s.Issues.Delete(ctx, i.ID) }, item.Issue{}.Missing()},
			"adoption": {func(ctx context.Context, s activity.Stores, i issue.Issue) error {
				return s.Adopt(ctx, i.In.UID, 21, "next")
			}, item.Issue{}.Missing()},
		} {
			t.Run(name+" after "+meanwhile, func(t *testing.T) {
				g, s := NewWithT(t), familytest.Activity(t, clocktesting.NewFakeClock(noon))
				i := issue.Issue{In: database.Subject{Kind: database.KindProject, ID: 20, UID: "former"}, Title: "Search"}
				g.Expect(s.Issues.Create(t.Context(), &i)).To(Succeed())
				g.Expect(tt.happens(t.Context(), s, i)).To(Succeed())
				err := s.Database.Atomically(t.Context(), "writing", func(ctx context.Context, db bun.IDB) error {
					return write(ctx, db, item.Issue{Issue: i})
				})
				if tt.want == nil {
					g.Expect(err).NotTo(HaveOccurred())
				} else {
					g.Expect(err).To(MatchError(tt.want))
				}
			})
		}
	}
}
