package reactions_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/apiserver/v4/reactions"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/audit/audittest"
	"github.com/forgeplane/forgeplane/internal/credential"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/epic"
	"github.com/forgeplane/forgeplane/internal/issue"
	"github.com/forgeplane/forgeplane/internal/mergerequest"
	"github.com/forgeplane/forgeplane/internal/note"
)

const (
	noUser    = `401 {"message":"401 Unauthorized"}`
	notFound  = `404 {"message":"404 Not found"}`
	noIssue   = `404 {"message":"404 Issue Not Found"}`
	noProject = `404 {"message":"404 Project Not Found"}`
	noGroup   = `404 {"message":"404 Group Not Found"}`
)

// world is a forge with the public project web (20), in which mary is a Reporter, and the private project secret (21), in the groups acme (10) and
// lab (11). Issues 1 of both, merge request 1 of web and epic 1 of acme have a note by ann. Issue 2 of web is
// confidential.
type world struct {
	*familytest.Forge
	// These are the paths of the reactions to items: an issue with three notes, and a merge request and an epic with one.
	issue, onIssue, system, internal, mergeRequest, onMergeRequest, epic, onEpic string
	// ids are the ids of these items.
	ids map[string]int64
}

func newWorld(t *testing.T, more ...client.Object) *world {
	t.Helper()
	w := &world{ids: map[string]int64{}, Forge: familytest.New(t, append([]client.Object{
		familytest.User("root", 1, familytest.Admin), familytest.User("ann", 2), familytest.User("mary", 3), familytest.User("otto", 4),
		familytest.Group("acme", "acme", 10, "", v1alpha1.VisibilityPublic), familytest.Group("lab", "lab", 11, "", v1alpha1.VisibilityPrivate),
		familytest.Project("acme", "web", 20, "acme", v1alpha1.VisibilityPublic), familytest.Project("lab", "secret", 21, "lab", v1alpha1.VisibilityPrivate),
		familytest.InProject("acme", "web", "mary", v1alpha1.RoleReporter),
	}, more...)...)}
	w.Activity = familytest.Activity(t, w.Clock)
	secret, web, acme := w.subject(t, "lab/secret"), w.subject(t, "acme/web"), w.subject(t, "acme/acme")
	w.newIssue(t, secret, false)
	first, hidden := w.newIssue(t, web, false), w.newIssue(t, web, true)
	e := &epic.Epic{In: acme, Title: "Big", Author: w.user(t, "ann")}
	NewWithT(t).Expect(w.Activity.Epics.Create(t.Context(), e)).To(Succeed())
	w.issue = w.at("/projects/20/issues/1", first.ID)
	w.at("/projects/20/issues/2", hidden.ID)
	w.onIssue = w.newNote(t, "/projects/20/issues/1", note.Note{In: web, On: first.Item()})
	w.system = w.newNote(t, "/projects/20/issues/1", note.Note{In: web, On: first.Item(), System: true})
	w.internal = w.newNote(t, "/projects/20/issues/1", note.Note{In: web, On: first.Item(), Internal: true})
	m := mergerequest.MergeRequest{In: web, Source: web, SourceBranch: "topic", TargetBranch: "main", Title: "Mend", Author: w.user(t, "ann")}
	NewWithT(t).Expect(w.Activity.MergeRequests.Create(t.Context(), &m)).To(Succeed())
	w.mergeRequest = w.at("/projects/20/merge_requests/1", m.ID)
	w.onMergeRequest = w.newNote(t, "/projects/20/merge_requests/1", note.Note{In: web, On: m.Item()})
	w.epic = w.at(fmt.Sprintf("/groups/10/epics/%d", e.ID), e.ID)
	w.onEpic = w.newNote(t, fmt.Sprintf("/groups/10/epics/%d", e.ID), note.Note{In: acme, On: e.Item()})
	w.Serve(reactions.New(w.Kit).Table())
	return w
}

// at returns the path of the reactions to an item.
func (w *world) at(path string, id int64) string {
	path += "/award_emoji"
	w.ids[path] = id
	return path
}

