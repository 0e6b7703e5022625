package milestones_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/item"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/apiserver/v4/milestones"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/audit/audittest"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/issue"
	"github.com/forgeplane/forgeplane/internal/mergerequest"
)

// newForge returns a forge with the public group acme/shop (11) in acme (10) and its public projects web (20) and app (21), and the private project
// hidden (22) in the private group closed (12). Rita is a Reporter of acme and closed, and otto is a Guest of hidden alone.
func newForge(t *testing.T) *familytest.Forge {
	t.Helper()
	f := familytest.New(t,
		familytest.User("rita", 1), familytest.User("otto", 3),
		familytest.Group("acme", "acme", 10, "", v1alpha1.VisibilityPublic), familytest.Group("acme", "shop", 11, "acme", v1alpha1.VisibilityPublic),
		familytest.Project("acme", "web", 20, "shop", v1alpha1.VisibilityPublic), familytest.Project("acme", "app", 21, "shop", v1alpha1.VisibilityPublic),
		familytest.Group("acme", "closed", 12, "", v1alpha1.VisibilityPrivate), familytest.Project("acme", "hidden", 22, "closed", v1alpha1.VisibilityPrivate),
		familytest.InGroup("acme", "acme", "rita", v1alpha1.RoleReporter), familytest.InGroup("acme", "closed", "rita", v1alpha1.RoleReporter),
		familytest.InProject("acme", "hidden", "otto", v1alpha1.RoleGuest),
	)
	f.Activity = familytest.Activity(t, f.Clock)
	return f.Serve(milestones.New(f.Kit).Table())
}

// create creates a milestone and returns its id.
func create(t *testing.T, f *familytest.Forge, in, body string) int64 {
	t.Helper()
	answer := f.As("rita", "POST "+in+"/milestones", body)
	if answer.Code != http.StatusCreated {
		t.Fatal(answer)
	}
	return familytest.Decode[struct{ ID int64 }](t, answer).ID
}

func TestMilestone_isCreatedReadChangedAndDeleted(t *testing.T) {
	g, f := NewWithT(t), newForge(t)
	const created = `"created_at":"2026-06-15T12:00:00.000Z","updated_at":"2026-06-15T12:00:00.000Z"`
	const made = `{"id":1,"iid":1,"project_id":20,"title":"1.0","description":"First","state":"active",` + created +
		`,"due_date":"2026-06-14","start_date":"2026-06-01","expired":true,"web_url":"https://forge.example/acme/shop/web/-/milestones/1"}`
	answer := f.As("rita", "POST /projects/20/milestones", `{"title":" 1.0 ","description":"First","start_date":"2026-06-01","due_date":"2026-06-14"}`)
	g.Expect(answer.Code).To(Equal(http.StatusCreated), answer.Body)
	g.Expect(answer.Body).To(MatchJSON(made))
	g.Expect(f.As("", "GET /projects/20/milestones/1", "").Body).To(MatchJSON(made))
	g.Expect(f.As("rita", "POST /groups/11/milestones", `{"title":"All"}`).Body).To(MatchJSON(`{"id":2,"iid":1,"group_id":11,"title":"All","description":"",
		"state":"active",` + created + `,"due_date":null,"start_date":null,"expired":false,"web_url":"https://forge.example/groups/acme/shop/-/milestones/1"}`))

	f.Clock.SetTime(f.Clock.Now().Add(time.Hour))
	answer = f.As("rita", "PUT /projects/20/milestones/1", `{"title":"1.1","description":null,"due_date":"","state_event":"close"}`)
	g.Expect(answer.Body).To(MatchJSON(`{"id":1,"iid":1,"project_id":20,"title":"1.1","description":"","state":"closed","created_at":"2026-06-15T12:00:00.000Z",
		"updated_at":"2026-06-15T13:00:00.000Z","due_date":null,"start_date":"2026-06-01","expired":false,
		"web_url":"https://forge.example/acme/shop/web/-/milestones/1"}`))
	g.Expect(f.As("rita", "PUT /projects/20/milestones/1", `{"state_event":"activate"}`).Body).To(ContainSubstring(`"state":"active"`))
	g.Expect(f.As("rita", "DELETE /projects/20/milestones/1", "").String()).To(Equal("204"))
	for _, request := range []string{"GET /projects/20/milestones/1", "DELETE /projects/20/milestones/1", "GET /projects/20/milestones/2", "GET /groups/11/milestones/1"} {
		g.Expect(f.As("rita", request, "").String()).To(Equal(`404 {"message":"404 Not found"}`), request)
	}
	g.Expect(f.As("rita", "PUT /projects/20/milestones/2", `{"title":"x"}`).String()).To(Equal(`404 {"message":"404 Not found"}`), "it is of the group")
}

