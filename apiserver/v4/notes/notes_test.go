package notes_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/uptrace/bun"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/apiserver/v4/notes"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/epic"
	"github.com/forgeplane/forgeplane/internal/issue"
	"github.com/forgeplane/forgeplane/internal/mergerequest"
	"github.com/forgeplane/forgeplane/internal/note"
	"github.com/forgeplane/forgeplane/internal/reaction"
)

// world is a forge with the public project acme/web (20), whose issue 1 is open to all and whose issue 2 is locked, the private project acme/secret
// (21) with issue 1, merge request 1 of web, and epic 1 of the group acme (10). ann, a Guest of web, is the author of everything. dan is a Developer of
// web; rick is a Reporter, mary a Maintainer and olga an Owner in the group; otto has no role.
type world struct {
	*familytest.Forge
	ann, otto    database.User
	issue        issue.Issue
	mergeRequest mergerequest.MergeRequest
	epic         epic.Epic
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{Forge: familytest.New(t,
		familytest.User("root", 1, familytest.Admin), familytest.User("ann", 2), familytest.User("rick", 3), familytest.User("mary", 4),
		familytest.User("olga", 5), familytest.User("otto", 6), familytest.User("dan", 7),
		familytest.Group("acme", "acme", 10, "", v1alpha1.VisibilityPublic),
		familytest.Project("acme", "web", 20, "acme", v1alpha1.VisibilityPublic), familytest.Project("acme", "secret", 21, "acme", v1alpha1.VisibilityPrivate),
		familytest.InProject("acme", "web", "ann", v1alpha1.RoleGuest), familytest.InProject("acme", "web", "dan", v1alpha1.RoleDeveloper),
		familytest.InGroup("acme", "acme", "rick", v1alpha1.RoleReporter),
		familytest.InGroup("acme", "acme", "mary", v1alpha1.RoleMaintainer), familytest.InGroup("acme", "acme", "olga", v1alpha1.RoleOwner),
	)}
	w.Activity = familytest.Activity(t, w.Clock)
	w.ann, w.otto = w.user(t, "ann"), w.user(t, "otto")
	var web, secret v1alpha1.Project
	var acme v1alpha1.Group
	w.Named(&web, "acme/web")
	w.Named(&secret, "acme/secret")
	w.Named(&acme, "acme/acme")
	in := func(o *v1alpha1.Project) database.Subject {
		return database.Subject{Kind: database.KindProject, ID: o.RESTID(), UID: o.UID}
	}
	w.issue = issue.Issue{In: in(&web), Title: "Broken", Author: w.ann}
	w.mergeRequest = mergerequest.MergeRequest{In: in(&web), Source: in(&web), SourceBranch: "topic", TargetBranch: "main", Title: "Mend", Author: w.ann}
	w.epic = epic.Epic{In: database.Subject{Kind: database.KindGroup, ID: 10, UID: acme.UID}, Title: "Big", Author: w.ann}
	locked := issue.Issue{In: in(&web), Title: "Locked", Author: w.ann, DiscussionLocked: true}
	hidden := issue.Issue{In: in(&secret), Title: "Hidden", Author: w.ann}
	for _, i := range []*issue.Issue{&w.issue, &locked, &hidden} {
		if err := w.Activity.Issues.Create(t.Context(), i); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Activity.MergeRequests.Create(t.Context(), &w.mergeRequest); err != nil {
		t.Fatal(err)
	}
	if err := w.Activity.Epics.Create(t.Context(), &w.epic); err != nil {
		t.Fatal(err)
	}
	w.Clock.SetTime(w.Clock.Now().Add(time.Hour))
	w.Serve(notes.New(w.Kit).Table())
	return w
}

func (w *world) user(t *testing.T, name string) database.User {
	t.Helper()
	u, err := w.Catalog.UserByUsername(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return database.User{ID: u.RESTID(), UID: u.UID}
}

// said is a note as it is decoded.
type said struct {
	ID           int64
	Type, Author any
	Body         string
	System       bool
	Internal     bool
	CreatedAt    string `json:"created_at"`
	UpdatedAt    string `json:"updated_at"`
}

// thread is a discussion as it is decoded.
type thread struct {
	ID             string
	IndividualNote bool `json:"individual_note"`
	Notes          []said
}

// Bodies are the texts of the notes.
func (d thread) Bodies() []string { return bodies(d.Notes) }

func bodies(of []said) (all []string) {
	for _, n := range of {
		all = append(all, n.Body)
	}
	return all
}

const (
	onIssue, onEpic, onLocked = " /projects/20/issues/1", " /groups/10/epics/1", " /projects/20/issues/2"
	forbidden                 = `403 {"message":"403 Forbidden"}`
	signIn                    = `401 {"message":"401 Unauthorized"}`
	noNote                    = `404 {"message":"404 Not found"}`
	noDiscussion              = `404 {"message":"404 Discussion Not Found"}`
)

// write creates a note on the issue or epic.
func (w *world) write(t *testing.T, as, on, body string) said {
	t.Helper()
	answer := w.As(as, "POST"+on+"/notes", body)
	if answer.Code != http.StatusCreated {
		t.Fatal(answer)
	}
	return familytest.Decode[said](t, answer)
}

// begin creates a discussion.
func (w *world) begin(t *testing.T, as, on, body string) thread {
	t.Helper()
	answer := w.As(as, "POST"+on+"/discussions", fmt.Sprintf(`{"body":%q}`, body))
	if answer.Code != http.StatusCreated {
		t.Fatal(answer)
	}
	return familytest.Decode[thread](t, answer)
}

func TestCreate_showsNote(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	const author = `{"id":6,"username":"otto","name":"otto","state":"active","avatar_url":null,"web_url":"https://forge.example/otto"}`
	const rest = `"body":"**Hello**","attachment":null,"author":` + author + `,"created_at":"2026-06-15T13:00:00.000Z","updated_at":"2026-06-15T13:00:00.000Z",` +
		`"system":false,"resolvable":false,"resolved":false,"resolved_by":null,"resolved_at":null,"confidential":false,"internal":false,"commands_changes":{},` +
		`"imported":false,"type":null,"noteable_iid":1,`
	for on, want := range map[string]string{
		onIssue: fmt.Sprintf(`{"id":1,%s"noteable_type":"Issue","project_id":20,"noteable_id":%d}`, rest, w.issue.ID),
		onEpic:  fmt.Sprintf(`{"id":1,%s"noteable_type":"Epic","project_id":null,"noteable_id":%d}`, rest, w.epic.ID),
	} {
		w = newWorld(t)
		answer := w.As("otto", "POST"+on+"/notes", `{"body":"**Hello**"}`)
		g.Expect(answer.Code).To(Equal(http.StatusCreated), answer.Body)
		g.Expect(answer.Body).To(MatchJSON(want))
		g.Expect(w.As("", "GET"+on+"/notes/1", "").Body).To(MatchJSON(want))
		g.Expect(w.As("", "GET"+on+"/notes", "").Body).To(MatchJSON("[" + want + "]"))
		g.Expect(w.As("", "GET"+on+"/discussions", "").Body).To(And(ContainSubstring(`"individual_note":true`), ContainSubstring(`"type":null`)))
	}
}

func TestWrites_touchItem(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	later := func() time.Time {
		w.Clock.SetTime(w.Clock.Now().Add(time.Hour))
		return w.Clock.Now()
	}
	touched := func(at time.Time) {
		t.Helper()
		got, err := w.Activity.Issues.Get(t.Context(), w.issue.In.UID, 1)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(got.Updated).To(BeTemporally("==", at))
	}
	at := later()
	n := w.write(t, "ann", onIssue, `{"body":"one"}`)
	touched(at)
	at = later()
	g.Expect(w.As("ann", fmt.Sprintf("PUT%s/notes/%d", onIssue, n.ID), `{"body":"two"}`).Code).To(Equal(http.StatusOK))
	touched(at)
	at = later()
	g.Expect(w.As("ann", fmt.Sprintf("DELETE%s/notes/%d", onIssue, n.ID), "").String()).To(Equal("204"))
	touched(at)
	at = later()
	w.write(t, "ann", onEpic, `{"body":"one"}`)
	g.Expect(w.Activity.Epics.Get(t.Context(), w.epic.In.UID, 1)).To(HaveField("Updated", BeTemporally("==", at)))
}

func TestCreate_refusesMalformedText(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	n, d := w.write(t, "ann", onIssue, `{"body":"one"}`), w.begin(t, "ann", onIssue, "two")
	const blank = `400 {"message":{"note":["can't be blank"]}}`
	const long = `400 {"message":{"note":["is too long (maximum is 1000000 characters)"]}}`
	most := strings.Repeat("é", 1_000_000)
	for _, tt := range []struct{ request, body, want string }{
		{"POST" + onIssue + "/notes", `{}`, `400 {"error":"body is missing"}`},
		{"POST" + onIssue + "/notes", `{"body":" \n"}`, blank},
		{"POST" + onIssue + "/notes", `{"body":"a` + most + `"}`, long},
		{"POST" + onIssue + "/discussions", `{}`, `400 {"error":"body is missing"}`},
		{"POST" + onIssue + "/discussions", `{"body":""}`, blank},
		{"POST" + onIssue + "/discussions/" + d.ID + "/notes", `{}`, `400 {"error":"body is missing"}`},
		{"POST" + onIssue + "/discussions/" + d.ID + "/notes", `{"body":""}`, blank},
		{fmt.Sprintf("PUT%s/notes/%d", onIssue, n.ID), `{}`, `400 {"error":"body is missing"}`},
		{fmt.Sprintf("PUT%s/notes/%d", onIssue, n.ID), `{"body":" "}`, `400 {"error":"body is empty"}`},
		{fmt.Sprintf("PUT%s/notes/%d", onIssue, n.ID), `{"body":"a` + most + `"}`, long},
		{fmt.Sprintf("PUT%s/discussions/%s/notes/%d", onIssue, d.ID, d.Notes[0].ID), `{"body":" "}`, `400 {"error":"body is empty"}`},
		{"POST" + onIssue + "/notes", `{"body":"x","created_at":"then"}`, `400 {"error":"created_at is invalid"}`},
		{"GET" + onIssue + "/notes?order_by=body", "", `400 {"error":"order_by does not have a valid value"}`},
		{"GET" + onIssue + "/notes?sort=up", "", `400 {"error":"sort does not have a valid value"}`},
		{"GET" + onIssue + "/notes?activity_filter=x", "", `400 {"error":"activity_filter does not have a valid value"}`},
	} {
		g.Expect(w.As("ann", tt.request, tt.body).String()).To(Equal(tt.want), "%s %.40s", tt.request, tt.body)
	}
	g.Expect(w.As("ann", "POST"+onIssue+"/notes", `{"body":"`+most+`"}`).Code).To(Equal(http.StatusCreated))
}

func TestCreate_keepsTimeForOwners(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	const body, now = `{"body":"Imported","created_at":"2020-01-02T03:04:05+01:00"}`, "2026-06-15T13:00:00.000Z"
	for _, tt := range []struct{ as, on, want string }{
		{"olga", onIssue, "2020-01-02T02:04:05.000Z"}, {"root", onIssue, "2020-01-02T02:04:05.000Z"}, {"olga", onEpic, "2020-01-02T02:04:05.000Z"},
		{"mary", onIssue, now}, {"otto", onIssue, now}, {"mary", onEpic, now},
	} {
		g.Expect(w.write(t, tt.as, tt.on, body)).To(And(HaveField("CreatedAt", tt.want), HaveField("UpdatedAt", tt.want)), tt.as+tt.on)
	}
	for _, at := range []string{"2026-06-15T13:00:00.001Z", "9999-12-31T23:59:59-23:59", "0000-01-01T00:00:00Z"} {
		g.Expect(w.As("olga", "POST"+onIssue+"/notes", `{"body":"x","created_at":"`+at+`"}`).String()).To(Equal(`400 {"error":"created_at is invalid"}`), at)
	}
}

func TestList_sortsFiltersAndPages(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	first := w.write(t, "ann", onIssue, `{"body":"first"}`)
	w.Clock.SetTime(w.Clock.Now().Add(time.Hour))
	w.record(t, "closed")
	g.Expect(w.As("ann", fmt.Sprintf("PUT%s/notes/%d", onIssue, first.ID), `{"body":"first, changed"}`).Code).To(Equal(http.StatusOK))
	w.Clock.SetTime(w.Clock.Now().Add(time.Hour))
	w.write(t, "otto", onIssue, `{"body":"last"}`)
	for query, want := range map[string][]string{
		"":                              {"last", "closed", "first, changed"},
		"?sort=asc":                     {"first, changed", "closed", "last"},
		"?order_by=updated_at&sort=asc": {"first, changed", "closed", "last"},
		"?activity_filter=only_comments&sort=asc": {"first, changed", "last"},
		"?activity_filter=only_activity":          {"closed"},
		"?per_page=1&page=2":                      {"closed"},
	} {
		answer := w.As("", "GET"+onIssue+"/notes"+query, "")
		g.Expect(bodies(familytest.Decode[[]said](t, answer))).To(Equal(want), query)
	}
	answer := w.As("", "GET"+onIssue+"/notes?per_page=1", "")
	g.Expect(answer.Header.Get("X-Total")).To(Equal("3"))
	answer = w.As("", "GET"+onIssue+"/discussions?per_page=2&page=2", "")
	g.Expect(familytest.Decode[[]thread](t, answer)).To(HaveExactElements(HaveField("Bodies()", []string{"last"})))
	g.Expect(answer.Header.Get("X-Total")).To(Equal("3"))
}

// record adds a system note to the issue.
func (w *world) record(t *testing.T, body string) note.Note {
	t.Helper()
	n := note.Note{In: w.issue.In, On: w.issue.Item(), Author: w.ann, Body: body, System: true, Individual: true}
	if err := w.Activity.Notes.Create(t.Context(), &n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestSystemNote_isFixed(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	n := w.record(t, "closed")
	one, thread := fmt.Sprintf("%s/notes/%d", onIssue, n.ID), onIssue+"/discussions/"+n.Discussion
	g.Expect(w.As("", "GET"+one, "").Body).To(And(ContainSubstring(`"system":true`), ContainSubstring(`"type":null`)))
	g.Expect(w.As("", "GET"+thread, "").Body).To(ContainSubstring(`"individual_note":true`))
	for _, as := range []string{"ann", "mary", "root"} {
		g.Expect(w.As(as, "PUT"+one, `{"body":"x"}`).String()).To(Equal(forbidden), as)
		g.Expect(w.As(as, "DELETE"+one, "").String()).To(Equal(forbidden), as)
		g.Expect(w.As(as, "POST"+thread+"/notes", `{"body":"Why?"}`).String()).To(Equal(`400 {"message":"400 Bad request - Discussion can not be replied to."}`), as)
	}
}

func TestNote_isChangedByAuthorAndMaintainers(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	for _, on := range []string{onIssue, onEpic} {
		n, d := w.write(t, "otto", on, `{"body":"one"}`), w.begin(t, "otto", on, "two")
		for _, at := range []string{fmt.Sprintf("%s/notes/%d", on, n.ID), fmt.Sprintf("%s/discussions/%s/notes/%d", on, d.ID, d.Notes[0].ID)} {
			for as, want := range map[string]int{"": 401, "ann": 403, "rick": 403, "mary": 200, "olga": 200, "root": 200, "otto": 200} {
				answer := w.As(as, "PUT"+at, `{"body":"by `+as+`"}`)
				g.Expect(answer.Code).To(Equal(want), as+at)
				if want == 200 {
					g.Expect(familytest.Decode[said](t, answer).Body).To(Equal("by " + as))
				}
			}
			for _, tt := range []struct{ as, want string }{{"", signIn}, {"rick", forbidden}, {"otto", "204"}, {"otto", noNote}} {
				g.Expect(w.As(tt.as, "DELETE"+at, "").String()).To(Equal(tt.want), tt.as+at)
			}
		}
	}
	n := w.write(t, "otto", onIssue, `{"body":"one"}`)
	g.Expect(w.As("mary", fmt.Sprintf("DELETE%s/notes/%d", onIssue, n.ID), "").String()).To(Equal("204"))
}

func TestRemove_removesReactionsWithNote(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	n, kept := w.write(t, "ann", onIssue, `{"body":"one"}`), w.write(t, "ann", onIssue, `{"body":"two"}`)
	for _, id := range []int64{n.ID, kept.ID} {
		r := reaction.Reaction{In: w.issue.In, To: database.Item{Kind: note.Kind, ID: id}, Name: "thumbsup", User: w.otto}
		g.Expect(w.Activity.Reactions.Add(t.Context(), &r)).To(Succeed())
	}
	counts := func() (map[int64]reaction.Count, error) {
		return w.Activity.Reactions.Counts(t.Context(), note.Kind, n.ID, kept.ID)
	}
	g.Expect(w.Activity.Database.Write(t.Context(), "refusing", func(ctx context.Context, db bun.IDB) error {
		_, err := db.ExecContext(ctx, "CREATE TRIGGER refuse BEFORE DELETE ON reactions BEGIN SELECT RAISE(ABORT, 'refused'); END")
		return err
	})).To(Succeed())
	g.Expect(w.As("ann", fmt.Sprintf("DELETE%s/notes/%d", onIssue, n.ID), "").Code).To(Equal(http.StatusInternalServerError))
	g.Expect(w.As("ann", fmt.Sprintf("GET%s/notes/%d", onIssue, n.ID), "").Code).To(Equal(http.StatusOK), "the note is removed with its reactions or not at all")
	g.Expect(w.Activity.Database.Write(t.Context(), "allowing", func(ctx context.Context, db bun.IDB) error {
		_, err := db.ExecContext(ctx, "DROP TRIGGER refuse")
		return err
	})).To(Succeed())
	g.Expect(w.As("ann", fmt.Sprintf("DELETE%s/notes/%d", onIssue, n.ID), "").String()).To(Equal("204"))
	g.Expect(counts()).To(Equal(map[int64]reaction.Count{kept.ID: {Up: 1}}))
}

func TestDiscussion_isRepliedTo(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	for _, on := range []string{onIssue, onEpic} {
		d := w.begin(t, "otto", on, "one")
		g.Expect(d.ID).To(MatchRegexp("^[0-9a-f]{40}$"))
		g.Expect(d.IndividualNote).To(BeFalse())
		g.Expect(d.Notes).To(HaveExactElements(And(HaveField("Body", "one"), HaveField("Type", "DiscussionNote"))))
		answer := w.As("rick", "POST"+on+"/discussions/"+d.ID+"/notes", `{"body":"two"}`)
		g.Expect(answer.Code).To(Equal(http.StatusCreated), answer.Body)
		g.Expect(familytest.Decode[said](t, answer)).To(And(HaveField("Body", "two"), HaveField("Type", "DiscussionNote")))
		got := familytest.Decode[thread](t, w.As("", "GET"+on+"/discussions/"+d.ID, ""))
		g.Expect(got.Bodies()).To(Equal([]string{"one", "two"}))

		w.write(t, "ann", on, `{"body":"single"}`)
		all := familytest.Decode[[]thread](t, w.As("", "GET"+on+"/discussions", ""))
		g.Expect(all).To(HaveExactElements(HaveField("Bodies()", []string{"one", "two"}), And(HaveField("Bodies()", []string{"single"}), HaveField("IndividualNote", true))))
		g.Expect(w.As("otto", "POST"+on+"/discussions/"+all[1].ID+"/notes", `{"body":"reply"}`).Code).To(Equal(http.StatusCreated))
		got = familytest.Decode[thread](t, w.As("", "GET"+on+"/discussions/"+all[1].ID, ""))
		g.Expect(got.IndividualNote).To(BeFalse())
		g.Expect(got.Notes).To(HaveExactElements(HaveField("Type", "DiscussionNote"), HaveField("Type", "DiscussionNote")))

		g.Expect(w.As("otto", "GET"+on+"/discussions/0000", "").String()).To(Equal(noDiscussion))
		g.Expect(w.As("otto", "POST"+on+"/discussions/0000/notes", `{"body":"x"}`).String()).To(Equal(noDiscussion))
		g.Expect(w.As("otto", "PUT"+on+"/discussions/0000", `{"resolved":true}`).String()).To(Equal(noDiscussion))
		other := fmt.Sprintf("%s/discussions/%s/notes/%d", on, all[1].ID, d.Notes[0].ID)
		g.Expect(w.As("otto", "PUT"+other, `{"body":"x"}`).String()).To(Equal(noNote), "a note of another discussion")
		g.Expect(w.As("otto", "DELETE"+other, "").String()).To(Equal(noNote), "a note of another discussion")
	}
}

func TestDiscussion_ofIssueCannotBeResolved(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	for _, on := range []string{onIssue, onEpic} {
		d := w.begin(t, "ann", on, "one")
		one := fmt.Sprintf("%s/discussions/%s/notes/%d", on, d.ID, d.Notes[0].ID)
		for _, as := range []string{"ann", "olga"} {
			g.Expect(w.As(as, "PUT"+on+"/discussions/"+d.ID, `{"resolved":true}`).String()).To(Equal(forbidden))
			g.Expect(w.As(as, "PUT"+one, `{"resolved":true}`).String()).To(Equal(`400 {"message":"400 Bad request - Note is not resolvable"}`))
		}
		g.Expect(w.As("ann", "PUT"+on+"/discussions/"+d.ID, `{}`).String()).To(Equal(`400 {"error":"resolved is missing"}`))
		g.Expect(w.As("ann", "PUT"+one, `{}`).String()).To(Equal(`400 {"error":"body, resolved are missing, exactly one parameter must be provided"}`))
		g.Expect(w.As("ann", "PUT"+one, `{"body":"x","resolved":true}`).String()).To(Equal(`400 {"error":"body, resolved are mutually exclusive"}`))
	}
}

func TestInternalNote_isForReporters(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	for _, on := range []string{onIssue, onEpic} {
		for _, parameter := range []string{"internal", "confidential"} {
			body := fmt.Sprintf(`{"body":"secret",%q:true}`, parameter)
			g.Expect(w.As("otto", "POST"+on+"/notes", body).String()).To(Equal(forbidden))
			n := w.write(t, "rick", on, body)
			g.Expect(n.Internal).To(BeTrue())
			all := familytest.Decode[[]thread](t, w.As("mary", "GET"+on+"/discussions", ""))
			d := on + "/discussions/" + all[len(all)-1].ID
			reply := familytest.Decode[said](t, w.As("mary", "POST"+d+"/notes", `{"body":"me too"}`))
			g.Expect(reply.Internal).To(BeTrue())
			for _, as := range []string{"", "otto"} {
				g.Expect(w.As(as, "GET"+on+"/notes", "").String()).To(Equal("200 []"), as)
				g.Expect(w.As(as, "GET"+on+"/discussions", "").String()).To(Equal("200 []"), as)
				g.Expect(w.As(as, fmt.Sprintf("GET%s/notes/%d", on, n.ID), "").String()).To(Equal(noNote), as)
				g.Expect(w.As(as, "GET"+d, "").String()).To(Equal(noDiscussion), as)
			}
			g.Expect(w.As("otto", "POST"+d+"/notes", `{"body":"x"}`).String()).To(Equal(noDiscussion))
			g.Expect(w.As("otto", fmt.Sprintf("PUT%s/notes/%d", on, n.ID), `{"body":"x"}`).String()).To(Equal(noNote))
			g.Expect(w.As("otto", fmt.Sprintf("DELETE%s/notes/%d", d, n.ID), "").String()).To(Equal(noNote))
		}
	}
}

func TestLockedIssue_isForMembers(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	locked, err := w.Activity.Issues.Get(t.Context(), w.issue.In.UID, 2)
	g.Expect(err).NotTo(HaveOccurred())
	n := note.Note{In: locked.In, On: locked.Item(), Author: w.otto, Body: "before"}
	g.Expect(w.Activity.Notes.Create(t.Context(), &n)).To(Succeed())
	d := onLocked + "/discussions/" + n.Discussion
	for _, tt := range []struct{ request, body string }{
		{"POST" + onLocked + "/notes", `{"body":"x"}`}, {"POST" + onLocked + "/discussions", `{"body":"x"}`}, {"POST" + d + "/notes", `{"body":"x"}`},
		{fmt.Sprintf("PUT%s/notes/%d", onLocked, n.ID), `{"body":"x"}`}, {fmt.Sprintf("PUT%s/notes/%d", d, n.ID), `{"body":"x"}`},
		{fmt.Sprintf("DELETE%s/notes/%d", onLocked, n.ID), ""}, {fmt.Sprintf("DELETE%s/notes/%d", d, n.ID), ""},
	} {
		g.Expect(w.As("otto", tt.request, tt.body).String()).To(Equal(forbidden), tt.request)
	}
	g.Expect(w.As("otto", fmt.Sprintf("GET%s/notes/%d", onLocked, n.ID), "").Code).To(Equal(http.StatusOK))
	w.write(t, "ann", onLocked, `{"body":"of a member"}`)
	g.Expect(w.As("ann", "POST"+d+"/notes", `{"body":"x"}`).Code).To(Equal(http.StatusCreated))
	g.Expect(w.As("mary", fmt.Sprintf("PUT%s/notes/%d", onLocked, n.ID), `{"body":"x"}`).Code).To(Equal(http.StatusOK))
}

func TestFamily_hidesWhatCallersCannotSee(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	n := w.write(t, "ann", onIssue, `{"body":"one"}`)
	const noProject, noIssue, noEpic = `404 {"message":"404 Project Not Found"}`, `404 {"message":"404 Issue Not Found"}`, `404 {"message":"404 Epic Not Found"}`
	for _, tt := range []struct{ as, request, want string }{
		{"otto", "GET /projects/21/issues/1/notes", noProject}, {"", "GET /projects/21/issues/1/notes", noProject},
		{"otto", "POST /projects/21/issues/1/notes", noProject}, {"", "POST /projects/21/issues/1/discussions", noProject},
		{"", "POST" + onIssue + "/notes", signIn}, {"", "POST" + onIssue + "/discussions", signIn}, {"", "POST" + onEpic + "/notes", signIn},
		{"otto", "GET /projects/20/issues/9/notes", noIssue}, {"otto", "GET /groups/10/epics/9/discussions", noEpic},
		{"rick", fmt.Sprintf("GET /projects/21/issues/1/notes/%d", n.ID), noNote}, {"rick", fmt.Sprintf("GET%s/notes/%d", onEpic, n.ID), noNote},
		{"rick", fmt.Sprintf("PUT%s/notes/%d", onEpic, n.ID), noNote},
		{"otto", "GET" + onIssue + "/notes/x", `400 {"error":"note_id is invalid"}`}, {"otto", "GET" + onIssue + "/notes/99", noNote},
	} {
		body := ""
		if !strings.HasPrefix(tt.request, "GET") {
			body = `{"body":"x"}`
		}
		g.Expect(w.As(tt.as, tt.request, body).String()).To(Equal(tt.want), tt.as+" "+tt.request)
	}
	if got := w.As("rick", "POST /projects/21/issues/1/notes", `{"body":"x"}`); got.Code != http.StatusCreated {
		t.Error(got)
	}
}

func TestNote_outlivesItsAuthor(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	n := w.write(t, "otto", onIssue, `{"body":"one"}`)
	w.Recreate(&v1alpha1.User{}, "otto")
	var shown map[string]any
	g.Expect(json.Unmarshal([]byte(w.As("", fmt.Sprintf("GET%s/notes/%d", onIssue, n.ID), "").Body), &shown)).To(Succeed())
	g.Expect(shown).To(HaveKeyWithValue("author", BeNil()))
	g.Expect(w.As("otto", fmt.Sprintf("PUT%s/notes/%d", onIssue, n.ID), `{"body":"x"}`).String()).To(Equal(forbidden), "another user with the same name")
}
