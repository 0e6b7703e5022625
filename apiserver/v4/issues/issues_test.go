package issues_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/apiserver/v4/issues"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/epic"
	"github.com/forgeplane/forgeplane/internal/issue"
	"github.com/forgeplane/forgeplane/internal/milestone"
	"github.com/forgeplane/forgeplane/internal/note"
	"github.com/forgeplane/forgeplane/internal/reaction"
)

// world is a forge with the public project acme/web (20), the private project acme/secret (21) and the labels bug and docs of web. Mary owns the
// group acme (10), rita is a Reporter of it, gus a Guest, and otto is in no project.
type world struct {
	*familytest.Forge
	t *testing.T
}

func newWorld(t *testing.T) world {
	t.Helper()
	label := func(title string, id int64) *v1alpha1.Label {
		return &v1alpha1.Label{
			ObjectMeta: metav1.ObjectMeta{Namespace: "acme", Name: title},
			Spec:       v1alpha1.LabelSpec{ID: id, Title: title, Color: "red", ProjectRef: &v1alpha1.Reference{Name: "web"}},
		}
	}
	w := world{familytest.New(t,
		familytest.User("root", 1, familytest.Admin), familytest.User("mary", 2), familytest.User("rita", 3), familytest.User("gus", 4), familytest.User("otto", 5),
		familytest.Group("acme", "acme", 10, "", v1alpha1.VisibilityPublic), familytest.Project("acme", "web", 20, "acme", v1alpha1.VisibilityPublic),
		familytest.Project("acme", "secret", 21, "acme", v1alpha1.VisibilityPrivate), label("bug", 30), label("docs", 31),
		familytest.InGroup("acme", "acme", "mary", v1alpha1.RoleOwner), familytest.InGroup("acme", "acme", "rita", v1alpha1.RoleReporter),
		familytest.InGroup("acme", "acme", "gus", v1alpha1.RoleGuest),
	), t}
	w.Activity = familytest.Activity(t, w.Clock)
	w.Serve(issues.New(w.Kit).Table())
	return w
}

// create creates an issue of web as a user, a minute after the last one.
func (w world) create(as, body string) shown {
	w.t.Helper()
	w.Clock.SetTime(w.Clock.Now().Add(time.Minute))
	return w.done(as, "POST /projects/20/issues", body)
}

// done sends a request that succeeds.
func (w world) done(as, request, body string) shown {
	w.t.Helper()
	a := w.As(as, request, body)
	if a.Code >= 300 {
		w.t.Fatalf("%s %s as %s: %s", request, body, as, a)
	}
	return familytest.Decode[shown](w.t, a)
}

// shown has the fields of an issue that the tests check.
type shown struct {
	ID, IID        int64
	Title          string
	Description    string
	State          string
	Labels         []string
	Confidential   bool
	DueDate        string `json:"due_date"`
	Weight         *int64
	IssueType      string `json:"issue_type"`
	Locked         bool   `json:"discussion_locked"`
	CreatedAt      string `json:"created_at"`
	UpdatedAt      string `json:"updated_at"`
	ClosedAt       string `json:"closed_at"`
	ClosedBy       *user  `json:"closed_by"`
	Author         *user
	Assignees      []user
	Assignee       *user
	Milestone      *struct{ Title string }
	Epic           *struct{ Title string }
	UserNotesCount int64 `json:"user_notes_count"`
	Upvotes        int64
	Subscribed     bool
	References     struct{ Short, Relative, Full string }
}

type user struct{ Username string }

// iids returns the iids that a list has.
func (w world) iids(as, request string) string {
	w.t.Helper()
	a := w.As(as, "GET "+request, "")
	if a.Code != 200 {
		return a.String()
	}
	var all []int64
	for _, i := range familytest.Decode[[]shown](w.t, a) {
		all = append(all, i.IID)
	}
	return fmt.Sprint(all)
}

