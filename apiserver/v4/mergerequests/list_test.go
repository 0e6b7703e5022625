package mergerequests_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/apiserver/v4/mergerequests"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/feature"
	"github.com/forgeplane/forgeplane/internal/mergerequest"
	"github.com/forgeplane/forgeplane/internal/milestone"
	"github.com/forgeplane/forgeplane/internal/reaction"
)

// listWorld is a forge with the public project acme/web (20), the private project acme/secret (21), and the labels bug and docs of web. Rita is
// a Developer of the group acme (10), gus a Guest, and otto is in no project. Gus also is a Reporter of secret.
type listWorld struct {
	*familytest.Forge
	t *testing.T
}

func newListWorld(t *testing.T) listWorld {
	t.Helper()
	label := func(title string, id int64) *v1alpha1.Label {
		return &v1alpha1.Label{
			ObjectMeta: metav1.ObjectMeta{Namespace: "acme", Name: title},
			Spec:       v1alpha1.LabelSpec{ID: id, Title: title, Color: "red", ProjectRef: &v1alpha1.Reference{Name: "web"}},
		}
	}
	w := listWorld{familytest.New(t,
		familytest.User("rita", 3), familytest.User("gus", 4), familytest.User("otto", 5),
		familytest.Group("acme", "acme", 10, "", v1alpha1.VisibilityPublic), familytest.Project("acme", "web", 20, "acme", v1alpha1.VisibilityPublic),
		familytest.Project("acme", "secret", 21, "acme", v1alpha1.VisibilityPrivate), label("bug", 30), label("docs", 31),
		familytest.InGroup("acme", "acme", "rita", v1alpha1.RoleDeveloper), familytest.InGroup("acme", "acme", "gus", v1alpha1.RoleGuest),
		familytest.InProject("acme", "secret", "gus", v1alpha1.RoleReporter),
	), t}
	w.Activity = familytest.Activity(t, w.Clock)
	w.Serve(mergerequests.New(w.Kit).Table())
	return w
}

func (w listWorld) users(names ...string) (all []database.User) {
	for _, name := range names {
		all = append(all, w.UserRow(name))
	}
	return all
}

func (w listWorld) label(id int64) mergerequest.Label {
	w.t.Helper()
	l, err := catalog.ByID[*v1alpha1.Label](w.t.Context(), w.Catalog, id)
	if err != nil {
		w.t.Fatal(err)
	}
	return mergerequest.Label{ID: id, UID: l.UID}
}

// create adds a merge request into the branch main, a minute after the last one.
func (w listWorld) create(m mergerequest.MergeRequest) mergerequest.MergeRequest {
	w.t.Helper()
	w.Clock.SetTime(w.Clock.Now().Add(time.Minute))
	m.Source = m.In
	if m.TargetBranch == "" {
		m.TargetBranch = "main"
	}
	if err := w.Activity.MergeRequests.Create(w.t.Context(), &m); err != nil {
		w.t.Fatal(err)
	}
	return m
}

// iids returns the iids that a list has.
func (w listWorld) iids(as, request string) string {
	w.t.Helper()
	a := w.As(as, "GET "+request, "")
	if a.Code != 200 {
		return a.String()
	}
	all := []int64{}
	for _, m := range familytest.Decode[[]struct{ IID int64 }](w.t, a) {
		all = append(all, m.IID)
	}
	return fmt.Sprint(all)
}

