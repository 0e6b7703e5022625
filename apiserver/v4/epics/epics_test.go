package epics_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/uptrace/bun"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/v4/epics"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/internal/credential"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/issue"
	"github.com/forgeplane/forgeplane/internal/note"
	"github.com/forgeplane/forgeplane/internal/reaction"
)

// world is a forge with the public group acme (10), which has the labels bug and docs, and the private group acme/lab (11), which has the label
// rare. Olga is an Owner of acme, rita is a Reporter, gus is a Guest, and otto has no role.
type world struct{ *familytest.Forge }

func newWorld(t *testing.T) world {
	t.Helper()
	label := func(id int64, title, group string) *v1alpha1.Label {
		return &v1alpha1.Label{
			ObjectMeta: metav1.ObjectMeta{Namespace: "acme", Name: title},
			Spec:       v1alpha1.LabelSpec{ID: id, Title: title, Color: "red", GroupRef: &v1alpha1.Reference{Name: group}},
		}
	}
	w := world{familytest.New(t,
		familytest.User("olga", 1), familytest.User("rita", 2), familytest.User("gus", 3), familytest.User("otto", 4),
		familytest.Group("acme", "acme", 10, "", v1alpha1.VisibilityPublic), familytest.Group("acme", "lab", 11, "acme", v1alpha1.VisibilityPrivate),
		label(30, "bug", "acme"), label(31, "docs", "acme"), label(32, "rare", "lab"),
		familytest.InGroup("acme", "acme", "olga", v1alpha1.RoleOwner), familytest.InGroup("acme", "acme", "rita", v1alpha1.RoleReporter),
		familytest.InGroup("acme", "acme", "gus", v1alpha1.RoleGuest),
	)}
	w.Activity = familytest.Activity(t, w.Clock)
	w.Serve(epics.New(w.Kit).Table())
	return w
}

// create creates an epic, a minute after the one before.
func (w world) create(t *testing.T, username, group, body string) {
	t.Helper()
	w.Clock.SetTime(w.Clock.Now().Add(time.Minute))
	if answer := w.As(username, "POST /groups/"+group+"/epics", body); answer.Code != http.StatusCreated {
		t.Fatal(answer)
	}
}

// rows returns a column of a table of the activity database, from row to row.
func (w world) rows(t *testing.T, table, column string) (values []string) {
	t.Helper()
	err := w.Activity.Database.Read(t.Context(), "reading a table", func(ctx context.Context, db bun.IDB) error {
		return db.NewSelect().Table(table).Column(column).Order("id").Scan(ctx, &values)
	})
	if err != nil {
		t.Fatal(err)
	}
	return values
}

func TestEpic_isCreatedReadAndChanged(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	w.create(t, "rita", "11", `{"title":"elsewhere"}`)
	w.create(t, "rita", "10", `{"title":" Search ","description":"Fast","labels":"docs,bug,unknown,rare","start_date_fixed":"2026-01-01","due_date_fixed":"2026-02-01"}`)
	shown := func(title, description, labels, due, updated string) string {
		return fmt.Sprintf(`{"id":2,"iid":1,"group_id":10,"parent_id":null,"title":%q,"description":%q,"state":"opened","confidential":false,
			"web_url":"https://forge.example/groups/acme/-/epics/1","url":"/groups/acme/-/epics/1",
			"references":{"short":"&1","relative":"&1","full":"acme&1"},
			"author":{"id":2,"username":"rita","name":"rita","state":"active","avatar_url":null,"web_url":"https://forge.example/rita"},
			"start_date":"2026-01-01","start_date_is_fixed":true,"start_date_fixed":"2026-01-01","start_date_from_milestones":null,
			"due_date":%[4]s,"due_date_is_fixed":%[5]t,"due_date_fixed":%[4]s,"due_date_from_milestones":null,
			"created_at":"2026-06-15T12:02:00.000Z","updated_at":%[6]q,"closed_at":null,
			"labels":%[3]s,"upvotes":0,"downvotes":0,"user_notes_count":0}`, title, description, labels, due, due != "null", updated)
	}
	answer := w.As("", "GET /groups/10/epics/2", "")
	g.Expect(answer.Code).To(Equal(http.StatusOK), answer.Body)
	g.Expect(answer.Body).To(MatchJSON(shown("Search", "Fast", `["bug","docs"]`, `"2026-02-01"`, "2026-06-15T12:02:00.000Z")))
	w.Clock.SetTime(w.Clock.Now().Add(time.Minute))
	answer = w.As("rita", "PUT /groups/10/epics/2", `{"title":"Find","description":null,"due_date_fixed":null,"remove_labels":["bug"]}`)
	g.Expect(answer.Body).To(MatchJSON(shown("Find", "", `["docs"]`, "null", "2026-06-15T12:03:00.000Z")))
	for _, change := range []struct{ body, want string }{
		{`{"add_labels":"bug,unknown"}`, `"labels":["bug","docs"]`},
		{`{"labels":["bug"]}`, `"labels":["bug"]`},
		{`{"labels":""}`, `"labels":[]`},
		{`{"start_date_is_fixed":false}`, `"start_date":null,"start_date_is_fixed":false`},
		{`{"confidential":true}`, `"confidential":true`},
		{`{"color":"#ff0000"}`, `"title":"Find"`},
	} {
		g.Expect(w.As("rita", "PUT /groups/10/epics/2", change.body).Body).To(ContainSubstring(change.want), change.body)
	}
	g.Expect(w.rows(t, "notes", "body")).To(BeEmpty())
}

