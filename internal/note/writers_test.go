package note_test

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/note"
)

func TestWriters_areInOrderOfFirstNotes(t *testing.T) {
	onEach(t, func(g *WithT, w *world) {
		by := func(u database.User) func(*note.Note) { return func(n *note.Note) { n.Author = u } }
		carol, dan := database.User{ID: 7, UID: "carol"}, database.User{ID: 8, UID: "dan"}
		w.add("first", by(carol))
		w.add("second", ofBob)
		w.add("again", by(carol))
		w.add("closed", by(dan), system)
		w.add("secret", by(dan), internal)
		w.add("elsewhere", by(dan), elsewhere)
		g.Expect(w.Writers(t.Context(), bug)).To(Equal([]database.User{carol, bob}))
		g.Expect(w.Writers(t.Context(), database.Item{Kind: "issue", ID: 99})).To(BeEmpty())
		for uid, want := range map[types.UID]bool{carol.UID: true, bob.UID: true, dan.UID: false, "nobody": false} {
			g.Expect(w.Wrote(t.Context(), bug, uid)).To(Equal(want), "%s", uid)
		}
	})
}