// fill makes three merge requests of web.
func (w listWorld) fill() {
	w.t.Helper()
	web, bug, docs := w.ProjectRow(20), w.label(30), w.label(31)
	planned := milestone.Milestone{In: web, Title: "1.0", State: milestone.Active}
	if err := w.Activity.Milestones.Create(w.t.Context(), &planned); err != nil {
		w.t.Fatal(err)
	}
	first := w.create(mergerequest.MergeRequest{
		In: web, SourceBranch: "one", Title: "Straße", Description: "is closed", Author: w.UserRow("rita"), Labels: []mergerequest.Label{bug, docs},
		Assignees: w.users("rita", "gus"), Reviewers: w.users("gus"), MilestoneID: planned.ID,
	})
	second := w.create(mergerequest.MergeRequest{In: web, SourceBranch: "two", Title: "Draft: Été 100%", Description: "strasse", Author: w.UserRow("gus"), ApprovalsRequired: 2})
	w.create(mergerequest.MergeRequest{
		In: web, SourceBranch: "three", TargetBranch: "next", Title: "Third", Author: w.UserRow("rita"), Labels: []mergerequest.Label{bug}, Assignees: w.users("gus"),
		Reviewers: w.users("rita"), ApprovalsRequired: 1,
	})
	for _, name := range []string{"tada", "heart"} {
		r := reaction.Reaction{In: web, To: first.Item(), Name: name, User: w.UserRow("rita")}
		if err := w.Activity.Reactions.Add(w.t.Context(), &r); err != nil {
			w.t.Fatal(err)
		}
	}
	for id, names := range map[int64][]string{first.ID: {"gus", "otto"}, second.ID: {"otto"}} {
		for _, u := range w.users(names...) {
			if _, err := w.Activity.MergeRequests.Approve(w.t.Context(), id, u); err != nil {
				w.t.Fatal(err)
			}
		}
	}
	for id, names := range map[int64][]string{first.ID: {"gus"}, second.ID: {"gus", "rita"}} {
		rule := mergerequest.ApprovalRule{MergeRequestID: id, Name: "Rule", Required: 1}
		for _, u := range w.users(names...) {
			rule.Approvers = append(rule.Approvers, database.Subject{Kind: mergerequest.KindUser, ID: u.ID, UID: u.UID})
		}
		if err := w.Activity.MergeRequests.SaveApprovalRule(w.t.Context(), &rule); err != nil {
			w.t.Fatal(err)
		}
	}
	_, err := w.Activity.MergeRequests.Update(w.t.Context(), web.UID, 2, func(m *mergerequest.MergeRequest) error { m.State = mergerequest.Merged; return nil })
	if err != nil {
		w.t.Fatal(err)
	}
	w.Clock.SetTime(w.Clock.Now().Add(time.Hour))
}

