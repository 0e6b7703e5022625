package draftnotes_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/v4/draftnotes"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/database/databasetest"
	"github.com/forgeplane/forgeplane/internal/draftnote"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/internal/mergerequest"
	"github.com/forgeplane/forgeplane/internal/note"
)

// world is a forge with merge requests 1 and 2 of the public project acme/web (20), whose repository has a commit. ann, a Guest, is their author. dan is
// a Developer, rick a Reporter, and otto has no role.
type world struct {
	*familytest.Shop
	t       *testing.T
	commit  string
	on      mergerequest.MergeRequest
	ann     database.User
	project v1alpha1.Project
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return newWorldIn(t, databasetest.SQLite(t))
}

// newWorldIn is newWorld in an activity database.
func newWorldIn(t *testing.T, name string) *world {
	t.Helper()
	c := gittest.New(t, "sha1")
	c.Commit(t, "a", "1\n")
	w := &world{t: t, commit: c.Git(t, "rev-parse", "main"), Shop: familytest.NewShop(t, c,
		familytest.User("root", 1, familytest.Admin), familytest.User("ann", 2), familytest.User("rick", 3), familytest.User("otto", 4), familytest.User("dan", 5),
		familytest.InProject("acme", "web", "ann", v1alpha1.RoleGuest), familytest.InProject("acme", "web", "rick", v1alpha1.RoleReporter),
		familytest.InProject("acme", "web", "dan", v1alpha1.RoleDeveloper),
	)}
	w.Activity = familytest.ActivityIn(t, name, w.Clock)
	w.Named(&w.project, "acme/web")
	w.ann = w.user("ann")
	in := database.Subject{Kind: database.KindProject, ID: 20, UID: w.project.UID}
	for _, branch := range []string{"other", "topic"} {
		w.on = mergerequest.MergeRequest{In: in, Source: in, SourceBranch: branch, TargetBranch: "main", Title: "Mend", Author: w.ann}
		if err := w.Activity.MergeRequests.Create(t.Context(), &w.on); err != nil {
			t.Fatal(err)
		}
	}
	w.Clock.SetTime(w.Clock.Now().Add(time.Hour))
	w.Serve(draftnotes.New(w.Kit).Table())
	return w
}

func (w *world) user(name string) database.User {
	w.t.Helper()
	u, err := w.Catalog.UserByUsername(w.t.Context(), name)
	if err != nil {
		w.t.Fatal(err)
	}
	return database.User{ID: u.RESTID(), UID: u.UID}
}

// discussion adds a discussion by ann that can be resolved, with changes of its note, and returns its id.
func (w *world) discussion(change ...func(*note.Note)) string {
	w.t.Helper()
	n := note.Note{In: w.on.In, On: w.on.Item(), Body: "Why?", Author: w.ann, Resolvable: true}
	for _, c := range change {
		c(&n)
	}
	if err := w.Activity.Notes.Create(w.t.Context(), &n); err != nil {
		w.t.Fatal(err)
	}
	return n.Discussion
}

// notes returns the notes on the merge request, the oldest first.
func (w *world) notes() []note.Note {
	w.t.Helper()
	all, _, err := w.Activity.Notes.List(w.t.Context(), w.on.Item(), note.Query{Reader: note.Reader{Internal: true}, Ascending: true, Limit: 1000})
	if err != nil {
		w.t.Fatal(err)
	}
	return all
}

// draft creates a draft note from a body in JSON, and returns its path.
func (w *world) draft(as, body string) string {
	w.t.Helper()
	answer := w.As(as, "POST"+drafts, body)
	if answer.Code != http.StatusCreated {
		w.t.Fatal(answer)
	}
	return fmt.Sprintf("%s/%d", drafts, familytest.Decode[draftnotes.DraftNote](w.t, answer).ID)
}

// texts returns the texts of the draft notes of a user.
func (w *world) texts(as string) []string {
	w.t.Helper()
	all := []string{}
	for _, d := range familytest.Decode[[]draftnotes.DraftNote](w.t, w.As(as, "GET"+drafts, "")) {
		all = append(all, d.Note)
	}
	return all
}

