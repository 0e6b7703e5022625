package note_test

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/uptrace/bun"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/forgeplane/forgeplane/internal/database/databasetest"
	"github.com/forgeplane/forgeplane/internal/note"
)

func TestCreate_isRefusedOnFullItem(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g, db := NewWithT(t), databasetest.Open(t, name, note.Migrations())
		c := clocktesting.NewFakePassiveClock(noon)
		w := &world{note.New(db, c), c, t}
		first := w.add("first", threaded)
		w.add("closed", system)
		g.Expect(db.Write(t.Context(), "filling an item", func(ctx context.Context, db bun.IDB) error {
			const columns = "subject_kind, subject_id, subject_uid, item_kind, item_id, discussion, individual, resolvable, system, internal, body, author_id, author_uid, created_at, updated_at"
			for n := 2; n < note.MaxNotes-1; n *= 2 {
				if _, err := db.NewRaw("INSERT INTO notes ("+columns+") SELECT "+columns+" FROM notes LIMIT ?", min(n, note.MaxNotes-1-n)).Exec(ctx); err != nil {
					return err
				}
			}
			return nil
		})).To(Succeed())
		_, err := w.reply(first, "last")
		g.Expect(err).NotTo(HaveOccurred())
		_, err = w.reply(first, "too many")
		g.Expect(err).To(MatchError(note.ErrFull))
		g.Expect(w.Create(t.Context(), &note.Note{In: app, On: bug, Author: ann, Body: "too many"})).To(MatchError(note.ErrFull))
		w.add("reopened", system)
		w.add("elsewhere", elsewhere)
	})
}