// place is the subject of the rows of a project or group.
func place[T v1alpha1.Identified](w world, kind string, id int64) database.Subject {
	w.t.Helper()
	o, err := catalog.ByID[T](w.t.Context(), w.Catalog, id)
	if err != nil {
		w.t.Fatal(err)
	}
	return database.Subject{Kind: kind, ID: id, UID: o.GetUID()}
}

func (w world) user(name string) database.User {
	w.t.Helper()
	u, err := w.Catalog.UserByUsername(w.t.Context(), name)
	if err != nil {
		w.t.Fatal(err)
	}
	return database.User{ID: u.RESTID(), UID: u.UID}
}

func (w world) milestone(in database.Subject, title string) int64 {
	w.t.Helper()
	m := milestone.Milestone{In: in, Title: title, State: milestone.Active}
	if err := w.Activity.Milestones.Create(w.t.Context(), &m); err != nil {
		w.t.Fatal(err)
	}
	return m.ID
}

func (w world) epic(in database.Subject, e epic.Epic) int64 {
	w.t.Helper()
	e.In = in
	if err := w.Activity.Epics.Create(w.t.Context(), &e); err != nil {
		w.t.Fatal(err)
	}
	return e.ID
}

func TestCreate_showsIssue(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	m, e := w.milestone(place[*v1alpha1.Group](w, database.KindGroup, 10), "1.0"), w.epic(place[*v1alpha1.Group](w, database.KindGroup, 10), epic.Epic{Title: "Sales"})
	a := w.As("rita", "POST /projects/20/issues", fmt.Sprintf(`{"title":"Crash\nagain","description":"- [x] see it\n- [ ] mend it","labels":"docs,bug",
		"assignee_ids":[3,4,99],"milestone_id":%d,"epic_id":%d,"due_date":"2026-07-01","weight":3,"confidential":true,"issue_type":"incident"}`, m, e))
	g.Expect(a.Code).To(Equal(201), a.Body)
	person := func(id int, name string) string {
		return fmt.Sprintf(`{"id":%d,"username":%q,"name":%q,"state":"active","avatar_url":null,"web_url":"https://forge.example/%s"}`, id, name, name, name)
	}
	rita := familytest.Decode[struct{ Author json.RawMessage }](t, a).Author
	g.Expect(rita).To(ContainSubstring(`"username":"rita"`))
	gus := strings.ReplaceAll(person(4, "gus"), `"name":"gus"`, `"name":`+nameOf(t, w, "gus"))
	g.Expect(a.Body).To(MatchJSON(fmt.Sprintf(`{
		"id":1,"iid":1,"project_id":20,"title":"Crash again","description":"- [x] see it\n- [ ] mend it","state":"opened",
		"created_at":"2026-06-15T12:00:00.000Z","updated_at":"2026-06-15T12:00:00.000Z","closed_at":null,"closed_by":null,"labels":["bug","docs"],
		"milestone":{"id":%d,"iid":1,"group_id":10,"title":"1.0","description":"","state":"active","created_at":"2026-06-15T12:00:00.000Z",
			"updated_at":"2026-06-15T12:00:00.000Z","due_date":null,"start_date":null,"expired":false,"web_url":"https://forge.example/groups/acme/-/milestones/1"},
		"assignees":[%[2]s,%[3]s],"assignee":%[2]s,"author":%[2]s,"type":"INCIDENT","user_notes_count":0,"merge_requests_count":0,"upvotes":0,"downvotes":0,
		"due_date":"2026-07-01","confidential":true,"discussion_locked":false,"issue_type":"incident","web_url":"https://forge.example/acme/web/-/issues/1",
		"time_stats":{"time_estimate":0,"total_time_spent":0,"human_time_estimate":null,"human_total_time_spent":null},
		"task_completion_status":{"count":2,"completed_count":1},"has_tasks":true,"task_status":"1 of 2 checklist items completed","weight":3,"epic_iid":1,
		"epic":{"id":%[4]d,"iid":1,"title":"Sales","url":"/groups/acme/-/epics/1","group_id":10},
		"_links":{"self":"https://forge.example/api/v4/projects/20/issues/1","notes":"https://forge.example/api/v4/projects/20/issues/1/notes",
			"award_emoji":"https://forge.example/api/v4/projects/20/issues/1/award_emoji","project":"https://forge.example/api/v4/projects/20","closed_as_duplicate_of":null},
		"references":{"short":"#1","relative":"#1","full":"acme/web#1"},"severity":"UNKNOWN","moved_to_id":null,"subscribed":true}`, m, rita, gus, e)))
	g.Expect(w.As("rita", "GET /projects/20/issues/1", "").Body).To(MatchJSON(a.Body))
	g.Expect(w.As("root", "GET /issues/1", "").Code).To(Equal(200))
	g.Expect(w.done("rita", "GET /projects/20/issues/1", "").References.Relative).To(Equal("#1"))
	g.Expect(w.As("rita", "GET /groups/10/issues", "").Body).To(ContainSubstring(`"relative":"web#1"`))
	g.Expect(w.As("rita", "GET /issues", "").Body).To(ContainSubstring(`"relative":"acme/web#1"`))
	g.Expect(w.As("rita", "GET /projects/20/issues?with_labels_details=true", "").Body).To(ContainSubstring(
		`"labels":[{"id":30,"name":"bug","color":"#FF0000","description":null,"text_color":"#FFFFFF"}`))
}

