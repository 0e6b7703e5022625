package auth_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/internal/role"
)

// issue is a record with an internal id in its project. A confidential one is hidden from callers without the role Reporter.
type issue struct {
	project, iid int64
	confidential bool
}

func (issue) Parameter() string { return "Internal id (iid) of the issue." }
func (issue) Owner() types.UID  { return "" }
func (i issue) key() string     { return fmt.Sprintf("issue %d", i.iid) }

// change is a merge request.
type change struct{ project, iid int64 }

func (change) Parameter() string { return "Internal id (iid) of the merge request." }
func (change) Owner() types.UID  { return "" }
func (c change) key() string     { return fmt.Sprintf("change %d", c.iid) }

// epic is a record of a group.
type epic struct{ iid int64 }

func (epic) Parameter() string { return "Internal id (iid) of the epic." }
func (epic) Owner() types.UID  { return "" }
func (e epic) key() string     { return fmt.Sprintf("epic %d", e.iid) }

func (s snippet) key() string { return s.shown() }

// comment is a note on an issue or a merge request.
type comment struct {
	on string
	id int64
}

func (comment) Parameter() string { return "Id of the note." }
func (comment) Owner() types.UID  { return "" }
func (c comment) key() string     { return fmt.Sprintf("note %d", c.id) }

// draft is a draft note, which only its author knows of.
type draft struct {
	id     int64
	author types.UID
}

func (draft) Parameter() string        { return "Id of the draft note." }
func (d draft) Owner() types.UID       { return d.author }
func (draft) Missing() *endpoint.Error { return endpoint.NotFound("") }

// busyDraft is a draft that cannot be read at the moment.
const busyDraft = 9

// reaction is an emoji on a record.
type reaction struct {
	on     string
	id     int64
	author types.UID
}

func (reaction) Parameter() string  { return "Id of the reaction." }
func (r reaction) Owner() types.UID { return r.author }

// reactable is a record that can have reactions and notes.
type reactable interface{ key() string }

// tracker has the records.
type tracker struct {
	snippets
	issues    []issue
	changes   []change
	comments  []comment
	drafts    []draft
	reactions []reaction
}

func (f *tracker) issue(_ context.Context, s auth.Subject, iid int64) (issue, error) {
	for _, i := range f.issues {
		if i.project == s.Scope.Project.RESTID() && i.iid == iid && (!i.confidential || s.Access.Role >= role.Reporter) {
			return i, nil
		}
	}
	return issue{}, endpoint.NotFound("Issue")
}

func (f *tracker) change(_ context.Context, s auth.Subject, iid int64) (change, error) {
	if c := (change{s.Scope.Project.RESTID(), iid}); slices.Contains(f.changes, c) {
		return c, nil
	}
	return change{}, endpoint.NotFound("")
}

func (f *tracker) epic(_ context.Context, _ auth.Subject, iid int64) (epic, error) {
	if iid != 1 {
		return epic{}, endpoint.NotFound("")
	}
	return epic{iid}, nil
}

func (f *tracker) comment(_ context.Context, _ auth.Subject, on reactable, id int64) (comment, error) {
	if c := (comment{on.key(), id}); slices.Contains(f.comments, c) {
		return c, nil
	}
	return comment{}, endpoint.NotFound("Note")
}

func (f *tracker) draft(_ context.Context, _ auth.Subject, _ change, id int64) (draft, error) {
	if id == busyDraft {
		return draft{}, endpoint.Unavailable("busy")
	}
	for _, d := range f.drafts {
		if d.id == id {
			return d, nil
		}
	}
	return draft{}, endpoint.NotFound("Draft")
}

func (f *tracker) reaction(_ context.Context, _ auth.Subject, on reactable, id int64) (reaction, error) {
	for _, r := range f.reactions {
		if r.on == on.key() && r.id == id {
			return r, nil
		}
	}
	return reaction{}, endpoint.NotFound("")
}

type reactionsRequest struct {
	endpoint.Paging
}

func (f *tracker) list(_ context.Context, _ auth.Subject, on reactable, r *reactionsRequest) (endpoint.List[string], error) {
	var all []string
	for _, r := range f.reactions {
		if r.on == on.key() {
			all = append(all, fmt.Sprintf("%s: %d", r.on, r.id))
		}
	}
	return endpoint.Page(r.Paging, all, func(s string) string { return s }), nil
}

