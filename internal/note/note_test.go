package note_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/database/databasetest"
	"github.com/forgeplane/forgeplane/internal/note"
)

var (
	noon = time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC)
	app  = database.Subject{Kind: database.KindProject, ID: 20, UID: "app"}
	// bug and other are two issues.
	bug, other = database.Item{Kind: "issue", ID: 7}, database.Item{Kind: "issue", ID: 8}
	ann, bob   = database.User{ID: 1, UID: "ann"}, database.User{ID: 2, UID: "bob"}
	everything = note.Reader{Internal: true}
)

type world struct {
	*note.Store
	clock *clocktesting.FakePassiveClock
	t     *testing.T
}

// onEach runs a test with the notes of each engine.
func onEach(t *testing.T, test func(g *WithT, w *world)) {
	t.Helper()
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		c := clocktesting.NewFakePassiveClock(noon)
		test(NewWithT(t), &world{note.New(databasetest.Open(t, name, note.Migrations()), c), c, t})
	})
}

// add creates a note a minute after the one before, with changes of it.
func (w *world) add(body string, change ...func(*note.Note)) note.Note {
	w.t.Helper()
	w.clock.SetTime(w.clock.Now().Add(time.Minute))
	n := note.Note{In: app, On: bug, Author: ann, Body: body, Individual: true}
	for _, c := range change {
		c(&n)
	}
	if err := w.Create(w.t.Context(), &n); err != nil {
		w.t.Fatal(err)
	}
	return n
}

// reply replies to a note.
func (w *world) reply(to note.Note, body string) (note.Note, error) {
	w.t.Helper()
	w.clock.SetTime(w.clock.Now().Add(time.Minute))
	n := note.Note{In: app, On: to.On, Discussion: to.Discussion, Resolvable: true, Author: bob, Body: body}
	err := w.Reply(w.t.Context(), &n)
	return n, err
}

func internal(n *note.Note)  { n.Internal = true }
func system(n *note.Note)    { n.System = true }
func threaded(n *note.Note)  { n.Individual, n.Resolvable = false, true }
func ofBob(n *note.Note)     { n.Author = bob }
func elsewhere(n *note.Note) { n.On = other }

func bodies(notes []note.Note) (all []string) {
	for _, n := range notes {
		all = append(all, n.Body)
	}
	return all
}

func TestCreate_keepsEveryField(t *testing.T) {
	onEach(t, func(g *WithT, w *world) {
		n := w.add("Hello", internal, threaded, func(n *note.Note) { n.Commit = "c0ffee" })
		g.Expect(n.Discussion).To(MatchRegexp("^[0-9a-f]{40}$"))
		got, err := w.Get(t.Context(), bug, n.ID)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(got.Created).To(BeTemporally("==", noon.Add(time.Minute)))
		got.Created, got.Updated = n.Created, n.Updated
		g.Expect(got).To(Equal(n))
		g.Expect(w.add("Hello").Discussion).NotTo(Equal(n.Discussion))
		_, err = w.Get(t.Context(), other, n.ID)
		g.Expect(err).To(MatchError(note.ErrNotFound))
		old := w.add("Imported", func(n *note.Note) { n.Created = noon.Add(-time.Hour) })
		g.Expect(old.Updated).To(Equal(noon.Add(-time.Hour)))
	})
}

func TestUpdate_changesText(t *testing.T) {
	onEach(t, func(g *WithT, w *world) {
		n, untouched := w.add("one"), w.add("two")
		w.clock.SetTime(noon.Add(time.Hour))
		got, err := w.Update(t.Context(), n.ID, "three")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(got.Body).To(Equal("three"))
		g.Expect(got.Created).To(BeTemporally("==", n.Created))
		g.Expect(got.Updated).To(BeTemporally("==", noon.Add(time.Hour)))
		g.Expect(w.Get(t.Context(), bug, untouched.ID)).To(HaveField("Body", "two"))
		_, err = w.Update(t.Context(), 99, "four")
		g.Expect(err).To(MatchError(note.ErrNotFound))
	})
}

func TestDelete_removesOneNote(t *testing.T) {
	onEach(t, func(g *WithT, w *world) {
		n := w.add("one")
		w.add("two")
		g.Expect(w.Delete(t.Context(), n.ID)).To(Succeed())
		g.Expect(w.Delete(t.Context(), n.ID)).To(MatchError(note.ErrNotFound))
		rest, _, err := w.List(t.Context(), bug, note.Query{Reader: everything, Limit: 9})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(bodies(rest)).To(Equal([]string{"two"}))
	})
}

func TestRemove_removesNotesOfItem(t *testing.T) {
	onEach(t, func(g *WithT, w *world) {
		one, two, kept := w.add("one"), w.add("two"), w.add("three", elsewhere)
		ids, err := w.Remove(t.Context(), bug)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(ids).To(ConsistOf(one.ID, two.ID))
		g.Expect(w.Get(t.Context(), other, kept.ID)).To(HaveField("Body", "three"))
		g.Expect(w.Remove(t.Context(), bug)).To(BeEmpty())
	})
}

func TestCounts_countsWhatPeopleWrote(t *testing.T) {
	onEach(t, func(g *WithT, w *world) {
		w.add("one")
		w.add("two", internal)
		w.add("closed", system)
		w.add("three", elsewhere)
		g.Expect(w.Counts(t.Context(), "issue", bug.ID, other.ID, 9)).To(Equal(map[int64]note.Count{bug.ID: {Notes: 2}, other.ID: {Notes: 1}}))
		g.Expect(w.Counts(t.Context(), "epic", bug.ID)).To(BeEmpty())
		g.Expect(w.Counts(t.Context(), "issue")).To(BeEmpty())
	})
}

func TestCounts_countsWhatIsUnresolved(t *testing.T) {
	onEach(t, func(g *WithT, w *world) {
		unresolved := func() int64 {
			counts, err := w.Counts(t.Context(), bug.Kind, bug.ID, other.ID)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(counts[other.ID].Unresolved).To(BeZero())
			return counts[bug.ID].Unresolved
		}
		w.add("plain")
		g.Expect(unresolved()).To(BeZero())
		n := w.add("why?", threaded)
		g.Expect(unresolved()).To(BeEquivalentTo(1))
		g.Expect(w.Resolve(t.Context(), bug, n.Discussion, ann)).To(Succeed())
		g.Expect(unresolved()).To(BeZero())
	})
}