func TestEpic_isRefusedIfItIsInvalid(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	w.create(t, "rita", "10", `{"title":"Search"}`)
	for _, test := range []struct{ request, body, want string }{
		{"POST /groups/10/epics", `{}`, `400 {"error":"title is missing"}`},
		{"POST /groups/10/epics", `{"title":" "}`, `400 {"message":{"title":["can't be blank"]}}`},
		{"POST /groups/10/epics", `{"title":"` + strings.Repeat("x", 256) + `"}`, `400 {"message":{"title":["is too long (maximum is 255 characters)"]}}`},
		{"POST /groups/10/epics", `{"title":"x","start_date_fixed":"2026-01-02","due_date_fixed":"2026-01-01"}`,
			`400 {"message":{"due_date":["must be greater than start date"]}}`},
		{"PUT /groups/10/epics/1", `{"title":""}`, `400 {"message":{"title":["can't be blank"]}}`},
		{"PUT /groups/10/epics/1", `{"state_event":"activate"}`, `400 {"error":"state_event does not have a valid value"}`},
		{"PUT /groups/10/epics/1", ``, `400 {"error":"title, description, confidential, labels, start_date_fixed, start_date_is_fixed, due_date_fixed, ` +
			`due_date_is_fixed, add_labels, remove_labels, state_event are missing, at least one parameter must be provided"}`},
		{"GET /groups/10/epics?order_by=weight", ``, `400 {"error":"order_by does not have a valid value"}`},
		{"GET /groups/10/epics?author_id=1&author_username=a", ``, `400 {"error":"author_id, author_username are mutually exclusive"}`},
		{"GET /groups/10/epics/9", ``, `404 {"message":"404 Epic Not Found"}`},
		{"GET /groups/11/epics/1", ``, `404 {"message":"404 Epic Not Found"}`},
	} {
		g.Expect(w.As("rita", test.request, test.body).String()).To(Equal(test.want), "%s %.80s", test.request, test.body)
	}
}

func TestEpic_isClosedAndReopenedWithEventAndNote(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	w.create(t, "rita", "10", `{"title":"Search"}`)
	for _, event := range []string{"reopen", "close", "close"} {
		answer := w.As("rita", "PUT /groups/10/epics/1", `{"state_event":"`+event+`"}`)
		g.Expect(answer.Code).To(Equal(http.StatusOK), answer.Body)
	}
	g.Expect(w.As("", "GET /groups/10/epics/1", "").Body).To(ContainSubstring(`"closed_at":"2026-06-15T12:01:00.000Z"`))
	g.Expect(w.rows(t, "state_events", "state")).To(Equal([]string{"closed"}), "only a change is an event")
	g.Expect(w.As("rita", "PUT /groups/10/epics/1", `{"state_event":"reopen"}`).Body).To(And(
		ContainSubstring(`"state":"opened"`), ContainSubstring(`"closed_at":null`), ContainSubstring(`"user_notes_count":0`)))
	g.Expect(w.rows(t, "state_events", "state")).To(Equal([]string{"closed", "reopened"}))
	g.Expect(w.rows(t, "state_events", "user_uid")).To(HaveEach(w.rows(t, "epics", "author_uid")[0]))
	g.Expect(w.rows(t, "notes", "body")).To(Equal([]string{"closed", "reopened"}))
	g.Expect(w.As("rita", "PUT /groups/10/epics/1", `{"state_event":"close","title":""}`).Code).To(Equal(http.StatusBadRequest))
	g.Expect(w.rows(t, "notes", "body")).To(HaveLen(2), "what is refused is not recorded")
}

