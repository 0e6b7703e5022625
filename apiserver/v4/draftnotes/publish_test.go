package draftnotes_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/uptrace/bun"

	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/audit/audittest"
	"github.com/forgeplane/forgeplane/internal/database/databasetest"
	"github.com/forgeplane/forgeplane/internal/note"
	"github.com/forgeplane/forgeplane/test/patience"
)

func TestPublish_createsNote(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	thread := w.discussion()
	dan := w.user("dan")
	at := And(HaveField("Head", strings.Repeat("a", 40)), HaveField("NewLine", HaveValue(BeEquivalentTo(9))))
	for _, tt := range []struct {
		about, body string
		want        OmegaMatcher
	}{
		{"an individual note", `{"note":"x"}`, And(HaveField("Individual", true), HaveField("Resolvable", false), HaveField("Position", BeNil()))},
		{"a discussion of the diff", fmt.Sprintf(`{"note":"x","position":%s,"commit_id":%q}`, place, w.commit), And(
			HaveField("Individual", false), HaveField("Resolvable", true), HaveField("Position", HaveValue(at)), HaveField("Commit", w.commit),
		)},
		{"a reply", fmt.Sprintf(`{"note":"x","in_reply_to_discussion_id":%q}`, thread), And(
			HaveField("Discussion", thread), HaveField("Individual", false), HaveField("Resolvable", true), HaveField("ResolvedAt.IsZero()", true),
		)},
		{"a reply that resolves", fmt.Sprintf(`{"note":"x","in_reply_to_discussion_id":%q,"resolve_discussion":true}`, thread), And(
			HaveField("Discussion", thread), HaveField("Resolver", dan), HaveField("ResolvedAt.IsZero()", false),
		)},
	} {
		one, before := w.draft("dan", tt.body), len(w.notes())
		g.Expect(w.As("dan", "PUT"+one+"/publish", "").String()).To(Equal("204"), tt.about)
		all := w.notes()
		g.Expect(all).To(HaveLen(before+1), tt.about)
		g.Expect(all[before]).To(And(HaveField("Body", "x"), HaveField("Author", dan), HaveField("In", w.on.In), tt.want), tt.about)
		g.Expect(w.As("dan", "PUT"+one+"/publish", "").String()).To(Equal(missing), tt.about)
		g.Expect(w.texts("dan")).To(BeEmpty(), tt.about)
	}
	g.Expect(w.Activity.Notes.Discussion(t.Context(), w.on.Item(), note.Reader{}, thread)).To(HaveEach(HaveField("Resolver", dan)), "all notes are resolved")
	g.Expect(w.Activity.MergeRequests.Get(t.Context(), w.on.In.UID, w.on.IID)).To(HaveField("Updated", BeTemporally("==", w.Clock.Now())))
}

func TestPublish_isAudited(t *testing.T) {
	g, w, lines := NewWithT(t), newWorld(t), audittest.Open(t)
	first := note.Note{In: w.on.In, On: w.on.Item(), Body: "Why?", Author: w.ann, Resolvable: true}
	g.Expect(w.Activity.Notes.Create(t.Context(), &first)).To(Succeed())
	one := w.draft("dan", fmt.Sprintf(`{"note":"x","in_reply_to_discussion_id":%q,"resolve_discussion":true}`, first.Discussion))
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPut, strings.TrimSpace(one)+"/publish", http.NoBody)
	r.Header.Set("PRIVATE-TOKEN", familytest.Value("dan"))
	lines.Handler(audit.At{Door: audit.REST, Address: func(*http.Request) string { return "" }}, w).ServeHTTP(httptest.NewRecorder(), r)
	g.Expect(lines.Events()).To(HaveExactElements(HaveField("Objects", HaveExactElements(
		And(HaveField("Verb", "delete"), HaveField("Kind", audit.DraftNote)), And(HaveField("Verb", "create"), HaveField("Kind", audit.Note)),
		And(HaveField("Verb", "update"), HaveField("Kind", audit.Note), HaveField("ID", first.ID)),
	))))
}

