package mergerequest

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/uptrace/bun"
	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/database/databasetest"
	"github.com/forgeplane/forgeplane/internal/iid"
	"github.com/forgeplane/forgeplane/internal/milestone"
	"github.com/forgeplane/forgeplane/internal/reaction"
)

func TestList_scansNoTableOfMergeRequests(t *testing.T) {
	db := databasetest.Open(t, databasetest.SQLite(t), iid.Migrations(), milestone.Migrations(), Migrations(), reaction.Migrations())
	for name, c := range map[string][]Condition{
		"all": nil, "state": {Is(Opened)}, "iids": {Numbered(1, 2)}, "author": {By("a")}, "any assignee": {Assigned()}, "assignee": {AssignedTo("a")},
		"any reviewer": {Reviewed()}, "reviewer": {ReviewedBy("a")}, "any approval": {Approved()}, "approver": {ApprovedBy("a")}, "approved": {FullyApproved()}, "any named": {NamingApprover()}, "named": {NamingApprovers("a")},
		"source": {From("b")}, "target": {Into("b")}, "drafts": {Drafts()}, "any label": {Labeled()}, "label": {LabeledWith("a")}, "no label": {database.Not(LabeledWith("a"))},
		"any milestone": {Planned()}, "milestone": {PlannedFor("1.0")}, "one milestone": {InMilestone(1)}, "reaction": {ReactedTo("a", "tada")},
		"search": {Containing("text", "")}, "created": {Created.Since(time.Now())}, "updated": {Updated.Until(time.Now())},
	} {
		for _, order := range []Order{ByCreation, ByUpdate, ByTitle} {
			var plan []struct {
				ID, Parent, Notused int64
				Detail              string
			}
			err := db.Read(t.Context(), "explaining a query", func(ctx context.Context, db bun.IDB) error {
				q := Query{Projects: []types.UID{"web"}, Conditions: c, Order: order}
				return db.NewRaw("EXPLAIN QUERY PLAN ?", q.sorted(db, q.selected(db))).Scan(ctx, &plan)
			})
			if err != nil || len(plan) == 0 {
				t.Fatal(plan, err)
			}
			for _, step := range plan {
				if strings.HasPrefix(step.Detail, "SCAN merge_request") && !strings.Contains(step.Detail, "VIRTUAL TABLE INDEX") {
					t.Errorf("%s by %s: %s", name, order, step.Detail)
				}
			}
		}
	}
}