func TestList_filters(t *testing.T) {
	g, w := NewWithT(t), newListWorld(t)
	w.fill()
	w.Feature(feature.MergeRequestApprovedFilter, true)
	for query, want := range map[string]string{
		"":             "[3 2 1]",
		"state=opened": "[3 1]", "state=merged": "[2]", "state=closed": "[]", "state=locked": "[]", "state=all&sort=asc": "[1 2 3]",
		"iids[]=1&iids[]=3": "[3 1]", "iids=2": "[2]",
		"labels=bug": "[3 1]", "labels=bug,docs": "[1]", "labels=none": "[2]", "labels=Any": "[3 1]", "labels=unknown": "[]", "not[labels]=docs": "[3 2]",
		"not[labels]=docs,bug": "[2]", "not[labels]=unknown": "[3 2 1]", "labels=bug&not[labels]=docs": "[3]",
		"milestone=1.0": "[1]", "milestone=None": "[3 2]", "milestone=any": "[1]", "milestone=9": "[]", "milestone=": "[3 2 1]", "not[milestone]=1.0": "[3 2]",
		"author_id=4": "[2]", "author_username=RITA": "[3 1]", "author_id=99": "[]", "not[author_id]=4": "[3 1]", "not[author_username]=rita,gus": "[]", "not[author_username]=nobody": "[3 2 1]",
		"assignee_id=3": "[1]", "assignee_id=None": "[2]", "assignee_id=ANY": "[3 1]", "assignee_id=0": "[2]", "assignee_username=gus": "[3 1]", "assignee_username=None": "[2]",
		"assignee_username[]=gus&assignee_username[]=rita": "[1]", "not[assignee_id]=3": "[3 2]", "not[assignee_username]=gus": "[2]",
		"reviewer_id=3": "[3]", "reviewer_id=none": "[2]", "reviewer_id=Any": "[3 1]", "reviewer_username=gus": "[1]", "reviewer_username=any": "[3 1]",
		"not[reviewer_id]=3": "[2 1]", "not[reviewer_username]=gus": "[3 2]", "not[reviewer_id]=3&not[reviewer_username]=gus": "[2]",
		"approved_by_ids=5": "[2 1]", "approved_by_ids[]=5&approved_by_ids[]=4": "[1]", "approved_by_ids=None": "[3]", "approved_by_ids[]=Any": "[2 1]", "approved_by_ids=99": "[]",
		"approver_ids=None": "[3]", "approver_ids=Any": "[2 1]", "approver_ids[]=5": "[]", "approver_ids=4": "[2 1]", "approver_ids=4,3": "[2]", "approved=yes": "[1]", "approved=no": "[3 2]",
		"my_reaction_emoji=tada": "[1]", "my_reaction_emoji=None": "[3 2]", "my_reaction_emoji=Any": "[1]", "not[my_reaction_emoji]=heart": "[3 2]", "my_reaction_emoji=rocket": "[]",
		"source_branch=two": "[2]", "target_branch=next": "[3]", "target_branch=main&source_branch=one": "[1]", "wip=yes": "[2]", "wip=no": "[3 1]",
		"search=STRASSE": "[2 1]", "search=strasse&in=title": "[1]", "search=strasse&in=description": "[2]", "search=strasse&in=title,description": "[2 1]", "search=100%25": "[2]",
		"environment=production": "[]", "deployed_after=2026-06-15T12:00:00Z": "[]", "deployed_before=2026-06-15T12:00:00Z": "[]",
		"created_after=2026-06-15T12:02:00Z": "[3 2]", "created_before=2026-06-15T12:02:00Z": "[2 1]", "updated_after=2026-06-15T12:03:00Z": "[3 2]", "updated_before=2026-06-15T12:02:30Z": "[1]",
		"scope=created_by_me": "[3 1]", "scope=assigned-to-me": "[1]", "scope=all": "[3 2 1]",
		"order_by=title&sort=asc": "[2 1 3]", "order_by=updated_at&sort=asc": "[1 2 3]", "per_page=1&page=2": "[2]",
		"order_by=priority":                   `400 {"error":"order_by does not have a valid value"}`,
		"sort=up":                             `400 {"error":"sort does not have a valid value"}`,
		"state=open":                          `400 {"error":"state does not have a valid value"}`,
		"scope=mine":                          `400 {"error":"scope does not have a valid value"}`,
		"view=full":                           `400 {"error":"view does not have a valid value"}`,
		"wip=maybe":                           `400 {"error":"wip does not have a valid value"}`,
		"approved=maybe":                      `400 {"error":"approved does not have a valid value"}`,
		"assignee_id=me":                      `400 {"error":"assignee_id should be an integer, 'None' or 'Any'"}`,
		"reviewer_id=me":                      `400 {"error":"reviewer_id should be an integer, 'None' or 'Any'"}`,
		"approved_by_ids=1,2,3,4,5,6":         `400 {"error":"approved_by_ids is too long (maximum is 5)"}`,
		"approved_by_ids=1,2,3,4,5":           "[]",
		"author_id=1&author_username=a":       `400 {"error":"author_id, author_username are mutually exclusive"}`,
		"assignee_id=1&assignee_username=a":   `400 {"error":"assignee_id, assignee_username are mutually exclusive"}`,
		"reviewer_id=1&reviewer_username=a":   `400 {"error":"reviewer_id, reviewer_username are mutually exclusive"}`,
		"created_after=soon":                  `400 {"error":"created_after is invalid"}`,
		"labels=" + strings.Repeat("a,", 300): `400 {"error":"there are too many filters"}`,
	} {
		for _, list := range []string{"/projects/20/merge_requests?", "/groups/10/merge_requests?", "/merge_requests?scope=all&"} {
			if strings.HasPrefix(query, "scope=") {
				list = strings.TrimSuffix(list, "scope=all&")
			}
			g.Expect(w.iids("rita", list+query)).To(Equal(want), list+query)
		}
	}
	g.Expect(w.As("rita", "GET /projects/20/merge_requests?per_page=2", "").Header.Get("X-Total")).To(Equal("3"))
	w.Feature(feature.MergeRequestApprovedFilter, false)
	g.Expect(w.iids("rita", "/projects/20/merge_requests?approved=yes")).To(Equal("[3 2 1]"))
}

func TestList_showsMergeRequestsThatCallerSees(t *testing.T) {
	g, w := NewWithT(t), newListWorld(t)
	w.fill()
	w.create(mergerequest.MergeRequest{In: w.ProjectRow(21), SourceBranch: "x", Title: "Hidden", Author: w.UserRow("gus"), Assignees: w.users("rita")})
	for _, test := range []struct{ as, request, want string }{
		{"rita", "/merge_requests", "[3 1]"},
		{"gus", "/merge_requests", "[1 2]"},
		{"rita", "/merge_requests?scope=assigned_to_me", "[1 1]"},
		{"rita", "/merge_requests?scope=all", "[1 3 2 1]"},
		{"otto", "/merge_requests?scope=all", "[3 2 1]"},
		{"otto", "/merge_requests", "[]"},
		{"", "/merge_requests?scope=all", "[3 2 1]"},
		{"", "/merge_requests", `401 {"message":"401 Unauthorized"}`},
		{"", "/merge_requests?scope=assigned-to-me", `401 {"message":"401 Unauthorized"}`},
		{"rita", "/groups/10/merge_requests", "[1 3 2 1]"},
		{"", "/groups/acme/merge_requests", "[3 2 1]"},
		{"", "/projects/20/merge_requests", "[3 2 1]"},
		{"gus", "/projects/21/merge_requests", "[1]"},
		{"otto", "/projects/21/merge_requests", `404 {"message":"404 Project Not Found"}`},
		{"otto", "/groups/11/merge_requests", `404 {"message":"404 Group Not Found"}`},
	} {
		g.Expect(w.iids(test.as, test.request)).To(Equal(test.want), "%s as %q", test.request, test.as)
	}
}

