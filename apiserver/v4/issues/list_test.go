package issues_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/uptrace/bun"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/epic"
	"github.com/forgeplane/forgeplane/internal/issue"
	"github.com/forgeplane/forgeplane/internal/reaction"
)

func rowsOf(ctx context.Context, d *database.DB, table, column string, id int64) (all []string, err error) {
	err = d.Read(ctx, "reading rows", func(ctx context.Context, db bun.IDB) error {
		return db.NewSelect().TableExpr(table).Column(column).Where("item_kind = ?", issue.Kind).Where("item_id = ?", id).Order("id").Scan(ctx, &all)
	})
	return all, err
}

func TestList_filters(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	group, web := place[*v1alpha1.Group](w, database.KindGroup, 10), place[*v1alpha1.Project](w, database.KindProject, 20)
	m, e := w.milestone(group, "1.0"), w.epic(group, epic.Epic{Title: "Sales"})
	first := w.create("rita", fmt.Sprintf(`{"title":"Straße","description":"is closed","labels":"bug,docs","assignee_ids":[3,4],"milestone_id":%d,"epic_id":%d,"weight":2,"due_date":"2026-06-15"}`, m, e))
	w.create("gus", `{"title":"Été 100%","description":"strasse","confidential":true}`)
	w.create("rita", `{"title":"Third","labels":"bug","assignee_ids":[4],"issue_type":"task","due_date":"2026-06-10","weight":1}`)
	w.done("gus", "PUT /projects/20/issues/2", `{"state_event":"close"}`)
	for _, name := range []string{"tada", "heart"} {
		r := reaction.Reaction{In: web, To: database.Item{Kind: issue.Kind, ID: first.ID}, Name: name, User: w.user("rita")}
		g.Expect(w.Activity.Reactions.Add(t.Context(), &r)).To(Succeed())
	}
	w.Clock.SetTime(time.Date(2026, 6, 15, 13, 0, 0, 0, time.UTC))
	for query, want := range map[string]string{
		"":             "[3 2 1]",
		"state=opened": "[3 1]", "state=closed": "[2]", "state=all&sort=asc": "[1 2 3]", "iids[]=1&iids[]=3": "[3 1]", "iids=2": "[2]", "not[iids]=2,3": "[1]",
		"labels=bug": "[3 1]", "labels=bug,docs": "[1]", "labels=none": "[2]", "labels=Any": "[3 1]", "labels=unknown": "[]", "not[labels]=docs": "[3 2]",
		"not[labels]=docs,bug": "[2]", "not[labels]=unknown": "[3 2 1]", "labels=bug&not[labels]=docs": "[3]",
		"milestone=1.0": "[1]", "milestone=None": "[3 2]", "milestone=any": "[1]", "milestone=9": "[]", "milestone=": "[3 2 1]", "not[milestone]=1.0": "[3 2]",
		"author_id=4": "[2]", "author_username=RITA": "[3 1]", "author_id=99": "[]", "not[author_id]=4": "[3 1]", "not[author_username]=rita,gus": "[]", "not[author_username]=nobody": "[3 2 1]",
		"assignee_id=3": "[1]", "assignee_id=None": "[2]", "assignee_id=Any": "[3 1]", "assignee_id=0": "[2]", "assignee_username=gus": "[3 1]", "assignee_username=None": "[2]",
		"assignee_username[]=gus&assignee_username[]=rita": "[1]", "not[assignee_id]=3": "[3 2]", "not[assignee_username]=gus": "[2]",
		"my_reaction_emoji=tada": "[1]", "my_reaction_emoji=None": "[3 2]", "my_reaction_emoji=Any": "[1]", "not[my_reaction_emoji]=heart": "[3 2]", "my_reaction_emoji=rocket": "[]", "my_reaction_emoji=": "[3 2 1]",
		"search=STRASSE": "[2 1]", "search=strasse&in=title": "[1]", "search=strasse&in=description": "[2]", "search=strasse&in=title,description": "[2 1]", "search=100%25": "[2]",
		"search=%C3%A9t": "[2]", "not[search]=strasse": "[3]", "not[search]=strasse&not[in]=title": "[3 2]", "search=t%22h": "[]",
		"created_after=2026-06-15T12:02:00Z": "[3 2]", "created_before=2026-06-15T12:02:00Z": "[2 1]", "updated_after=2026-06-15T12:03:00Z": "[3 2]", "updated_before=2026-06-15T12:02:30Z": "[1]",
		"confidential=true": "[2]", "confidential=false": "[3 1]", "issue_type=task": "[3]", "not[issue_type]=task": "[2 1]",
		"weight=2": "[1]", "weight=None": "[2]", "weight=Any": "[3 1]", "not[weight]=2": "[3 2]", "epic_id=None": "[3 2]", fmt.Sprintf("epic_id=%d", e): "[1]", fmt.Sprintf("not[epic_id]=%d", e): "[3 2]",
		"due_date=0": "[2]", "due_date=any": "[3 1]", "due_date=today": "[1]", "due_date=tomorrow": "[]", "due_date=overdue": "[3]", "due_date=week": "[1]", "due_date=month": "[3 1]",
		"due_date=next_month_and_previous_two_weeks": "[3 1]",
		"scope=created_by_me":                        "[3 1]", "scope=assigned-to-me": "[1]", "scope=all": "[3 2 1]",
		"order_by=title&sort=asc": "[1 3 2]", "order_by=due_date&sort=asc": "[3 1 2]", "order_by=weight": "[1 3 2]", "order_by=updated_at": "[3 2 1]", "per_page=1&page=2": "[2]",
		"order_by=priority":             `400 {"error":"order_by does not have a valid value"}`,
		"state=merged":                  `400 {"error":"state does not have a valid value"}`,
		"assignee_id=me":                `400 {"error":"assignee_id should be an integer, 'None' or 'Any'"}`,
		"author_id=1&author_username=a": `400 {"error":"author_id, author_username are mutually exclusive"}`,
		"created_after=soon":            `400 {"error":"created_after is invalid"}`,
	} {
		g.Expect(w.iids("rita", "/projects/20/issues?"+query)).To(Equal(want), query)
	}
	g.Expect(w.iids("gus", "/groups/10/issues?labels=bug")).To(Equal("[3 1]"))
	g.Expect(w.iids("gus", "/issues?labels=bug&scope=assigned_to_me")).To(Equal("[3 1]"))
	g.Expect(w.iids("rita", "/projects/20/issues?not[labels]="+strings.Repeat("a,", 150))).To(Equal("[3 2 1]"))
	g.Expect(w.iids("rita", "/projects/20/issues?labels="+strings.Repeat("a,", 300))).To(Equal(`400 {"error":"there are too many filters"}`))
	a := w.As("rita", "GET /projects/20/issues?per_page=2", "")
	g.Expect(a.Header.Get("X-Total")).To(Equal("3"))
}

