package note_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/internal/note"
)

func TestList_sortsFiltersAndPages(t *testing.T) {
	onEach(t, func(g *WithT, w *world) {
		first := w.add("first")
		w.add("closed", system)
		w.add("secret", internal)
		w.add("of bob", internal, ofBob)
		w.add("elsewhere", elsewhere)
		w.clock.SetTime(noon.Add(time.Hour))
		_, err := w.Update(t.Context(), first.ID, "first")
		g.Expect(err).NotTo(HaveOccurred())
		for _, tt := range []struct {
			about string
			query note.Query
			want  []string
			total int
		}{
			{"the newest first", note.Query{Reader: everything, Limit: 9}, []string{"of bob", "secret", "closed", "first"}, 4},
			{"the oldest first", note.Query{Reader: everything, Ascending: true, Limit: 9}, []string{"first", "closed", "secret", "of bob"}, 4},
			{"by the last change", note.Query{Reader: everything, ByUpdate: true, Limit: 9}, []string{"first", "of bob", "secret", "closed"}, 4},
			{"a page", note.Query{Reader: everything, Skip: 1, Limit: 2}, []string{"secret", "closed"}, 4},
			{"past the end", note.Query{Reader: everything, Skip: 9, Limit: 2}, nil, 4},
			{"written notes", note.Query{Reader: everything, Kinds: note.Written, Limit: 9}, []string{"of bob", "secret", "first"}, 3},
			{"system notes", note.Query{Reader: everything, Kinds: note.System, Limit: 9}, []string{"closed"}, 1},
			{"for nobody", note.Query{Limit: 9}, []string{"closed", "first"}, 2},
			{"for the author of an internal note", note.Query{Reader: note.Reader{User: bob.UID}, Limit: 9}, []string{"of bob", "closed", "first"}, 3},
		} {
			got, total, err := w.List(t.Context(), bug, tt.query)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(bodies(got)).To(Equal(tt.want), tt.about)
			g.Expect(total).To(Equal(tt.total), tt.about)
		}
	})
}

func TestDiscussions_keepNotesTogether(t *testing.T) {
	onEach(t, func(g *WithT, w *world) {
		one := w.add("one", threaded)
		two := w.add("two")
		w.add("secret", internal)
		w.add("imported", func(n *note.Note) { n.Created = noon.Add(-time.Hour) })
		w.add("elsewhere", elsewhere)
		for _, body := range []string{"one, again", "one, once more"} {
			_, err := w.reply(one, body)
			g.Expect(err).NotTo(HaveOccurred())
		}
		read := func(r note.Reader, skip, limit int) (all [][]string, total int) {
			some, total, err := w.Discussions(t.Context(), bug, r, skip, limit)
			g.Expect(err).NotTo(HaveOccurred())
			for _, notes := range some {
				all = append(all, bodies(notes))
			}
			return all, total
		}
		all, total := read(everything, 0, 9)
		g.Expect(all).To(Equal([][]string{{"imported"}, {"one", "one, again", "one, once more"}, {"two"}, {"secret"}}))
		g.Expect(total).To(Equal(4))
		all, total = read(note.Reader{}, 1, 1)
		g.Expect(all).To(Equal([][]string{{"one", "one, again", "one, once more"}}))
		g.Expect(total).To(Equal(3))
		all, total = read(note.Reader{}, 5, 1)
		g.Expect(all).To(BeEmpty())
		g.Expect(total).To(Equal(3))

		got, err := w.Discussion(t.Context(), bug, note.Reader{}, two.Discussion)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(bodies(got)).To(Equal([]string{"two"}))
		_, err = w.Discussion(t.Context(), other, everything, two.Discussion)
		g.Expect(err).To(MatchError(note.ErrNotFound), "on another item")
	})
}

func TestDiscussion_isMissingForThoseWhoSeeNoNote(t *testing.T) {
	onEach(t, func(g *WithT, w *world) {
		secret := w.add("secret", internal)
		_, err := w.Discussion(t.Context(), bug, note.Reader{User: bob.UID}, secret.Discussion)
		g.Expect(err).To(MatchError(note.ErrNotFound))
		for _, r := range []note.Reader{everything, {User: ann.UID}} {
			g.Expect(w.Discussion(t.Context(), bug, r, secret.Discussion)).To(HaveLen(1))
		}
	})
}