func TestEpic_isSeenIfConfidentialByReportersAndAuthor(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	w.create(t, "rita", "10", `{"title":"secret","confidential":true}`)
	w.create(t, "rita", "10", `{"title":"public"}`)
	for caller, want := range map[string]string{"": "public", "otto": "public", "gus": "public", "rita": "public secret", "olga": "public secret"} {
		g.Expect(w.titles(t, caller, "/groups/10/epics")).To(Equal(want), caller)
		code := http.StatusOK
		if want == "public" {
			code = http.StatusNotFound
		}
		g.Expect(w.As(caller, "GET /groups/10/epics/1", "").Code).To(Equal(code), caller)
	}
	w.demote(t, "rita")
	g.Expect(w.titles(t, "rita", "/groups/10/epics")).To(Equal("public secret"), "she is the author")
	g.Expect(w.As("rita", "GET /groups/10/epics/1", "").Code).To(Equal(http.StatusOK))
}

// demote makes a member of acme a Guest.
func (w world) demote(t *testing.T, username string) {
	t.Helper()
	m := familytest.InGroup("acme", "acme", username, v1alpha1.RoleGuest)
	if err := w.Client.Delete(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	if err := w.Client.Create(t.Context(), m); err != nil {
		t.Fatal(err)
	}
}

// titles returns the titles of the epics that a list shows to a caller.
func (w world) titles(t *testing.T, caller, list string) string {
	t.Helper()
	answer := w.As(caller, "GET "+list, "")
	if answer.Code != http.StatusOK {
		t.Fatal(list, answer)
	}
	var titles []string
	for _, e := range familytest.Decode[[]struct{ Title string }](t, answer) {
		titles = append(titles, e.Title)
	}
	return strings.Join(titles, " ")
}

func TestListEpics_filtersAndSorts(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	w.create(t, "rita", "10", `{"title":"b","labels":"bug,docs"}`)
	w.create(t, "olga", "10", `{"title":"C","description":"For everybody","labels":"bug"}`)
	w.create(t, "rita", "11", `{"title":"a","labels":"bug,rare"}`)
	g.Expect(w.As("rita", "PUT /groups/10/epics/1", `{"state_event":"close"}`).Code).To(Equal(http.StatusOK))
	for list, want := range map[string]string{
		"/groups/10/epics":                                  "a C b",
		"/groups/10/epics?per_page=1&page=2":                "C",
		"/groups/10/epics?include_descendant_groups=false":  "C b",
		"/groups/11/epics":                                  "a",
		"/groups/11/epics?include_ancestor_groups=true":     "a C b",
		"/groups/10/epics?order_by=title&sort=asc":          "a b C",
		"/groups/10/epics?order_by=updated_at":              "a b C",
		"/groups/10/epics?state=closed":                     "b",
		"/groups/10/epics?author_id=1":                      "C",
		"/groups/10/epics?author_username=rita":             "a b",
		"/groups/10/epics?author_id=99":                     "",
		"/groups/10/epics?search=EVERYBODY":                 "C",
		"/groups/10/epics?labels=bug,docs":                  "b",
		"/groups/10/epics?labels=rare":                      "a",
		"/groups/10/epics?labels=nothing":                   "",
		"/groups/10/epics?iids[]=2":                         "C",
		"/groups/10/epics?created_after=2026-06-15T12:02Z":  "a C",
		"/groups/10/epics?created_before=2026-06-15T12:02Z": "C b",
		"/groups/10/epics?updated_before=2026-06-15T12:02Z": "C",
		"/groups/10/epics?updated_after=2026-06-15T12:03Z":  "a b",
	} {
		g.Expect(w.titles(t, "rita", list)).To(Equal(want), list)
	}
	g.Expect(w.titles(t, "otto", "/groups/10/epics")).To(Equal("C b"), "the group below is private")
	g.Expect(w.As("otto", "GET /groups/10/epics?labels=docs&with_labels_details=true", "").Body).To(ContainSubstring(
		`"labels":[{"id":30,"name":"bug","color":"#FF0000","description":null,"text_color":"#FFFFFF"},{"id":31,"name":"docs"`))
	g.Expect(w.As("rita", "GET /groups/10/epics?search=a&order_by=title&sort=asc&per_page=1", "").Body).To(And(
		ContainSubstring(`"references":{"short":"&1","relative":"acme/lab&1","full":"acme/lab&1"}`),
		ContainSubstring(`"web_url":"https://forge.example/groups/acme/lab/-/epics/1"`), ContainSubstring(`"labels":["bug","rare"]`)))
}

func TestListEpics_findsThoseWithReactionOfCaller(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	for n, title := range []string{"a", "b", "c"} {
		w.create(t, "rita", "10", `{"title":"`+title+`"}`)
		for _, name := range []string{"thumbsup", "tada"}[:n] {
			u, err := w.Catalog.UserByUsername(t.Context(), "gus")
			g.Expect(err).NotTo(HaveOccurred())
			to := database.Item{Kind: "epic", ID: int64(n + 1)}
			g.Expect(w.Activity.Reactions.Add(t.Context(), &reaction.Reaction{To: to, Name: name, User: database.User{ID: 3, UID: u.UID}})).To(Succeed())
		}
	}
	for filter, want := range map[string]string{"tada": "c", "%2B1": "c b", "heart": "", "Any": "c b", "None": "a", "": "c b a"} {
		g.Expect(w.titles(t, "gus", "/groups/10/epics?my_reaction_emoji="+filter)).To(Equal(want), filter)
	}
	g.Expect(w.titles(t, "rita", "/groups/10/epics?my_reaction_emoji=Any")).To(BeEmpty(), "it is the reaction of another user")
}

func TestListEpics_findsThoseOfBot(t *testing.T) {
	const value = "the-value-of-the-bot"
	g, w := NewWithT(t), newWorld(t)
	g.Expect(w.Client.Create(t.Context(), &v1alpha1.BotToken{
		ObjectMeta: metav1.ObjectMeta{Namespace: "acme", Name: "robot"},
		Spec: v1alpha1.BotTokenSpec{
			ID: 7, Name: "Robot", GroupRef: &v1alpha1.Reference{Name: "acme"}, Role: v1alpha1.RoleReporter,
			Scopes: []v1alpha1.TokenScope{v1alpha1.ScopeAPI}, Digest: credential.Digest(value),
		},
	})).To(Succeed())
	w.create(t, "rita", "10", `{"title":"by a person"}`)
	answer := w.With(value, "POST /groups/10/epics", `{"title":"by a bot"}`)
	g.Expect(answer.Code).To(Equal(http.StatusCreated), answer.Body)
	author := familytest.Decode[epics.Epic](t, answer).Author.ID
	g.Expect(w.titles(t, "otto", fmt.Sprintf("/groups/10/epics?author_id=%d", author))).To(Equal("by a bot"))
}

func TestDeleteEpic_removesWhatBelongsToIt(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	w.create(t, "rita", "10", `{"title":"gone"}`)
	w.create(t, "rita", "10", `{"title":"stays"}`)
	in, rita := database.Subject{Kind: database.KindGroup, ID: 10, UID: "g"}, database.User{ID: 2, UID: "rita"}
	for _, e := range []int64{1, 2} {
		on := database.Item{Kind: "epic", ID: e}
		n := note.Note{In: in, On: on, Body: "Hello", Author: rita}
		g.Expect(w.Activity.Notes.Create(t.Context(), &n)).To(Succeed())
		g.Expect(w.Activity.Reactions.Add(t.Context(), &reaction.Reaction{In: in, To: on, Name: "thumbsup", User: rita})).To(Succeed())
		g.Expect(w.Activity.Reactions.Add(t.Context(), &reaction.Reaction{In: in, To: n.Item(), Name: "tada", User: rita})).To(Succeed())
		g.Expect(w.Activity.Issues.Create(t.Context(), &issue.Issue{In: database.Subject{Kind: database.KindProject, ID: 20, UID: "p"}, EpicID: e})).To(Succeed())
		g.Expect(w.As("rita", fmt.Sprintf("PUT /groups/10/epics/%d", e), `{"state_event":"close"}`).Body).To(And(
			ContainSubstring(`"upvotes":1`), ContainSubstring(`"user_notes_count":1`)))
	}
	g.Expect(w.As("rita", "DELETE /groups/10/epics/1", "").Code).To(Equal(http.StatusForbidden), "only Owners delete")
	g.Expect(w.As("olga", "DELETE /groups/10/epics/1", "").String()).To(Equal("204"))
	g.Expect(w.As("olga", "DELETE /groups/10/epics/1", "").Code).To(Equal(http.StatusNotFound))
	g.Expect(w.rows(t, "epics", "title")).To(Equal([]string{"stays"}))
	g.Expect(w.rows(t, "notes", "body")).To(Equal([]string{"Hello", "closed"}))
	g.Expect(w.rows(t, "reactions", "name")).To(Equal([]string{"thumbsup", "tada"}))
	g.Expect(w.rows(t, "state_events", "item_id")).To(Equal([]string{"2"}))
	g.Expect(w.rows(t, "issues", "epic_id")).To(Equal([]string{"0", "2"}))
}