func TestMilestone_isRefusedIfItIsInvalid(t *testing.T) {
	g, f := NewWithT(t), newForge(t)
	create(t, f, "/projects/20", `{"title":"web"}`)
	create(t, f, "/groups/11", `{"title":"shop"}`)
	create(t, f, "/groups/10", `{"title":"acme"}`)
	const taken = `400 {"message":{"title":["already being used for another group or project milestone."]}}`
	long := strings.Repeat("ä", 256)
	for _, test := range []struct{ request, body, want string }{
		{"POST /projects/20/milestones", `{}`, `400 {"error":"title is missing"}`},
		{"POST /projects/20/milestones", `{"title":" "}`, `400 {"message":{"title":["can't be blank"]}}`},
		{"POST /projects/20/milestones", `{"title":"` + long + `"}`, `400 {"message":{"title":["is too long (maximum is 255 characters)"]}}`},
		{"POST /projects/20/milestones", `{"title":"web"}`, taken},
		{"POST /projects/20/milestones", `{"title":"shop"}`, taken},
		{"POST /projects/20/milestones", `{"title":"acme"}`, taken},
		{"POST /groups/11/milestones", `{"title":"acme"}`, taken},
		{"POST /groups/11/milestones", `{"title":"web"}`, taken},
		{"POST /projects/20/milestones", `{"title":"x","start_date":"2026-01-02","due_date":"2026-01-01"}`, `400 {"message":{"due_date":["must be greater than start date"]}}`},
		{"POST /projects/20/milestones", `{"title":"x","due_date":"soon"}`, `400 {"error":"due_date is invalid"}`},
		{"PUT /projects/20/milestones/1", `{"title":"shop"}`, taken},
		{"PUT /projects/20/milestones/1", `{"title":""}`, `400 {"message":{"title":["can't be blank"]}}`},
		{"PUT /projects/20/milestones/1", `{"state_event":"open"}`, `400 {"error":"state_event does not have a valid value"}`},
		{"PUT /projects/20/milestones/1", `{}`, `400 {"error":"title, description, start_date, due_date, state_event are missing, at least one parameter must be provided"}`},
		{"GET /projects/20/milestones?state=open", ``, `400 {"error":"state does not have a valid value"}`},
	} {
		g.Expect(f.As("rita", test.request, test.body).String()).To(Equal(test.want), "%s %.80s", test.request, test.body)
	}
	g.Expect(f.As("rita", "PUT /projects/20/milestones/1", `{"title":"web"}`).Code).To(Equal(http.StatusOK), "it has this title already")
	g.Expect(f.As("rita", "POST /projects/21/milestones", `{"title":"web"}`).Code).To(Equal(http.StatusCreated), "that is another project")
}