// nameOf returns the name of a user as JSON.
func nameOf(t *testing.T, w world, username string) string {
	t.Helper()
	u, err := w.Catalog.UserByUsername(t.Context(), username)
	if err != nil {
		t.Fatal(err)
	}
	name, err := json.Marshal(catalog.DisplayName(u))
	if err != nil {
		t.Fatal(err)
	}
	return string(name)
}

func TestCreate_ignoresMetadataOfGuests(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	i := w.create("otto", `{"title":"Crash","labels":["bug","new"],"assignee_ids":[5],"weight":3,"due_date":"2026-07-01","confidential":true,"created_at":"2020-01-01T00:00:00Z"}`)
	g.Expect(i).To(And(HaveField("Labels", BeEmpty()), HaveField("Assignees", BeEmpty()), HaveField("Weight", BeNil()), HaveField("DueDate", ""),
		HaveField("Confidential", true), HaveField("CreatedAt", "2026-06-15T12:01:00.000Z")))
	g.Expect(w.create("mary", `{"title":"Older","created_at":"2020-01-01T00:00:00Z"}`).CreatedAt).To(Equal("2020-01-01T00:00:00.000Z"))
}

func TestCreate_refusesFuture(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	g.Expect(w.As("mary", "POST /projects/20/issues", `{"title":"Later","created_at":"2300-01-01T00:00:00Z"}`).String()).To(Equal(`400 {"error":"created_at is invalid"}`))
}

