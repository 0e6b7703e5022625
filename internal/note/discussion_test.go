package note_test

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/note"
)

func TestReply_turnsIndividualNoteIntoDiscussion(t *testing.T) {
	onEach(t, func(g *WithT, w *world) {
		first, untouched := w.add("first"), w.add("untouched")
		second, err := w.reply(first, "second")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(second.ID).NotTo(BeZero())
		g.Expect(w.Discussion(t.Context(), bug, everything, first.Discussion)).To(HaveExactElements(
			And(HaveField("Body", "first"), HaveField("Individual", false), HaveField("Resolvable", true)),
			And(HaveField("Body", "second"), HaveField("Individual", false), HaveField("Resolvable", true), HaveField("Author", bob)),
		))
		g.Expect(w.Get(t.Context(), bug, untouched.ID)).To(HaveField("Individual", true))
	})
}

func TestReply_isLikeDiscussion(t *testing.T) {
	onEach(t, func(g *WithT, w *world) {
		first := w.add("first", threaded, internal)
		g.Expect(w.Resolve(t.Context(), bug, first.Discussion, ann)).To(Succeed())
		second, err := w.reply(first, "second")
		g.Expect(err).NotTo(HaveOccurred())
		got, err := w.Get(t.Context(), bug, second.ID)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(got).To(And(HaveField("Internal", true), HaveField("Resolvable", true), HaveField("Resolver", ann)))
		g.Expect(got.ResolvedAt).NotTo(BeZero())
	})
}

func TestReply_needsDiscussion(t *testing.T) {
	onEach(t, func(g *WithT, w *world) {
		first, closed := w.add("first"), w.add("closed", system)
		_, err := w.reply(closed, "Why?")
		g.Expect(err).To(MatchError(note.ErrSystem))
		g.Expect(w.Get(t.Context(), bug, closed.ID)).To(HaveField("Individual", true), "the reply is rolled back")
		g.Expect(w.Delete(t.Context(), first.ID)).To(Succeed())
		_, err = w.reply(first, "second")
		g.Expect(err).To(MatchError(note.ErrNotFound))
		moved := closed
		moved.On = other
		_, err = w.reply(moved, "on another item")
		g.Expect(err).To(MatchError(note.ErrNotFound))
	})
}

func TestFirst_isOldestNoteOfDiscussion(t *testing.T) {
	onEach(t, func(g *WithT, w *world) {
		w.add("untouched")
		first := w.add("first", threaded, internal)
		_, err := w.reply(first, "second")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(w.First(t.Context(), bug, first.Discussion)).To(And(HaveField("ID", first.ID), HaveField("Body", "first"), HaveField("Internal", true)))
		_, err = w.First(t.Context(), other, first.Discussion)
		g.Expect(err).To(MatchError(note.ErrNotFound))
	})
}

func TestResolve_coversDiscussion(t *testing.T) {
	onEach(t, func(g *WithT, w *world) {
		first, untouched, plain := w.add("first", threaded), w.add("untouched", threaded), w.add("plain")
		second, err := w.reply(first, "second")
		g.Expect(err).NotTo(HaveOccurred())
		resolvers := func() (all []database.User) {
			for _, n := range []note.Note{first, second, untouched, plain} {
				got, err := w.Get(t.Context(), bug, n.ID)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(got.ResolvedAt.IsZero()).To(Equal(got.Resolver == database.User{}))
				all = append(all, got.Resolver)
			}
			return all
		}
		nobody := database.User{}
		for _, by := range []database.User{bob, ann} { // the first one stays
			g.Expect(w.Resolve(t.Context(), bug, first.Discussion, by)).To(Succeed())
			g.Expect(w.Resolve(t.Context(), bug, plain.Discussion, by)).To(Succeed())
			g.Expect(w.Resolve(t.Context(), other, untouched.Discussion, by)).To(Succeed())
			g.Expect(resolvers()).To(Equal([]database.User{bob, bob, nobody, nobody}))
		}
		g.Expect(w.Resolve(t.Context(), bug, first.Discussion, nobody)).To(Succeed())
		g.Expect(resolvers()).To(Equal([]database.User{nobody, nobody, nobody, nobody}))
	})
}

func TestReply_isAtPositionOfDiscussion(t *testing.T) {
	onEach(t, func(g *WithT, w *world) {
		at := note.Position{
			Base: "b", Start: "s", Head: "h", Type: note.Text, OldPath: "a.go", NewPath: "b.go", NewLine: ptr.To[int64](7),
			LineRange: &note.LineRange{First: note.Line{Code: "1", Type: "new", New: ptr.To[int64](6)}, Last: note.Line{Code: "2", Old: ptr.To[int64](3)}},
		}
		first, plain := w.add("first", threaded, func(n *note.Note) { n.Position = &at }), w.add("plain")
		_, err := w.reply(first, "second")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(w.Discussion(t.Context(), bug, everything, first.Discussion)).To(HaveExactElements(HaveField("Position", Equal(&at)), HaveField("Position", Equal(&at))))
		g.Expect(w.Get(t.Context(), bug, plain.ID)).To(HaveField("Position", BeNil()))
	})
}

func TestLock_returnsFirstNote(t *testing.T) {
	onEach(t, func(g *WithT, w *world) {
		first := w.add("first")
		g.Expect(w.Lock(t.Context(), bug, first.Discussion)).To(HaveField("Individual", true))
		_, err := w.reply(first, "second")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(w.Lock(t.Context(), bug, first.Discussion)).To(And(HaveField("ID", first.ID), HaveField("Body", "first"), HaveField("Individual", false)))
		_, err = w.Lock(t.Context(), other, first.Discussion)
		g.Expect(err).To(MatchError(note.ErrNotFound))
	})
}

func TestLineCode_namesPathAndLines(t *testing.T) {
	g := NewWithT(t)
	// The output of: printf README.md | sha1sum
	const sum = "8ec9a00bfd09b3190ac6b22251dbb1aa95a0579d"
	p := note.Position{Type: note.Text, OldPath: "README", NewPath: "README.md", OldLine: ptr.To[int64](10), NewLine: ptr.To[int64](9)}
	g.Expect(p.LineCode()).To(Equal(sum + "_10_9"))
	p.OldLine = nil
	g.Expect(p.LineCode()).To(Equal(sum + "_0_9"))
	p.Type = note.Image
	g.Expect(p.LineCode()).To(BeEmpty())
}