func TestListMilestones_showsThoseAboveToThoseWhoSeeTheGroup(t *testing.T) {
	g, f := NewWithT(t), newForge(t)
	create(t, f, "/projects/20", `{"title":"web","due_date":"2026-07-01"}`)
	create(t, f, "/projects/20", `{"title":"done","description":"With Search"}`)
	create(t, f, "/groups/11", `{"title":"shop"}`)
	create(t, f, "/groups/10", `{"title":"acme","due_date":"2026-08-01"}`)
	create(t, f, "/groups/12", `{"title":"closed"}`)
	create(t, f, "/projects/22", `{"title":"hidden"}`)
	g.Expect(f.As("rita", "PUT /projects/20/milestones/2", `{"state_event":"close"}`).Code).To(Equal(http.StatusOK))
	for _, test := range []struct{ caller, request, want string }{
		{"", "/projects/20/milestones", "web done"},
		{"", "/projects/20/milestones?state=active", "web"},
		{"", "/projects/20/milestones?state=closed", "done"},
		{"", "/projects/20/milestones?title=web", "web"},
		{"", "/projects/20/milestones?search=SEARCH", "done"},
		{"", "/projects/20/milestones?iids[]=2&iids[]=3", "done"},
		{"", "/projects/20/milestones?include_ancestors=true", "web acme done shop"},
		{"", "/projects/20/milestones?include_parent_milestones=true", "web acme done shop"},
		{"rita", "/projects/22/milestones?include_ancestors=true", "closed hidden"},
		{"otto", "/projects/22/milestones?include_ancestors=true", "hidden"},
		{"", "/projects/21/milestones", ""},
		{"", "/groups/11/milestones", "shop"},
		{"", "/groups/11/milestones?include_ancestors=true", "acme shop"},
		{"", "/groups/11/milestones?include_ancestors=true&per_page=1&page=2", "shop"},
	} {
		answer := f.As(test.caller, "GET "+test.request, "")
		g.Expect(answer.Code).To(Equal(http.StatusOK), answer.Body)
		var titles []string
		for _, m := range familytest.Decode[[]struct{ Title string }](t, answer) {
			titles = append(titles, m.Title)
		}
		g.Expect(strings.Join(titles, " ")).To(Equal(test.want), "%s as %q", test.request, test.caller)
	}
	answer := f.As("rita", "GET /projects/20/milestones?include_ancestors=true&search=acme", "")
	g.Expect(answer.Body).To(And(ContainSubstring(`"group_id":10`), ContainSubstring(`"web_url":"https://forge.example/groups/acme/-/milestones/1"`)))
}

func TestDeleteMilestone_leavesItsItems(t *testing.T) {
	g, f := NewWithT(t), newForge(t)
	id := create(t, f, "/projects/20", `{"title":"1.0"}`)
	other := create(t, f, "/projects/20", `{"title":"2.0"}`)
	var p v1alpha1.Project
	g.Expect(f.Client.Get(t.Context(), client.ObjectKey{Namespace: "acme", Name: "web"}, &p)).To(Succeed())
	for _, milestone := range []int64{id, other} {
		in := item.Place(catalog.Scope{Project: &p})
		g.Expect(f.Activity.Issues.Create(t.Context(), &issue.Issue{In: in, Title: "x", MilestoneID: milestone})).To(Succeed())
		m := mergerequest.MergeRequest{In: in, Source: in, SourceBranch: fmt.Sprint("b", milestone), TargetBranch: "main", Title: "x", MilestoneID: milestone}
		g.Expect(f.Activity.MergeRequests.Create(t.Context(), &m)).To(Succeed())
	}
	g.Expect(f.As("rita", "DELETE /projects/20/milestones/1", "").Code).To(Equal(http.StatusNoContent))
	g.Expect(f.Activity.MergeRequests.Get(t.Context(), p.UID, 1)).To(HaveField("MilestoneID", BeZero()))
	g.Expect(f.Activity.MergeRequests.Get(t.Context(), p.UID, 2)).To(HaveField("MilestoneID", other))
	g.Expect(f.Activity.Issues.Get(t.Context(), p.UID, 1)).To(HaveField("MilestoneID", BeZero()))
	g.Expect(f.Activity.Issues.Get(t.Context(), p.UID, 2)).To(HaveField("MilestoneID", other))
}