func TestPublishAll_publishesInOrder(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	// The second discussion has the lower id.
	first, second := w.discussion(func(n *note.Note) { n.Discussion = "b" }), w.discussion(func(n *note.Note) { n.Discussion = "a" })
	before := len(w.notes())
	w.draft("dan", fmt.Sprintf(`{"note":"one","in_reply_to_discussion_id":%q}`, first))
	w.draft("dan", fmt.Sprintf(`{"note":"two","in_reply_to_discussion_id":%q,"resolve_discussion":true}`, second))
	w.draft("dan", `{"note":"three"}`)
	w.draft("ann", `{"note":"of ann"}`)
	for range 2 {
		g.Expect(w.As("dan", "POST"+drafts+"/bulk_publish", "").String()).To(Equal("204"), "also if there is nothing to publish")
		g.Expect(w.notes()[before:]).To(HaveExactElements(
			And(HaveField("Body", "one"), HaveField("Discussion", first)), And(HaveField("Body", "two"), HaveField("Discussion", second)), HaveField("Body", "three"),
		))
	}
	g.Expect(w.texts("dan")).To(BeEmpty())
	g.Expect(w.texts("ann")).To(Equal([]string{"of ann"}))
}

// PostgreSQL ends one of two transactions that wait for each other. SQLite has one writer at a time.
func TestPublish_doesNotWaitForUpdate(t *testing.T) {
	g, w := NewWithT(t), newWorldIn(t, databasetest.PostgreSQL(t))
	one, dan := w.draft("dan", `{"note":"one"}`), w.user("dan")
	updated := make(chan string, 1)
	g.Expect(w.Activity.Database.Atomically(t.Context(), "publishing", func(ctx context.Context, db bun.IDB) error {
		if _, err := w.Activity.DraftNotes.Take(ctx, w.on.Item(), dan.UID); err != nil {
			return err
		}
		go func() { updated <- w.As("dan", "PUT"+one, `{"note":"two"}`).String() }()
		g.Eventually(func() (waits bool, err error) {
			err = db.NewRaw("SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'tuple' AND relation = 'draft_notes'::regclass)").Scan(ctx, &waits)
			return waits, err
		}).WithTimeout(patience.Wait).Should(BeTrue(), "the update waits for the draft note")
		return w.Activity.MergeRequests.Touch(ctx, w.on.ID, w.Clock.Now())
	})).To(Succeed())
	g.Expect(<-updated).To(Equal(missing))
}

func TestPublishAll_leavesMergeRequestAloneWithoutDrafts(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	g.Expect(w.As("dan", "POST"+drafts+"/bulk_publish", "").String()).To(Equal("204"))
	g.Expect(w.Activity.MergeRequests.Get(t.Context(), w.on.In.UID, w.on.IID)).To(HaveField("Updated", BeTemporally("<", w.Clock.Now())))
}

func TestPublish_needsDiscussion(t *testing.T) {
	for name, tt := range map[string]struct {
		meanwhile func(w *world, first note.Note) error
		want      string
	}{
		"that is gone": {func(w *world, first note.Note) error { return w.Activity.Notes.Delete(w.t.Context(), first.ID) }, "Thread to reply to cannot be found"},
		"that the author can resolve": {func(w *world, _ note.Note) error {
			return w.Activity.Database.Write(w.t.Context(), "making a discussion individual", func(ctx context.Context, db bun.IDB) error {
				_, err := db.NewUpdate().Model((*note.Note)(nil)).Set("resolvable = ?", false).Where("true").Exec(ctx)
				return err
			})
		}, "User is not allowed to resolve thread"},
	} {
		t.Run(name, func(t *testing.T) {
			g, w := NewWithT(t), newWorld(t)
			thread := w.discussion()
			first := w.notes()[0]
			w.draft("dan", `{"note":"fine"}`)
			one := w.draft("dan", fmt.Sprintf(`{"note":"reply","in_reply_to_discussion_id":%q,"resolve_discussion":true}`, thread))
			g.Expect(tt.meanwhile(w, first)).To(Succeed())
			before := w.notes()
			want := fmt.Sprintf(`400 {"message":{"base":["Draft note %s: %s"]}}`, one[strings.LastIndex(one, "/")+1:], tt.want)
			for _, request := range []string{"PUT" + one + "/publish", "POST" + drafts + "/bulk_publish"} {
				g.Expect(w.As("dan", request, "").String()).To(Equal(want), request)
				g.Expect(w.texts("dan")).To(Equal([]string{"fine", "reply"}), "nothing is published")
				g.Expect(w.notes()).To(Equal(before))
			}
			g.Expect(w.As("dan", "DELETE"+one, "").String()).To(Equal("204"))
			g.Expect(w.As("dan", "POST"+drafts+"/bulk_publish", "").String()).To(Equal("204"))
			g.Expect(w.notes()).To(HaveLen(len(before) + 1))
		})
	}
}
