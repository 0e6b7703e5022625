package mergerequest

import (
	"maps"
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
	"github.com/forgeplane/forgeplane/internal/search"
)

func TestList_scansNoTableOfMergeRequests(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		db := databasetest.Open(t, name, iid.Migrations(), milestone.Migrations(), Migrations(), reaction.Migrations())
		filters := map[string][]Condition{
			"all": nil, "state": {Is(Opened)}, "iids": {Numbered(1, 2)}, "author": {By("a")}, "any assignee": {Assigned()}, "assignee": {AssignedTo("a")},
			"any reviewer": {Reviewed()}, "reviewer": {ReviewedBy("a")}, "any approval": {Approved()}, "approver": {ApprovedBy("a")}, "approved": {FullyApproved()}, "any named": {NamingApprover()}, "named": {NamingApprovers("a")},
			"source": {From("b")}, "target": {Into("b")}, "drafts": {Drafts()}, "any label": {Labeled()}, "label": {LabeledWith("a")},
			"any milestone": {Planned()}, "milestone": {PlannedFor("1.0")}, "one milestone": {InMilestone(1)}, "any reaction": {ReactedTo("a", "")}, "reaction": {ReactedTo("a", "tada")},
			"search": {Containing("text", "")}, "search in titles": {Containing("text", search.Title)},
			"created since": {Created.Since(time.Now())}, "created until": {Created.Until(time.Now())}, "updated since": {Updated.Since(time.Now())}, "updated until": {Updated.Until(time.Now())},
			"any deployment": {DeployedTo("", time.Time{}, time.Time{})}, "deployment": {DeployedTo("production", time.Now(), time.Now())},
		}
		for filter, all := range maps.Clone(filters) {
			if len(all) == 1 {
				filters["not "+filter] = []Condition{database.Not(all[0])}
			}
		}
		for filter, all := range filters {
			for _, order := range []Order{ByCreation, ByUpdate, ByTitle} {
				databasetest.CheckScans(t, db, "merge_request", few, filter+" by "+string(order), func(db bun.IDB, projects []types.UID, total int) *bun.SelectQuery {
					return Query{Projects: projects, Conditions: all, Order: order}.sorted(db, total)
				})
			}
		}
	})
}

func TestList_readsIndexOfTextsUnlessManyMergeRequestsAreFound(t *testing.T) {
	db := databasetest.Open(t, databasetest.SQLite(t), iid.Migrations(), milestone.Migrations(), Migrations(), reaction.Migrations())
	databasetest.CheckTexts(t, db, few, func(db bun.IDB, projects []types.UID, total int) *bun.SelectQuery {
		return Query{Projects: projects, Conditions: []Condition{Containing("text", "")}, Order: ByCreation}.sorted(db, total)
	})
}

func TestList_sortsNothingIfManyMergeRequestsAreFound(t *testing.T) {
	db := databasetest.Open(t, databasetest.SQLite(t), iid.Migrations(), milestone.Migrations(), Migrations(), reaction.Migrations())
	for _, order := range []Order{ByCreation, ByUpdate, ByTitle} {
		q := Query{Projects: []types.UID{"web"}, Conditions: []Condition{Approved()}, Order: order}
		plan := strings.Join(databasetest.Plan(t, db, func(db bun.IDB) *bun.SelectQuery { return q.sorted(db, few+1) }), "\n")
		if strings.Contains(plan, "TEMP B-TREE") {
			t.Errorf("by %s: %s", order, plan)
		}
	}
}
