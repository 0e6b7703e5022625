package issue

import (
	"maps"
	"testing"
	"time"

	"github.com/uptrace/bun"
	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/database/databasetest"
	"github.com/forgeplane/forgeplane/internal/epic"
	"github.com/forgeplane/forgeplane/internal/iid"
	"github.com/forgeplane/forgeplane/internal/milestone"
	"github.com/forgeplane/forgeplane/internal/reaction"
	"github.com/forgeplane/forgeplane/internal/search"
)

func TestList_scansNoTableOfIssues(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		db := databasetest.Open(t, name, iid.Migrations(), milestone.Migrations(), epic.Migrations(), Migrations(), reaction.Migrations())
		filters := map[string][]Condition{
			"all": nil, "state": {Is(Opened)}, "iids": {Numbered(1, 2)}, "author": {By("a")}, "any assignee": {Assigned()}, "assignee": {AssignedTo("a")},
			"any label": {Labeled()}, "label": {LabeledWith("a")}, "any milestone": {Planned()}, "milestone": {PlannedFor("1.0")}, "one milestone": {InMilestone(1)},
			"any epic": {InEpic(SeenEpics{Groups: []types.UID{"acme"}, Viewer: "a"})}, "epic": {InEpics(1)}, "any weight": {Weighed()}, "weight": {Weighing(1)},
			"type": {OfType("incident")}, "confidential": {Confidential()}, "any reaction": {ReactedTo("a", "")}, "reaction": {ReactedTo("a", "tada")},
			"search": {Containing("text", "")}, "search in titles": {Containing("text", search.Title)}, "any due date": {HasDue()}, "due": {Due("2026-01-01", "2026-01-02")},
			"created since": {Created.Since(time.Now())}, "created until": {Created.Until(time.Now())}, "updated since": {Updated.Since(time.Now())}, "updated until": {Updated.Until(time.Now())},
		}
		for filter, all := range maps.Clone(filters) {
			if len(all) == 1 {
				filters["not "+filter] = []Condition{database.Not(all[0])}
			}
		}
		for filter, all := range filters {
			for _, order := range []Order{ByCreation, ByUpdate, ByTitle, ByDue, ByWeight} {
				databasetest.CheckScans(t, db, "issue", few, filter+" by "+string(order), func(db bun.IDB, projects []types.UID, total int) *bun.SelectQuery {
					return Query{Seen: Seen{Projects: projects, Viewer: "a"}, Conditions: all, Order: order}.sorted(db, total)
				})
			}
		}
	})
}

func TestList_readsIndexOfTextsUnlessManyIssuesAreFound(t *testing.T) {
	db := databasetest.Open(t, databasetest.SQLite(t), iid.Migrations(), milestone.Migrations(), epic.Migrations(), Migrations(), reaction.Migrations())
	databasetest.CheckTexts(t, db, few, func(db bun.IDB, projects []types.UID, total int) *bun.SelectQuery {
		return Query{Seen: Seen{Projects: projects, Viewer: "a"}, Conditions: []Condition{Containing("text", "")}, Order: ByCreation}.sorted(db, total)
	})
}
