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
				for _, projects := range [][]types.UID{{"web"}, {"web", "shop"}} {
					q := Query{Projects: projects, Conditions: all, Order: order}
					for _, total := range []int{few, few + 1} {
						for _, step := range databasetest.Scans(t, db, "merge_request", func(db bun.IDB) *bun.SelectQuery { return q.sorted(db, total) }) {
							t.Errorf("%s by %s, %d merge requests of %v: %s", filter, order, total, projects, step)
						}
					}
				}
			}
		}
	})
}

func TestList_readsIndexOfTextsUnlessManyMergeRequestsAreFound(t *testing.T) {
	db := databasetest.Open(t, databasetest.SQLite(t), iid.Migrations(), milestone.Migrations(), Migrations(), reaction.Migrations())
	one, several := []types.UID{"web"}, []types.UID{"web", "shop"}
	for _, tt := range []struct {
		projects []types.UID
		total    int
		want     bool
	}{{one, few, true}, {one, few + 1, false}, {several, few, true}, {several, few + 1, true}} {
		q := Query{Projects: tt.projects, Conditions: []Condition{Containing("text", "")}, Order: ByCreation}
		plan := strings.Join(databasetest.Plan(t, db, func(db bun.IDB) *bun.SelectQuery { return q.sorted(db, tt.total) }), "\n")
		if strings.Contains(plan, "VIRTUAL TABLE") != tt.want {
			t.Errorf("with %d merge requests of %v, the index of texts must be read: %t; got %s", tt.total, tt.projects, tt.want, plan)
		}
	}
}