func TestPromote_mergesMilestonesOfTitle(t *testing.T) {
	g, f := NewWithT(t), newForge(t)
	web := create(t, f, "/projects/20", `{"title":"1.0","description":"First","due_date":"2026-07-01"}`)
	app := create(t, f, "/projects/21", `{"title":"1.0"}`)
	other := create(t, f, "/projects/21", `{"title":"2.0"}`)
	for _, id := range []int64{web, app, other} {
		g.Expect(f.Activity.Issues.Create(t.Context(), &issue.Issue{In: database.Subject{Kind: database.KindProject, ID: 21, UID: "p"}, MilestoneID: id})).To(Succeed())
	}
	g.Expect(f.As("otto", "POST /projects/20/milestones/1/promote", "").Code).To(Equal(http.StatusForbidden))
	a := f.As("rita", fmt.Sprintf("POST /projects/20/milestones/%d/promote", web), "")
	g.Expect(a.Code).To(Equal(http.StatusOK), a.Body)
	g.Expect(a.Body).To(And(ContainSubstring(`"group_id":11,"title":"1.0","description":"First","state":"active"`), ContainSubstring(`"due_date":"2026-07-01"`)))
	promoted := familytest.Decode[struct{ ID int64 }](t, a).ID
	for id, want := range map[int64]int64{1: promoted, 2: promoted, 3: other} {
		g.Expect(f.Activity.Issues.WithID(t.Context(), id)).To(HaveField("MilestoneID", want))
	}
	g.Expect(f.As("rita", fmt.Sprintf("POST /projects/20/milestones/%d/promote", web), "").Code).To(Equal(http.StatusNotFound), "it is gone")
	g.Expect(f.As("rita", fmt.Sprintf("GET /projects/21/milestones/%d", other), "").Code).To(Equal(http.StatusOK))
	g.Expect(f.As("rita", "POST /groups/11/milestones", `{"title":"1.0"}`).Code).To(Equal(http.StatusBadRequest), "the group has the title now")
}

func TestPromote_isAudited(t *testing.T) {
	g, f, lines := NewWithT(t), newForge(t), audittest.Open(t)
	web, app := create(t, f, "/projects/20", `{"title":"1.0"}`), create(t, f, "/projects/21", `{"title":"1.0"}`)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, fmt.Sprintf("/projects/20/milestones/%d/promote", web), nil)
	r.Header.Set("PRIVATE-TOKEN", familytest.Value("rita"))
	lines.Handler(audit.At{Door: audit.REST, Address: func(*http.Request) string { return "" }}, f).ServeHTTP(httptest.NewRecorder(), r)
	events := lines.Events()
	g.Expect(events).To(HaveLen(1))
	g.Expect(events[0].Objects).To(Equal([]audit.Object{
		{Verb: "create", Kind: audit.Milestone, Name: "acme/shop%1.0", ID: app + 1},
		{Verb: "delete", Kind: audit.Milestone, Name: "acme/shop/web%1.0", ID: web},
		{Verb: "delete", Kind: audit.Milestone, Name: "acme/shop/app%1.0", ID: app},
	}))
}

func TestPromote_needsReporterOfGroup(t *testing.T) {
	g, f := NewWithT(t), newForge(t)
	g.Expect(f.Client.Create(t.Context(), familytest.InProject("acme", "web", "otto", v1alpha1.RoleMaintainer))).To(Succeed())
	id := create(t, f, "/projects/20", `{"title":"1.0"}`)
	g.Expect(f.As("otto", fmt.Sprintf("POST /projects/20/milestones/%d/promote", id), "").String()).To(Equal(`403 {"message":"403 Forbidden"}`))
	g.Expect(f.As("rita", fmt.Sprintf("GET /projects/20/milestones/%d", id), "").Code).To(Equal(http.StatusOK))
}