const (
	drafts    = " /projects/20/merge_requests/2/draft_notes"
	signIn    = `401 {"message":"401 Unauthorized"}`
	forbidden = `403 {"message":"403 Forbidden"}`
	missing   = `404 {"message":"404 Not found"}`
	noThread  = `400 {"message":{"base":["Thread to reply to cannot be found"]}}`
	noResolve = `400 {"message":{"base":["User is not allowed to resolve thread"]}}`
)

var (
	commits = fmt.Sprintf(`"base_sha":%q,"start_sha":%q,"head_sha":%q`, strings.Repeat("b", 40), strings.Repeat("c", 40), strings.Repeat("a", 40))
	place   = `{` + commits + `,"position_type":"text","old_path":"README.md","new_path":"README.md","new_line":9}`
)

func TestCreate_showsDraft(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	thread := w.discussion()
	for name, tt := range map[string]struct{ sent, shown string }{
		"a note": {`{"note":"**Why?**","commit_id":"undefined"}`, `"discussion_id":null,"resolve_discussion":false,"commit_id":null,"line_code":null,"position":null`},
		"a reply": {
			fmt.Sprintf(`{"note":"**Why?**","in_reply_to_discussion_id":%q,"resolve_discussion":true}`, thread),
			fmt.Sprintf(`"discussion_id":%q,"resolve_discussion":true,"commit_id":null,"line_code":null,"position":null`, thread),
		},
		"a note on a line": {
			fmt.Sprintf(`{"note":"**Why?**","position":%s,"commit_id":%q}`, place, w.commit),
			fmt.Sprintf(`"discussion_id":null,"resolve_discussion":false,"commit_id":%q,"line_code":"8ec9a00bfd09b3190ac6b22251dbb1aa95a0579d_0_9",`, w.commit) +
				`"position":{` + commits + `,"position_type":"text","old_path":"README.md","new_path":"README.md","old_line":null,"new_line":9,"line_range":null}`,
		},
		"a note on an image": {
			`{"note":"**Why?**","position":{` + commits + `,"position_type":"image","width":640,"height":480,"x":12.5,"y":0}}`,
			`"discussion_id":null,"resolve_discussion":false,"commit_id":null,"line_code":null,"position":{` + commits + `,"position_type":"image",` +
				`"old_path":"","new_path":"","old_line":null,"new_line":null,"line_range":null,"width":640,"height":480,"x":12.5,"y":0}`,
		},
	} {
		answer := w.As("dan", "POST"+drafts, tt.sent)
		g.Expect(answer.Code).To(Equal(http.StatusCreated), name+answer.Body)
		id := familytest.Decode[draftnotes.DraftNote](t, answer).ID
		want := fmt.Sprintf(`{"id":%d,"author_id":5,"merge_request_id":%d,"note":"**Why?**",%s}`, id, w.on.ID, tt.shown)
		one := fmt.Sprintf("%s/%d", drafts, id)
		g.Expect(answer.Body).To(MatchJSON(want), name)
		g.Expect(w.As("dan", "GET"+one, "").Body).To(MatchJSON(want), name)
		g.Expect(w.As("dan", "GET"+drafts, "").Body).To(MatchJSON("["+want+"]"), name)
		g.Expect(w.As("dan", "DELETE"+one, "").String()).To(Equal("204"), name)
	}
}