func TestWrite_refusesMalformedAttributes(t *testing.T) {
	w := newWorld(t)
	w.create("rita", `{"title":"Crash"}`)
	const one = "PUT /projects/20/issues/1"
	for _, tt := range []struct{ request, body, want string }{
		{"POST /projects/20/issues", `{}`, `400 {"error":"title is missing"}`},
		{"POST /projects/20/issues", `{"title":" \n"}`, `400 {"message":{"title":["can't be blank"]}}`},
		{"POST /projects/20/issues", fmt.Sprintf(`{"title":%q}`, strings.Repeat("ä", 256)), `400 {"message":{"title":["is too long (maximum is 255 characters)"]}}`},
		{"POST /projects/20/issues", `{"title":"a","issue_type":"epic"}`, `400 {"error":"issue_type does not have a valid value"}`},
		{"POST /projects/20/issues", `{"title":"a","epic_id":9}`, `404 {"message":"404 Epic Not Found"}`},
		{one, `{"title":" "}`, `400 {"error":"title is empty"}`},
		{"POST /projects/20/issues", `{"title":"a","assignee_ids":"` + strings.Repeat("3,", 201) + `"}`, `400 {"message":{"assignee_ids":["are too many (maximum is 200)"]}}`},
		{one, `{"labels":"` + strings.Repeat("bug,", 101) + `"}`, `400 {"message":{"labels":["are too many (maximum is 100)"]}}`},
		{one, `{"add_labels":"` + strings.Repeat("bug,", 101) + `"}`, `400 {"message":{"add_labels":["are too many (maximum is 100)"]}}`},
		{one, `{"state_event":"merge"}`, `400 {"error":"state_event does not have a valid value"}`},
		{one, `{"due_date":"soon"}`, `400 {"error":"due_date is invalid"}`},
		{one, fmt.Sprintf(`{"title":%q}`, strings.Repeat("a", 256)), `400 {"message":{"title":["is too long (maximum is 255 characters)"]}}`},
		{"PUT /projects/20/issues/9", `{"title":"a"}`, `404 {"message":"404 Issue Not Found"}`},
	} {
		if got := w.As("rita", tt.request, tt.body).String(); got != tt.want {
			t.Errorf("%s %.60s\ngot  %s\nwant %s", tt.request, tt.body, got, tt.want)
		}
	}
	const nothing = `are missing, at least one parameter must be provided"}`
	if got := w.As("rita", one, "").String(); !strings.HasPrefix(got, `400 {"error":"title, description, labels, `) || !strings.HasSuffix(got, nothing) {
		t.Errorf("got %s", got)
	}
	if got := w.done("rita", "GET /projects/20/issues/1", ""); got.Title != "Crash" || got.UpdatedAt != got.CreatedAt {
		t.Errorf("got %+v: a refused request changes nothing", got)
	}
}

func TestUpdate_changesAttributes(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	m, other := w.milestone(place[*v1alpha1.Project](w, database.KindProject, 20), "1.0"), w.milestone(place[*v1alpha1.Project](w, database.KindProject, 21), "2.0")
	w.create("otto", `{"title":"Crash","description":"Always"}`)
	put := func(body string) shown { t.Helper(); return w.done("rita", "PUT /projects/20/issues/1", body) }
	g.Expect(put(`{"labels":["bug"],"assignee_ids":[4,3,3],"weight":0,"due_date":"2026-07-01","discussion_locked":true,"issue_type":"task"}`)).To(And(
		HaveField("Labels", []string{"bug"}), HaveField("Assignees", []user{{"gus"}, {"rita"}}), HaveField("Assignee.Username", "gus"), HaveField("DueDate", "2026-07-01"),
		HaveField("Locked", true), HaveField("IssueType", "task"), HaveField("Title", "Crash"), HaveField("Description", "Always")))
	g.Expect(put(`{"add_labels":"docs,new","remove_labels":"bug,none"}`).Labels).To(Equal([]string{"docs", "new"}))
	g.Expect(put(fmt.Sprintf(`{"milestone_id":%d}`, m)).Milestone.Title).To(Equal("1.0"))
	g.Expect(put(fmt.Sprintf(`{"milestone_id":%d}`, other)).Milestone).To(BeNil(), "of another project")
	g.Expect(put(`{"labels":"","assignee_ids":[0],"weight":null,"due_date":""}`)).To(And(
		HaveField("Labels", BeEmpty()), HaveField("Assignees", BeEmpty()), HaveField("Weight", BeNil()), HaveField("DueDate", "")))
	g.Expect(put(`{"assignee_id":3}`).Assignees).To(Equal([]user{{"rita"}}))
	g.Expect(put(`{"assignee_ids":[]}`).Assignees).To(BeEmpty())
}

func TestCreate_ignoresAssigneesWhoCannotSeeProject(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	g.Expect(w.done("rita", "POST /projects/21/issues", `{"title":"Crash","assignee_ids":[5,4,1]}`).Assignees).To(Equal([]user{{"gus"}, {"root"}}))
}