func (f *tracker) react(_ context.Context, s auth.Subject, on reactable, _ *endpoint.None) (string, error) {
	return s.Caller.User.Name + " on " + on.key(), nil
}

func (f *tracker) withdraw(_ context.Context, _ auth.Subject, _ reaction, _ *endpoint.None) (endpoint.None, error) {
	return endpoint.None{}, nil
}

// onRecords returns the endpoints of the reactions on records of the type P.
func onRecords[S auth.Holder[P], R auth.Holder[auth.In[P, reaction]], P auth.Kept, O auth.Find[P] | auth.Nested[P]](f *tracker, at string, find O, see endpoint.Ability) endpoint.Table {
	return endpoint.Table{
		endpoint.Get(at+"/award_emoji", auth.OnRecord[S](f.list)).Found(find).Needs(see).Anonymous(endpoint.Served),
		endpoint.Post(at+"/award_emoji", auth.OnRecord[S](f.react)).Found(find).Needs(see).Anonymous(endpoint.Challenged),
		endpoint.Delete(at+"/award_emoji/{award_id}", auth.OnRecord[R](f.withdraw)).Found(auth.Inside[P](find, f.reaction)).
			Needs(see).And(auth.Own).Denies(endpoint.Unauthorized("")).Anonymous(endpoint.Challenged),
	}
}

func inProject[P auth.Kept, O auth.Find[P] | auth.Nested[P]](f *tracker, at string, find O) endpoint.Table {
	return onRecords[auth.ProjectRecord[P], auth.ProjectRecord[auth.In[P, reaction]]](f, "/projects/{id}/"+at, find, auth.ReadProject)
}

func (f *tracker) table() endpoint.Table {
	show := func(_ context.Context, s auth.ProjectRecord[auth.In[change, draft]], _ *endpoint.None) (string, error) {
		return fmt.Sprintf("draft %d of %s in %s", s.Record.Record.id, s.Record.Outer.key(), s.Scope.Path()), nil
	}
	notesOfIssues, notesOfChanges := auth.Inside[issue](f.issue, f.comment), auth.Inside[change](f.change, f.comment)
	return slices.Concat(
		inProject[issue](f, "issues/{issue_iid}", f.issue),
		inProject[auth.In[issue, comment]](f, "issues/{issue_iid}/notes/{note_id}", notesOfIssues),
		inProject[change](f, "merge_requests/{merge_request_iid}", f.change),
		inProject[auth.In[change, comment]](f, "merge_requests/{merge_request_iid}/notes/{note_id}", notesOfChanges),
		onRecords[auth.Record[snippet], auth.Record[auth.In[snippet, reaction]]](f, "/snippets/{id}", f.find, auth.ReadProject),
		onRecords[auth.GroupRecord[epic], auth.GroupRecord[auth.In[epic, reaction]]](f, "/groups/{id}/epics/{epic_iid}", f.epic, auth.ReadGroup),
		endpoint.Table{
			endpoint.Get("/projects/{id}/merge_requests/{merge_request_iid}/draft_notes/{draft_note_id}", show).
				Found(auth.Inside[change](f.change, f.draft)).Needs(auth.ReadLabels).And(auth.Private),
			endpoint.Put("/projects/{id}/merge_requests/{merge_request_iid}/draft_notes/{draft_note_id}", show).
				Found(auth.Inside[change](f.change, f.draft)).Needs(auth.WriteLabels).And(auth.Private),
		},
	)
}

func newTracker(t *testing.T) *familytest.Forge {
	t.Helper()
	f := familytest.New(t,
		familytest.User("root", 1, familytest.Admin), familytest.User("ann", 2), familytest.User("mary", 3), familytest.User("otto", 4),
		familytest.Group("acme", "acme", 10, "", v1alpha1.VisibilityPublic), familytest.Group("acme", "lab", 11, "", v1alpha1.VisibilityPrivate),
		familytest.Project("acme", "web", 20, "acme", v1alpha1.VisibilityPublic), familytest.Project("acme", "secret", 21, "acme", v1alpha1.VisibilityPrivate),
		familytest.InProject("acme", "web", "mary", v1alpha1.RoleReporter), familytest.InProject("acme", "secret", "mary", v1alpha1.RoleReporter),
		familytest.InProject("acme", "web", "ann", v1alpha1.RoleGuest),
	)
	ann, err := f.Catalog.UserByUsername(t.Context(), "ann")
	if err != nil {
		t.Fatal(err)
	}
	all := &tracker{
		snippets: snippets{1: {1, 20, ""}, 3: {3, 21, ""}},
		issues:   []issue{{20, 1, false}, {20, 2, true}, {21, 3, false}}, changes: []change{{20, 1}, {21, 2}},
		comments: []comment{{"issue 1", 5}, {"change 1", 6}},
		drafts:   []draft{{7, ann.UID}},
		reactions: []reaction{
			{"issue 1", 30, ann.UID}, {"issue 1", 31, ""}, {"issue 1", 32, ""}, {"note 5", 33, ann.UID}, {"change 1", 34, ann.UID},
			{"note 6", 35, ann.UID}, {"snippet 1", 36, ann.UID}, {"epic 1", 37, ann.UID},
		},
	}
	return f.Serve(all.table())
}