func TestCreate_refuses(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	thread, hidden := w.discussion(), w.discussion(func(n *note.Note) { n.Internal = true })
	system, single := w.discussion(func(n *note.Note) { n.System = true }), w.discussion(func(n *note.Note) { n.Individual, n.Resolvable = true, false })
	reply := func(to string, resolve bool) string {
		return fmt.Sprintf(`{"note":"x","in_reply_to_discussion_id":%q,"resolve_discussion":%t}`, to, resolve)
	}
	const noCommit = `400 {"message":{"commit_id":["is not the id of a commit of the project"]}}`
	for _, tt := range []struct{ as, body, want string }{
		{"dan", `{}`, `400 {"error":"note is missing"}`},
		{"dan", `{"note":" \n"}`, `400 {"message":{"note":["can't be blank"]}}`},
		{"dan", `{"note":"` + strings.Repeat("é", 1_000_001) + `"}`, `400 {"message":{"note":["is too long (maximum is 1000000 characters)"]}}`},
		{"dan", `{"note":"x","position":{"position_type":"text"}}`, `400 {"error":"position[base_sha] is missing, position[start_sha] is missing, position[head_sha] is missing"}`},
		{"dan", `{"note":"x","position":{` + commits + `,"position_type":"text"}}`, `400 {"error":"position[old_path] is missing, position[new_path] is missing, position[old_line], position[new_line] are missing, at least one parameter must be provided"}`},
		{"dan", `{"note":"x","position":{` + commits + `,"position_type":"file"}}`, `400 {"error":"position[position_type] does not have a valid value"}`},
		{"dan", `{"note":"x","commit_id":"main"}`, noCommit},
		{"dan", `{"note":"x","commit_id":"` + strings.Repeat("a", 40) + `"}`, noCommit},
		{"dan", reply("0000", false), noThread},
		{"otto", reply(hidden, false), noThread},
		{"dan", reply(system, false), `400 {"message":{"base":["Discussion can not be replied to."]}}`},
		{"dan", `{"note":"x","resolve_discussion":true}`, noResolve},
		{"dan", reply(single, true), noResolve},
		{"rick", reply(thread, true), noResolve},
	} {
		g.Expect(w.As(tt.as, "POST"+drafts, tt.body).String()).To(Equal(tt.want), fmt.Sprintf("%.200s", tt.body))
	}
	for _, as := range []string{"dan", "rick", "otto"} {
		g.Expect(w.texts(as)).To(BeEmpty())
	}
	w.draft("rick", reply(hidden, false))
	w.draft("ann", reply(thread, true))
	w.draft("otto", reply(single, false))
}

func TestCreate_limitsDrafts(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	for range draftnote.Most {
		d := draftnote.Draft{In: w.on.In, On: w.on.Item(), Author: w.user("dan"), Body: "x"}
		g.Expect(w.Activity.DraftNotes.Create(t.Context(), &d)).To(Succeed())
	}
	g.Expect(w.As("dan", "POST"+drafts, `{"note":"x"}`).String()).To(Equal(`400 {"message":{"draft_notes":["are too many (maximum is 200)"]}}`))
	w.draft("ann", `{"note":"x"}`)
}

func TestSizeOfDrafts_isLimited(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	d := draftnote.Draft{In: w.on.In, On: w.on.Item(), Author: w.user("dan"), Body: strings.Repeat("x", draftnote.MaxSize-1)}
	g.Expect(w.Activity.DraftNotes.Create(t.Context(), &d)).To(Succeed())
	last := w.draft("dan", `{"note":"x"}`)
	for _, request := range []string{"POST" + drafts, "PUT" + last} {
		g.Expect(w.As("dan", request, `{"note":"xx"}`).String()).To(Equal(`400 {"message":{"draft_notes":["are too long (maximum is 4194304 bytes)"]}}`), request)
	}
	w.draft("ann", `{"note":"xx"}`)
}

// Watchers of the merge request must not notice the draft notes of others.
func TestDraft_leavesMergeRequestUnchanged(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	one := w.draft("dan", `{"note":"mine"}`)
	g.Expect(w.As("dan", "PUT"+one, `{"note":"changed"}`).Code).To(Equal(http.StatusOK))
	g.Expect(w.As("dan", "DELETE"+one, "").String()).To(Equal("204"))
	// An empty database has revision 1.
	changes, _, err := w.Activity.Revisions.Since(t.Context(), mergerequest.Kind, 1, 10)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(changes).To(HaveExactElements(HaveField("Changed", int64(2)), HaveField("Changed", int64(3))), "only the creations")
}

func TestDraft_isPrivate(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	mine, other := w.draft("dan", `{"note":"mine"}`), strings.Replace(w.draft("dan", `{"note":"mine, too"}`), "requests/2", "requests/1", 1)
	for _, request := range []string{"GET" + mine, "PUT" + mine, "DELETE" + mine, "PUT" + mine + "/publish"} {
		for _, as := range []string{"ann", "rick", "otto", "root"} {
			g.Expect(w.As(as, request, "").String()).To(Equal(missing), as+request)
		}
		g.Expect(w.As("", request, "").String()).To(Equal(signIn), request)
		for _, absent := range []string{other, drafts + "/99", strings.Replace(mine, "requests/2", "requests/9", 1)} {
			g.Expect(w.As("dan", strings.Replace(request, mine, absent, 1), "").String()).To(Equal(missing), request+absent)
		}
	}
	for _, request := range []string{"GET" + drafts, "POST" + drafts, "POST" + drafts + "/bulk_publish"} {
		g.Expect(w.As("", request, `{"note":"x"}`).String()).To(Equal(signIn), request)
		g.Expect(w.As("dan", strings.Replace(request, "requests/2", "requests/9", 1), `{"note":"x"}`).String()).To(Equal(missing), request)
	}
	g.Expect(w.As("root", "POST"+drafts+"/bulk_publish", "").String()).To(Equal("204"))
	g.Expect(w.notes()).To(BeEmpty())
	g.Expect(w.texts("ann")).To(BeEmpty())
	g.Expect(w.texts("dan")).To(Equal([]string{"mine", "mine, too"}))
}