func TestUpdate_isLimitedForAuthorsAndAssignees(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	w.create("otto", `{"title":"Crash"}`)
	const one = "PUT /projects/20/issues/1"
	g.Expect(w.As("gus", one, `{"title":"Tears"}`).String()).To(Equal(`403 {"message":"403 Forbidden"}`))
	w.done("rita", one, `{"assignee_ids":[4]}`)
	for _, as := range []string{"otto", "gus"} {
		g.Expect(w.done(as, one, fmt.Sprintf(`{"title":"By %s","description":"Text","labels":["bug"],"weight":5,"confidential":true,"assignee_ids":[]}`, as))).To(And(
			HaveField("Title", "By "+as), HaveField("Description", "Text"), HaveField("Labels", BeEmpty()), HaveField("Weight", BeNil()),
			HaveField("Confidential", false), HaveField("Assignees", []user{{"gus"}})))
	}
}

func TestUpdate_recordsChangeOfState(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	i := w.create("otto", `{"title":"Crash"}`)
	put := func(event string) shown {
		t.Helper()
		w.Clock.SetTime(w.Clock.Now().Add(time.Minute))
		return w.done("otto", "PUT /projects/20/issues/1", fmt.Sprintf(`{"state_event":%q}`, event))
	}
	g.Expect(put("reopen").State).To(Equal("opened"))
	g.Expect(put("close")).To(And(HaveField("State", "closed"), HaveField("ClosedBy.Username", "otto"), HaveField("ClosedAt", "2026-06-15T12:03:00.000Z"), HaveField("UserNotesCount", BeZero())))
	put("close")
	g.Expect(put("reopen")).To(And(HaveField("State", "opened"), HaveField("ClosedBy", BeNil()), HaveField("ClosedAt", "")))
	g.Expect(w.rows("state_events", "state", i.ID)).To(Equal([]string{"closed", "reopened"}))
	g.Expect(w.rows("notes", "body", i.ID)).To(Equal([]string{"closed", "reopened"}))
}

func TestDelete_removesWhatBelongsToIssue(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	i := w.create("otto", `{"title":"Crash"}`)
	w.done("rita", "PUT /projects/20/issues/1", `{"state_event":"close"}`)
	on, in := database.Item{Kind: issue.Kind, ID: i.ID}, place[*v1alpha1.Project](w, database.KindProject, 20)
	n := note.Note{In: in, On: on, Body: "Really?", Author: w.user("gus")}
	g.Expect(w.Activity.Notes.Create(t.Context(), &n)).To(Succeed())
	for _, to := range []database.Item{on, n.Item()} {
		g.Expect(w.Activity.Reactions.Add(t.Context(), &reaction.Reaction{In: in, To: to, Name: "thumbsup", User: w.user("gus")})).To(Succeed())
	}
	g.Expect(w.done("gus", "GET /projects/20/issues/1", "")).To(And(HaveField("UserNotesCount", int64(1)), HaveField("Upvotes", int64(1))))

	const one = "DELETE /projects/20/issues/1"
	w.Header = http.Header{"If-Unmodified-Since": {"Mon, 15 Jun 2026 12:00:00 GMT"}}
	g.Expect(w.As("mary", one, "").String()).To(Equal(`412 {"message":"412 Precondition Failed"}`))
	w.Header = nil
	g.Expect(w.As("otto", one, "").String()).To(Equal(`403 {"message":"403 Forbidden"}`))
	g.Expect(w.As("mary", one, "").String()).To(Equal("204"))
	g.Expect(w.As("mary", one, "").String()).To(Equal(`404 {"message":"404 Issue Not Found"}`))
	for table, column := range map[string]string{"notes": "body", "reactions": "name", "state_events": "state"} {
		g.Expect(w.rows(table, column, i.ID)).To(BeEmpty(), table)
	}
	g.Expect(w.Activity.Reactions.Counts(t.Context(), note.Kind, n.ID)).To(BeEmpty())
}