const (
	signIn    = `401 {"message":"401 Unauthorized"}`
	noRecord  = `404 {"message":"404 Not found"}`
	noProject = `404 {"message":"404 Project Not Found"}`
)

type asked struct{ request, as, want string }

func expect(t *testing.T, f *familytest.Forge, all []asked) {
	t.Helper()
	for _, tt := range all {
		if got := f.As(tt.as, tt.request, "").String(); got != tt.want {
			t.Errorf("%s as %q\ngot  %s\nwant %s", tt.request, tt.as, got, tt.want)
		}
	}
}

func TestOnRecord_sharesCollection(t *testing.T) {
	f := newTracker(t)
	for _, on := range []struct {
		// path has a record on which ann has reacted, and absent has no record. hidden is in a place that the public cannot see.
		path, absent, hidden, key string
		reaction                  int64
		noRecord, noPlace         string
	}{
		{"/projects/20/issues/1", "/projects/20/issues/9", "/projects/21/issues/3", "issue 1", 30, `404 {"message":"404 Issue Not Found"}`, noProject},
		{"/projects/acme%2Fweb/issues/1/notes/5", "/projects/20/issues/1/notes/6", "/projects/21/issues/3/notes/5", "note 5", 33, `404 {"message":"404 Note Not Found"}`, noProject},
		{"/projects/20/merge_requests/1", "/projects/20/merge_requests/2", "/projects/21/merge_requests/2", "change 1", 34, noRecord, noProject},
		{"/projects/20/merge_requests/1/notes/6", "/projects/20/merge_requests/1/notes/5", "/projects/21/merge_requests/2/notes/6", "note 6", 35, `404 {"message":"404 Note Not Found"}`, noProject},
		{"/snippets/1", "/snippets/9", "/snippets/3", "snippet 1", 36, `404 {"message":"404 Snippet Not Found"}`, `404 {"message":"404 Snippet Not Found"}`},
		{"/groups/10/epics/1", "/groups/10/epics/2", "/groups/11/epics/1", "epic 1", 37, noRecord, `404 {"message":"404 Group Not Found"}`},
	} {
		one := fmt.Sprintf("/award_emoji/%d", on.reaction)
		var said []string
		for _, as := range []string{"", "otto"} {
			said = append(said, f.As(as, "GET "+on.path+"/award_emoji?per_page=1", "").String())
		}
		want := fmt.Sprintf(`200 ["%s: %d"]`, on.key, on.reaction)
		if said[0] != want || said[1] != want {
			t.Errorf("%s: got %v, want %s", on.path, said, want)
		}
		expect(t, f, []asked{
			{"POST " + on.path + "/award_emoji", "otto", fmt.Sprintf(`201 "otto on %s"`, on.key)},
			{"POST " + on.path + "/award_emoji", "", signIn},
			{"DELETE " + on.path + one, "", signIn}, {"DELETE " + on.path + one, "otto", signIn}, {"DELETE " + on.path + one, "ann", "204"},
			{"DELETE " + on.path + "/award_emoji/99", "ann", noRecord}, {"DELETE " + on.path + "/award_emoji/x", "ann", `400 {"error":"award_id is invalid"}`},
		})
		for _, as := range []string{"", "otto"} {
			expect(t, f, []asked{
				{"GET " + on.absent + "/award_emoji", as, on.noRecord}, {"POST " + on.absent + "/award_emoji", as, on.noRecord}, {"DELETE " + on.absent + one, as, on.noRecord},
				{"GET " + on.hidden + "/award_emoji", as, on.noPlace}, {"POST " + on.hidden + "/award_emoji", as, on.noPlace}, {"DELETE " + on.hidden + one, as, on.noPlace},
			})
		}
	}
}