// user returns the user with a name as the user of rows.
func (w *world) user(t *testing.T, name string) database.User {
	t.Helper()
	u, err := w.Catalog.UserByUsername(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return database.User{ID: u.RESTID(), UID: u.UID}
}

// subject returns the project or group with a namespace and a name as the subject of rows.
func (w *world) subject(t *testing.T, name string) database.Subject {
	t.Helper()
	if name == "acme/acme" {
		g := &v1alpha1.Group{}
		w.Refer(g, name)
		return database.Subject{Kind: database.KindGroup, ID: g.RESTID(), UID: g.UID}
	}
	p := &v1alpha1.Project{}
	w.Refer(p, name)
	return database.Subject{Kind: database.KindProject, ID: p.RESTID(), UID: p.UID}
}

func (w *world) newIssue(t *testing.T, in database.Subject, confidential bool) issue.Issue {
	t.Helper()
	i := issue.Issue{In: in, Title: "Broken", Type: "issue", Confidential: confidential, Author: w.user(t, "ann")}
	NewWithT(t).Expect(w.Activity.Issues.Create(t.Context(), &i)).To(Succeed())
	return i
}

// newNote adds a note by ann, and returns the path of the reactions to it.
func (w *world) newNote(t *testing.T, path string, n note.Note) string {
	t.Helper()
	n.Author, n.Body = w.user(t, "ann"), "Hello"
	NewWithT(t).Expect(w.Activity.Notes.Create(t.Context(), &n)).To(Succeed())
	return w.at(fmt.Sprintf("%s/notes/%d", path, n.ID), n.ID)
}

// give adds a reaction, and returns its id.
func (w *world) give(t *testing.T, as, path, name string) int64 {
	t.Helper()
	answer := w.As(as, "POST "+path, fmt.Sprintf(`{"name":%q}`, name))
	NewWithT(t).Expect(answer.Code).To(Equal(http.StatusCreated), answer.Body)
	return familytest.Decode[reactions.Reaction](t, answer).ID
}

func TestCreate_reactsToEachItem(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	for path, kind := range map[string]string{
		w.issue: "Issue", w.onIssue: "Note", w.mergeRequest: "MergeRequest", w.onMergeRequest: "Note", w.epic: "Epic", w.onEpic: "Note",
	} {
		answer := w.As("otto", "POST "+path, `{"name":"+1"}`)
		g.Expect(answer.Code).To(Equal(http.StatusCreated), "%s: %s", path, answer.Body)
		made := familytest.Decode[reactions.Reaction](t, answer)
		g.Expect(made.ID).NotTo(BeZero())
		want := fmt.Sprintf(`{"id":%d,"name":"thumbsup","user":{"id":4,"username":"otto","name":"otto","state":"active","avatar_url":null,
			"web_url":"https://forge.example/otto"},"created_at":"2026-06-15T12:00:00.000Z","updated_at":"2026-06-15T12:00:00.000Z",
			"awardable_id":%d,"awardable_type":%q,"url":null}`, made.ID, w.ids[path], kind)
		g.Expect(answer.Body).To(MatchJSON(want))
		for _, as := range []string{"", "ann"} {
			g.Expect(w.As(as, fmt.Sprintf("GET %s/%d", path, made.ID), "").Body).To(MatchJSON(want))
			g.Expect(w.As(as, "GET "+path, "").Body).To(MatchJSON("["+want+"]"), path)
		}
	}
}

func TestCreate_refuses(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	w.give(t, "ann", w.issue, "tada")
	const taken = `404 {"message":"404 Award Emoji Name has already been taken Not Found"}`
	for _, tt := range []struct{ as, path, body, want string }{
		{"ann", w.issue, `{"name":"tada"}`, taken},
		{"ann", w.issue, `{"name":"unheard-of"}`, `404 {"message":"404 Award Emoji Name is not a valid emoji name Not Found"}`},
		{"ann", w.issue, `{}`, `400 {"error":"name is missing"}`},
		{"ann", w.system, `{"name":"tada"}`, `404 {"message":"404 Award Emoji Not Found"}`},
		{"", w.issue, `{"name":"heart"}`, noUser},
		{"", "/projects/20/issues/2/award_emoji", `{"name":"heart"}`, noIssue},
		{"otto", "/projects/20/issues/2/award_emoji", `{"name":"heart"}`, noIssue},
		{"otto", w.internal, `{"name":"heart"}`, notFound},
		{"otto", "/projects/20/issues/1/notes/99/award_emoji", `{"name":"heart"}`, notFound},
		{"", "/projects/21/issues/1/award_emoji", `{"name":"heart"}`, noProject},
		{"otto", "/projects/21/issues/1/award_emoji", `{"name":"heart"}`, noProject},
		{"", "/groups/11/epics/1/award_emoji", `{"name":"heart"}`, noGroup},
		{"otto", "/groups/10/epics/99/award_emoji", `{"name":"heart"}`, `404 {"message":"404 Epic Not Found"}`},
	} {
		g.Expect(w.As(tt.as, "POST "+tt.path, tt.body).String()).To(Equal(tt.want), "%s %s %s", tt.as, tt.path, tt.body)
	}
	w.give(t, "mary", w.issue, "tada")
	w.give(t, "ann", w.onIssue, "tada")
	w.give(t, "mary", w.internal, "tada")
	w.give(t, "mary", "/projects/20/issues/2/award_emoji", "tada")
	w.give(t, "ann", w.issue, "-1")
	g.Expect(w.As("ann", "POST "+w.issue, `{"name":"thumbsdown"}`).String()).To(Equal(taken), "the alias is the same emoji")
}

func TestList_pagesOldestFirst(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	first := w.give(t, "ann", w.issue, "tada")
	second := w.give(t, "mary", w.issue, "heart")
	third := w.give(t, "otto", w.issue, "tada")
	w.give(t, "otto", w.onIssue, "tada")
	page := func(query string) (ids []int64) {
		answer := w.As("", "GET "+w.issue+query, "")
		g.Expect(answer.Code).To(Equal(http.StatusOK))
		g.Expect(answer.Header.Get("X-Total")).To(Equal("3"))
		for _, r := range familytest.Decode[[]reactions.Reaction](t, answer) {
			ids = append(ids, r.ID)
		}
		return ids
	}
	g.Expect(page("")).To(Equal([]int64{first, second, third}))
	g.Expect(page("?per_page=2&page=2")).To(Equal([]int64{third}))
	g.Expect(w.As("otto", "GET "+w.system, "").String()).To(Equal("200 []"))
	for path, want := range map[string]string{
		"/projects/20/issues/2/award_emoji": noIssue, "/projects/21/issues/1/award_emoji": noProject, w.internal: notFound,
		w.issue + "/99": notFound, fmt.Sprintf("%s/%d", w.onIssue, first): notFound,
	} {
		for _, as := range []string{"", "otto"} {
			g.Expect(w.As(as, "GET "+path, "").String()).To(Equal(want), "%s %q", path, as)
		}
	}
}

func TestList_hidesUserWhoIsGone(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	w.give(t, "otto", w.issue, "tada")
	w.Recreate(&v1alpha1.User{}, "otto")
	shown := familytest.Decode[[]reactions.Reaction](t, w.As("", "GET "+w.issue, ""))
	g.Expect(shown).To(ConsistOf(HaveField("User", BeNil())))
	g.Expect(w.As("otto", fmt.Sprintf("DELETE %s/%d", w.issue, shown[0].ID), "").String()).To(Equal(noUser), "the new user has given nothing")
}

func TestDelete_isForGiverAndAdministrators(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	for _, path := range []string{w.issue, w.onIssue, w.epic, w.onEpic} {
		for _, by := range []string{"otto", "root"} {
			one := fmt.Sprintf("DELETE %s/%d", path, w.give(t, "otto", path, "tada"))
			for _, as := range []string{"", "ann", "mary"} {
				g.Expect(w.As(as, one, "").String()).To(Equal(noUser), "%s %q", one, as)
			}
			g.Expect(w.As(by, one, "").String()).To(Equal("204"), one)
			g.Expect(w.As(by, one, "").String()).To(Equal(notFound), one)
			g.Expect(w.As("ann", one, "").String()).To(Equal(notFound), one)
		}
	}
	id := w.give(t, "mary", "/projects/20/issues/2/award_emoji", "tada")
	hidden := fmt.Sprintf("DELETE /projects/20/issues/2/award_emoji/%d", id)
	g.Expect(w.As("", hidden, "").String()).To(Equal(noIssue))
	g.Expect(w.As("otto", hidden, "").String()).To(Equal(noIssue))
	g.Expect(w.As("otto", "DELETE /projects/21/issues/1/award_emoji/1", "").String()).To(Equal(noProject))
}

func TestDelete_honorsIfUnmodifiedSince(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	w.Clock.SetTime(w.Clock.Now().Add(500 * time.Millisecond))
	one := fmt.Sprintf("DELETE %s/%d", w.issue, w.give(t, "ann", w.issue, "tada"))
	since := func(at time.Time) string {
		w.Header = http.Header{"If-Unmodified-Since": {at.UTC().Format(http.TimeFormat)}}
		return w.As("ann", one, "").String()
	}
	g.Expect(since(w.Clock.Now().Add(-time.Second))).To(Equal(`412 {"message":"412 Precondition Failed"}`))
	g.Expect(since(w.Clock.Now())).To(Equal("204"), "the date has no fraction")
}

func TestReaction_canBeThatOfBot(t *testing.T) {
	const value = "the-value-of-the-bot"
	g, w := NewWithT(t), newWorld(t, &v1alpha1.BotToken{
		ObjectMeta: metav1.ObjectMeta{Namespace: "acme", Name: "robot"},
		Spec: v1alpha1.BotTokenSpec{
			ID: 7, Name: "Robot", ProjectRef: &v1alpha1.Reference{Name: "web"}, Role: v1alpha1.RoleGuest,
			Scopes: []v1alpha1.TokenScope{v1alpha1.ScopeAPI}, Digest: credential.Digest(value),
		},
	})
	answer := w.With(value, "POST "+w.issue, `{"name":"tada"}`)
	g.Expect(answer.Code).To(Equal(http.StatusCreated), answer.Body)
	made := familytest.Decode[reactions.Reaction](t, answer)
	g.Expect(made.User).To(HaveValue(HaveField("Username", HavePrefix("project_20_bot_"))))
	one := fmt.Sprintf("%s/%d", w.issue, made.ID)
	g.Expect(w.As("", "GET "+one, "").Body).To(MatchJSON(answer.Body))
	g.Expect(w.As("mary", "DELETE "+one, "").String()).To(Equal(noUser))
	g.Expect(w.With(value, "DELETE "+one, "").String()).To(Equal("204"))
}

func TestReaction_isAudited(t *testing.T) {
	g, w, lines := NewWithT(t), newWorld(t), audittest.Open(t)
	handler := lines.Handler(audit.At{Door: audit.REST, Address: func(*http.Request) string { return "" }}, w)
	for _, request := range []struct{ method, path, body string }{
		{"POST", w.issue, `{"name":"+1"}`}, {"POST", w.issue, `{"name":"+1"}`}, {"DELETE", w.issue + "/1", ""}, {"DELETE", w.issue + "/1", ""},
	} {
		r := httptest.NewRequestWithContext(t.Context(), request.method, request.path, strings.NewReader(request.body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("PRIVATE-TOKEN", familytest.Value("ann"))
		handler.ServeHTTP(httptest.NewRecorder(), r)
	}
	name := fmt.Sprintf("thumbsup to issue %d", w.ids[w.issue])
	var objects [][]audit.Object
	for _, e := range lines.Events() {
		objects = append(objects, e.Objects)
	}
	g.Expect(objects).To(Equal([][]audit.Object{
		{{Verb: "create", Kind: audit.Reaction, Name: name, ID: 1}}, nil, {{Verb: "delete", Kind: audit.Reaction, Name: name, ID: 1}}, nil,
	}))
}