func TestList_isWholeUnlessPageIsRequested(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	for i := range 25 {
		w.draft("dan", fmt.Sprintf(`{"note":"%d"}`, i))
	}
	g.Expect(w.texts("dan")).To(HaveLen(25))
	g.Expect(w.As("dan", "GET"+drafts, "").Header).NotTo(HaveKey("X-Total"))
	page := w.As("dan", "GET"+drafts+"?page=2", "")
	g.Expect(familytest.Decode[[]draftnotes.DraftNote](t, page)).To(HaveLen(5))
	g.Expect(page.Header.Get("X-Total")).To(Equal("25"))
}

func TestUpdate_changesWhatIsSent(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	one := w.draft("dan", `{"note":"one"}`)
	before := w.As("dan", "GET"+one, "").String()
	for _, body := range []string{"", `{}`, `{"position":null}`} {
		g.Expect(w.As("dan", "PUT"+one, body).String()).To(Equal(before), body)
	}
	put := func(body string) draftnotes.DraftNote {
		t.Helper()
		answer := w.As("dan", "PUT"+one, body)
		g.Expect(answer.Code).To(Equal(http.StatusOK), answer.Body)
		g.Expect(w.As("dan", "GET"+one, "").Body).To(Equal(answer.Body))
		return familytest.Decode[draftnotes.DraftNote](t, answer)
	}
	g.Expect(put(`{"note":"two"}`)).To(And(HaveField("Note", "two"), HaveField("Position", BeNil())))
	g.Expect(put(`{"position":` + place + `}`)).To(And(HaveField("Note", "two"), HaveField("Position.NewLine", HaveValue(BeEquivalentTo(9)))))
	g.Expect(put(`{"note":"three"}`)).To(And(HaveField("Note", "three"), HaveField("LineCode", HaveValue(HaveSuffix("_0_9")))))
	for body, want := range map[string]string{
		`{"note":" "}`: `400 {"error":"note is empty"}`,
		`{"note":"` + strings.Repeat("é", 1_000_001) + `"}`: `400 {"message":{"note":["is too long (maximum is 1000000 characters)"]}}`,
		`{"position":{` + commits + `}}`:                    `400 {"error":"position[position_type] is missing"}`,
	} {
		g.Expect(w.As("dan", "PUT"+one, body).String()).To(Equal(want), fmt.Sprintf("%.100s", body))
	}
	g.Expect(w.texts("dan")).To(Equal([]string{"three"}))
}

func TestLockedMergeRequest_isForMembers(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	one := w.draft("otto", `{"note":"before"}`)
	_, err := w.Activity.MergeRequests.Update(t.Context(), w.on.In.UID, w.on.IID, func(m *mergerequest.MergeRequest) error {
		m.DiscussionLocked = ptr.To(true)
		return nil
	})
	g.Expect(err).NotTo(HaveOccurred())
	for _, request := range []string{"POST" + drafts, "PUT" + one, "PUT" + one + "/publish", "POST" + drafts + "/bulk_publish"} {
		g.Expect(w.As("otto", request, `{"note":"x"}`).String()).To(Equal(forbidden), request)
	}
	g.Expect(w.texts("otto")).To(Equal([]string{"before"}))
	g.Expect(w.notes()).To(BeEmpty())
	g.Expect(w.As("otto", "DELETE"+one, "").String()).To(Equal("204"), "their own, which nobody sees")
	g.Expect(w.As("ann", "PUT"+w.draft("ann", `{"note":"of a member"}`)+"/publish", "").String()).To(Equal("204"))
}