func TestList_showsIssuesOfMilestone(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	group, web := place[*v1alpha1.Group](w, database.KindGroup, 10), place[*v1alpha1.Project](w, database.KindProject, 20)
	all, one := w.milestone(group, "All"), w.milestone(web, "1.0")
	w.create("rita", fmt.Sprintf(`{"title":"Crash","milestone_id":%d}`, all))
	w.create("rita", fmt.Sprintf(`{"title":"Noise","milestone_id":%d}`, one))
	w.create("rita", fmt.Sprintf(`{"title":"Smoke","milestone_id":%d,"confidential":true}`, all))
	for _, test := range []struct{ as, request, want string }{
		{"rita", fmt.Sprintf("/groups/10/milestones/%d/issues", all), "[3 1]"}, {"", fmt.Sprintf("/groups/10/milestones/%d/issues", all), "[1]"},
		{"rita", fmt.Sprintf("/projects/20/milestones/%d/issues", one), "[2]"},
		{"rita", fmt.Sprintf("/projects/20/milestones/%d/issues", all), `404 {"message":"404 Not found"}`},
		{"rita", fmt.Sprintf("/groups/10/milestones/%d/issues", one), `404 {"message":"404 Not found"}`},
	} {
		g.Expect(w.iids(test.as, test.request)).To(Equal(test.want), "%s as %q", test.request, test.as)
	}
}

func TestList_showsNoIssueByEpicThatCallerCannotSee(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	group := place[*v1alpha1.Group](w, database.KindGroup, 10)
	hidden, open := w.epic(group, epic.Epic{Title: "Secret", Confidential: true, Author: w.user("gus")}), w.epic(group, epic.Epic{Title: "Sales"})
	w.create("rita", fmt.Sprintf(`{"title":"Crash","epic_id":%d}`, hidden))
	w.create("rita", fmt.Sprintf(`{"title":"Noise","epic_id":%d}`, open))
	w.create("rita", `{"title":"Smoke"}`)
	for _, list := range []string{"/projects/20/issues", "/groups/10/issues", "/issues"} {
		for query, want := range map[string]struct{ seen, hidden string }{
			fmt.Sprintf("epic_id=%d", hidden):      {"[1]", "[]"},
			fmt.Sprintf("not[epic_id]=%d", hidden): {"[3 2]", "[3 2 1]"},
			fmt.Sprintf("epic_id=%d", open):        {"[2]", "[2]"},
			"epic_id=Any":                          {"[2 1]", "[2]"},
			"epic_id=None":                         {"[3]", "[3 1]"},
		} {
			for as, sees := range map[string]bool{"": false, "otto": false, "gus": true, "rita": true, "root": true} {
				expected := want.hidden
				if sees {
					expected = want.seen
				}
				g.Expect(w.iids(as, list+"?scope=all&"+query)).To(Equal(expected), "%s %s as %q", list, query, as)
			}
		}
	}
}

func TestList_showsIssueOfEpicThatIsNoLongerHidden(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	e := w.epic(place[*v1alpha1.Group](w, database.KindGroup, 10), epic.Epic{Title: "Secret", Confidential: true, Author: w.user("gus")})
	w.create("rita", fmt.Sprintf(`{"title":"Crash","epic_id":%d}`, e))
	g.Expect(w.iids("", "/projects/20/issues?epic_id=Any")).To(Equal("[]"))
	_, err := w.Activity.Epics.Update(t.Context(), e, func(_ context.Context, e *epic.Epic) error { e.Confidential = false; return nil })
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(w.iids("", "/projects/20/issues?epic_id=Any")).To(Equal("[1]"))
}