func TestIssue_isHiddenIfConfidential(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	w.create("otto", `{"title":"Secret","confidential":true}`)
	w.create("rita", `{"title":"Open"}`)
	w.done("rita", "POST /projects/21/issues", `{"title":"Private"}`)
	const missing = `404 {"message":"404 Issue Not Found"}`
	for as, want := range map[string]struct{ secret, project, group, all string }{
		"":     {missing, "[2]", "[2]", "[2]"},
		"gus":  {missing, "[2]", "[1 2]", "[1 2]"},
		"otto": {"200", "[2 1]", "[2 1]", "[2 1]"},
		"rita": {"200", "[2 1]", "[1 2 1]", "[1 2 1]"},
		"root": {"200", "[2 1]", "[1 2 1]", "[1 2 1]"},
	} {
		a := w.As(as, "GET /projects/20/issues/1", "")
		if a.Code != 200 {
			g.Expect(a.String()).To(Equal(want.secret), as)
		} else {
			g.Expect(want.secret).To(Equal("200"), as)
		}
		g.Expect(w.iids(as, "/projects/20/issues?order_by=updated_at")).To(Equal(want.project), as)
		w.expectSame(as, "/groups/10/issues", want.group)
		w.expectSame(as, "/issues?scope=all", want.all)
	}
	g.Expect(w.As("gus", "PUT /projects/20/issues/1", `{"title":"a"}`).String()).To(Equal(missing))
	g.Expect(w.iids("otto", "/projects/21/issues")).To(Equal(`404 {"message":"404 Project Not Found"}`))
	g.Expect(w.iids("", "/issues")).To(Equal(`401 {"message":"401 Unauthorized"}`))
	g.Expect(w.iids("otto", "/issues")).To(Equal("[1]"))
	g.Expect(w.iids("otto", "/issues?scope=created-by-me")).To(Equal("[1]"))
	g.Expect(w.iids("otto", "/issues?scope=assigned_to_me")).To(Equal("[]"))
	g.Expect(w.As("rita", "GET /issues/1", "").Code).To(Equal(403))
	g.Expect(w.As("root", "GET /issues/9", "").String()).To(Equal(missing))
}

// expectSame expects a list to have the same iids, in any order of issues that were created at the same time.
func (w world) expectSame(as, request, want string) {
	w.t.Helper()
	var got, expected []string
	got = strings.Fields(strings.Trim(w.iids(as, request), "[]"))
	expected = strings.Fields(strings.Trim(want, "[]"))
	NewWithT(w.t).Expect(got).To(ConsistOf(expected), "%s as %q", request, as)
}

func TestIssue_showsNoEpicThatCallerCannotSee(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	e := w.epic(place[*v1alpha1.Group](w, database.KindGroup, 10), epic.Epic{Title: "Sales", Confidential: true})
	g.Expect(w.create("rita", fmt.Sprintf(`{"title":"Crash","epic_id":%d}`, e)).Epic.Title).To(Equal("Sales"))
	g.Expect(w.done("gus", "GET /projects/20/issues/1", "").Epic).To(BeNil())
	g.Expect(w.done("rita", "PUT /projects/20/issues/1", `{"epic_id":0}`).Epic).To(BeNil())
}

func TestIssue_omitsDeletedUsersAndLabels(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	w.create("otto", `{"title":"Crash"}`)
	w.done("rita", "PUT /projects/20/issues/1", `{"assignee_ids":[5],"labels":"bug"}`)
	w.Recreate(&v1alpha1.User{}, "otto")
	g.Expect(w.Client.Delete(t.Context(), &v1alpha1.Label{ObjectMeta: metav1.ObjectMeta{Namespace: "acme", Name: "bug"}})).To(Succeed())
	g.Expect(w.done("rita", "GET /projects/20/issues/1", "")).To(And(HaveField("Author", BeNil()), HaveField("Assignees", BeEmpty()), HaveField("Labels", BeEmpty())))
	g.Expect(w.iids("rita", "/projects/20/issues?author_id=5")).To(Equal("[]"))
}

// rows returns a column of the rows that belong to an issue, the oldest first.
func (w world) rows(table, column string, id int64) (all []string) {
	w.t.Helper()
	all, err := rowsOf(w.t.Context(), w.Activity.Database, table, column, id)
	if err != nil {
		w.t.Fatal(err)
	}
	return all
}