func TestList_showsMergeRequestsOfMilestone(t *testing.T) {
	g, w := NewWithT(t), newListWorld(t)
	w.fill() // with the milestone 1 of web
	acme, err := catalog.ByID[*v1alpha1.Group](t.Context(), w.Catalog, 10)
	g.Expect(err).NotTo(HaveOccurred())
	all := milestone.Milestone{In: database.Subject{Kind: database.KindGroup, ID: 10, UID: acme.UID}, Title: "All", State: milestone.Active}
	g.Expect(w.Activity.Milestones.Create(t.Context(), &all)).To(Succeed())
	w.create(mergerequest.MergeRequest{In: w.ProjectRow(20), SourceBranch: "four", Title: "Fourth", Author: w.UserRow("rita"), MilestoneID: all.ID})
	w.create(mergerequest.MergeRequest{In: w.ProjectRow(21), SourceBranch: "x", Title: "Hidden", Author: w.UserRow("rita"), MilestoneID: all.ID})
	for _, test := range []struct{ as, request, want string }{
		{"", "/projects/20/milestones/1/merge_requests", "[1]"},
		{"rita", "/groups/10/milestones/2/merge_requests", "[1 4]"}, {"", "/groups/10/milestones/2/merge_requests", "[4]"},
		{"rita", "/projects/20/milestones/2/merge_requests", `404 {"message":"404 Not found"}`},
		{"rita", "/groups/10/milestones/1/merge_requests", `404 {"message":"404 Not found"}`},
		{"otto", "/projects/21/milestones/1/merge_requests", `404 {"message":"404 Project Not Found"}`},
	} {
		g.Expect(w.iids(test.as, test.request)).To(Equal(test.want), "%s as %q", test.request, test.as)
	}
}

func TestList_showsWholeOrSimpleMergeRequests(t *testing.T) {
	g, w := NewWithT(t), newListWorld(t)
	w.fill()
	one := w.As("", "GET /projects/20/merge_requests/1", "")
	whole := familytest.Decode[map[string]json.RawMessage](t, one)
	single := []string{
		"subscribed", "changes_count", "latest_build_started_at", "latest_build_finished_at", "first_deployed_to_production_at", "pipeline", "head_pipeline",
		"diff_refs", "merge_error", "first_contribution", "user",
	}
	listed := familytest.Decode[[]map[string]json.RawMessage](t, w.As("", "GET /projects/20/merge_requests?iids[]=1", ""))[0]
	for _, name := range single {
		g.Expect(listed).NotTo(HaveKey(name))
		delete(whole, name)
	}
	g.Expect(slices.Sorted(maps.Keys(listed))).To(Equal(slices.Sorted(maps.Keys(whole))))
	for name, value := range whole {
		g.Expect(listed[name]).To(MatchJSON(value), name)
	}
	simple := w.As("", "GET /projects/20/merge_requests?iids[]=1&view=simple", "").Body
	g.Expect(simple).To(MatchJSON(`[{"id":1,"iid":1,"project_id":20,"title":"Straße","description":"is closed","state":"opened","created_at":"2026-06-15T12:01:00.000Z",
		"updated_at":"2026-06-15T12:01:00.000Z","web_url":"https://forge.example/acme/web/-/merge_requests/1"}]`))
	type labels struct{ Labels []struct{ Name string } }
	detailed := familytest.Decode[[]labels](t, w.As("", "GET /merge_requests?scope=all&iids[]=1&with_labels_details=true", ""))
	g.Expect(detailed[0].Labels).To(HaveExactElements(HaveField("Name", "bug"), HaveField("Name", "docs")))
}