func TestOnRecord_pages(t *testing.T) {
	f := newTracker(t)
	a := f.As("", "GET /projects/20/issues/1/award_emoji?per_page=2&page=2", "")
	if got := a.String(); got != `200 ["issue 1: 32"]` || a.Header.Get("X-Total") != "3" {
		t.Errorf("got %s with %v", got, a.Header)
	}
}

func TestInside_hidesWhatIsInHiddenRecord(t *testing.T) {
	const noIssue = `404 {"message":"404 Issue Not Found"}`
	expect(t, newTracker(t), []asked{
		{"POST /projects/20/issues/2/award_emoji", "", noIssue}, {"POST /projects/20/issues/2/award_emoji", "otto", noIssue},
		{"POST /projects/20/issues/2/award_emoji", "mary", `201 "mary on issue 2"`},
		{"GET /projects/20/issues/2/notes/5/award_emoji", "otto", noIssue}, {"GET /projects/20/issues/2/notes/5/award_emoji", "mary", `404 {"message":"404 Note Not Found"}`},
		{"GET /projects/20/issues/x/notes/y/award_emoji", "mary", `400 {"error":"issue_iid is invalid"}`},
		// Internal ids count within a project.
		{"GET /projects/21/issues/1/award_emoji", "mary", noIssue}, {"GET /projects/21/issues/3/award_emoji", "mary", "200 []"},
	})
}

func TestPrivate_hidesRecordFromOthers(t *testing.T) {
	const one, none = " /projects/20/merge_requests/1/draft_notes/7", " /projects/20/merge_requests/1/draft_notes/8"
	const shown = `200 "draft 7 of change 1 in acme/web"`
	expect(t, newTracker(t), []asked{
		{"GET" + one, "ann", shown}, {"GET" + one, "otto", noRecord}, {"GET" + one, "mary", noRecord}, {"GET" + one, "root", noRecord}, {"GET" + one, "", signIn},
		{"GET" + none, "ann", noRecord}, {"GET /projects/20/merge_requests/9/draft_notes/7", "ann", noRecord},
		{"GET /projects/21/merge_requests/2/draft_notes/7", "ann", noProject},
		{"GET /projects/20/merge_requests/1/draft_notes/9", "ann", `503 {"message":"busy"}`},
		// Callers without the ability learn nothing about records, including their own.
		{"PUT" + one, "ann", `403 {"message":"403 Forbidden"}`}, {"PUT" + none, "ann", `403 {"message":"403 Forbidden"}`}, {"PUT" + one, "mary", noRecord},
	})
}

func TestInside_describesEachParameter(t *testing.T) {
	type parameter struct{ Name, Description string }
	var document struct {
		Paths map[string]map[string]struct{ Parameters []parameter }
	}
	h := endpoint.NewHandler(endpoint.Options{Guard: newTracker(t).Guard, Log: logr.Discard(), BaseURL: &url.URL{}}, (&tracker{}).table())
	if err := json.Unmarshal(h.OpenAPI(), &document); err != nil {
		t.Fatal(err)
	}
	for at, want := range map[string][]parameter{
		"/projects/{id}/issues/{issue_iid}/notes/{note_id}/award_emoji/{award_id}": {
			{"id", "Id or full path of the project."}, {"issue_iid", "Internal id (iid) of the issue."}, {"note_id", "Id of the note."},
			{"award_id", "Id of the reaction."},
		},
		"/groups/{id}/epics/{epic_iid}/award_emoji/{award_id}": {
			{"id", "Id or full path of the group."}, {"epic_iid", "Internal id (iid) of the epic."}, {"award_id", "Id of the reaction."},
		},
		"/snippets/{id}/award_emoji/{award_id}": {{"id", "Id of the snippet."}, {"award_id", "Id of the reaction."}},
	} {
		if got := document.Paths[at]["delete"].Parameters; !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", at, got, want)
		}
	}
}

func TestOnRecord_panicsForOtherRecords(t *testing.T) {
	defer func() {
		if got, want := recover(), "auth: a auth_test.draft is not a auth_test.reactable"; got != want {
			t.Errorf("got %v, want %s", got, want)
		}
	}()
	auth.OnRecord[auth.Record[draft]]((&tracker{}).react)
}
