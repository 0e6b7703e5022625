package draftnote_test

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/uptrace/bun"
	"k8s.io/utils/ptr"

	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/database/databasetest"
	"github.com/forgeplane/forgeplane/internal/draftnote"
	"github.com/forgeplane/forgeplane/internal/note"
)

var (
	app = database.Subject{Kind: database.KindProject, ID: 20, UID: "app"}
	// mend and other are two merge requests.
	mend, other = database.Item{Kind: "merge_request", ID: 7}, database.Item{Kind: "merge_request", ID: 8}
	ann, bob    = database.User{ID: 1, UID: "ann"}, database.User{ID: 2, UID: "bob"}
	line        = &note.Position{Base: "b", Start: "s", Head: "h", Type: note.Text, OldPath: "a.go", NewPath: "b.go", NewLine: ptr.To[int64](7)}
)

type world struct {
	*draftnote.Store
	db *database.DB
	t  *testing.T
}

// onEach runs a test with the draft notes of each engine.
func onEach(t *testing.T, test func(g *WithT, w *world)) {
	t.Helper()
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		db := databasetest.Open(t, name, draftnote.Migrations())
		test(NewWithT(t), &world{draftnote.New(db), db, t})
	})
}

// add creates a draft note by ann, with changes of it.
func (w *world) add(body string, change ...func(*draftnote.Draft)) draftnote.Draft {
	w.t.Helper()
	d := draftnote.Draft{In: app, On: mend, Author: ann, Body: body}
	for _, c := range change {
		c(&d)
	}
	if err := w.Create(w.t.Context(), &d); err != nil {
		w.t.Fatal(err)
	}
	return d
}

func ofBob(d *draftnote.Draft)     { d.Author = bob }
func elsewhere(d *draftnote.Draft) { d.On = other }

func bodies(drafts []draftnote.Draft) (all []string) {
	for _, d := range drafts {
		all = append(all, d.Body)
	}
	return all
}

func TestCreate_keepsEveryField(t *testing.T) {
	onEach(t, func(g *WithT, w *world) {
		plain := w.add("plain")
		full := w.add("full", func(d *draftnote.Draft) { d.Commit, d.Discussion, d.Resolves, d.Position = "c0ffee", "d", true, line })
		for _, d := range []draftnote.Draft{plain, full} {
			g.Expect(w.Get(t.Context(), mend, d.ID)).To(Equal(d))
		}
		_, err := w.Get(t.Context(), other, full.ID)
		g.Expect(err).To(MatchError(draftnote.ErrNotFound))
	})
}

func TestCheckLimits_countsDraftsOfAuthorOnItem(t *testing.T) {
	onEach(t, func(g *WithT, w *world) {
		g.Expect(w.CheckLimits(t.Context(), mend, ann.UID)).To(Succeed(), "an author without draft notes")
		for i := range draftnote.Most {
			w.add(strconv.Itoa(i))
		}
		w.add("of bob", ofBob)
		w.add("elsewhere", elsewhere)
		g.Expect(w.CheckLimits(t.Context(), mend, ann.UID)).To(Succeed())
		w.add("one more")
		g.Expect(w.CheckLimits(t.Context(), mend, ann.UID)).To(MatchError(draftnote.ErrTooMany))
	})
}

func TestCheckLimits_addsBytesOfDraftsOfAuthorOnItem(t *testing.T) {
	onEach(t, func(g *WithT, w *world) {
		half := strings.Repeat("é", draftnote.MaxSize/4)
		w.add(half)
		w.add(half)
		w.add("of bob", ofBob)
		w.add("elsewhere", elsewhere)
		g.Expect(w.CheckLimits(t.Context(), mend, ann.UID)).To(Succeed())
		w.add("x")
		g.Expect(w.CheckLimits(t.Context(), mend, ann.UID)).To(MatchError(draftnote.ErrTooLong))
	})
}

func TestList_hasDraftsOfAuthorOldestFirst(t *testing.T) {
	onEach(t, func(g *WithT, w *world) {
		w.add("one")
		w.add("of bob", ofBob)
		w.add("elsewhere", elsewhere)
		w.add("two")
		all, err := w.List(t.Context(), mend, ann.UID)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(bodies(all)).To(Equal([]string{"one", "two"}))
		g.Expect(w.List(t.Context(), mend, "")).To(BeEmpty())
	})
}

func TestUpdate_changesWhatIsGiven(t *testing.T) {
	onEach(t, func(g *WithT, w *world) {
		d, untouched := w.add("one", func(d *draftnote.Draft) { d.Commit, d.Discussion = "c0ffee", "d" }), w.add("untouched")
		for _, tt := range []struct {
			change draftnote.Change
			become func()
		}{
			{draftnote.Change{Body: ptr.To("two")}, func() { d.Body = "two" }},
			{draftnote.Change{Position: line}, func() { d.Position = line }},
			{draftnote.Change{}, func() {}},
			{draftnote.Change{Body: ptr.To("three"), Position: &note.Position{Type: note.Image}}, func() { d.Body, d.Position = "three", &note.Position{Type: note.Image} }},
		} {
			tt.become()
			g.Expect(w.Update(t.Context(), d.ID, tt.change)).To(Equal(d))
			g.Expect(w.Get(t.Context(), mend, d.ID)).To(Equal(d))
		}
		g.Expect(w.Get(t.Context(), mend, untouched.ID)).To(Equal(untouched))
		_, err := w.Update(t.Context(), 99, draftnote.Change{Body: ptr.To("four")})
		g.Expect(err).To(MatchError(draftnote.ErrNotFound))
	})
}

func TestDelete_removesOneDraft(t *testing.T) {
	onEach(t, func(g *WithT, w *world) {
		d := w.add("one")
		w.add("two")
		g.Expect(w.Delete(t.Context(), d.ID)).To(Succeed())
		g.Expect(w.Delete(t.Context(), d.ID)).To(MatchError(draftnote.ErrNotFound))
		rest, err := w.List(t.Context(), mend, ann.UID)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(bodies(rest)).To(Equal([]string{"two"}))
		g.Expect(w.add("three").ID).To(BeNumerically(">", d.ID), "ids are not used again")
	})
}

func TestTake_removesDraftsOfAuthor(t *testing.T) {
	onEach(t, func(g *WithT, w *world) {
		one := w.add("one", func(d *draftnote.Draft) { d.Position = line })
		w.add("two")
		w.add("three")
		bobs, kept := w.add("of bob", ofBob), w.add("elsewhere", elsewhere)
		g.Expect(w.Take(t.Context(), mend, ann.UID, one.ID, bobs.ID, kept.ID)).To(Equal([]draftnote.Draft{one}))
		rest, err := w.Take(t.Context(), mend, ann.UID)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(bodies(rest)).To(Equal([]string{"two", "three"}))
		g.Expect(w.Take(t.Context(), mend, ann.UID)).To(BeEmpty())
		g.Expect(w.Get(t.Context(), mend, bobs.ID)).To(Equal(bobs))
		g.Expect(w.Get(t.Context(), other, kept.ID)).To(Equal(kept))
	})
}

func TestTake_givesDraftToOneOfSeveralCallers(t *testing.T) {
	onEach(t, func(g *WithT, w *world) {
		for i := range 20 {
			w.add(strconv.Itoa(i))
		}
		taken, errs := make([][]draftnote.Draft, 4), make([]error, 4)
		var group sync.WaitGroup
		for i := range taken {
			group.Go(func() {
				errs[i] = w.db.Atomically(t.Context(), "publishing", func(ctx context.Context, _ bun.IDB) (err error) {
					taken[i], err = w.Take(ctx, mend, ann.UID)
					return err
				})
			})
		}
		group.Wait()
		seen := map[int64]int{}
		for i := range taken {
			g.Expect(errs[i]).NotTo(HaveOccurred())
			for _, d := range taken[i] {
				seen[d.ID]++
			}
		}
		g.Expect(seen).To(HaveLen(20))
		g.Expect(seen).To(HaveEach(1))
	})
}

func TestRemove_removesDraftsOfItem(t *testing.T) {
	onEach(t, func(g *WithT, w *world) {
		w.add("one")
		w.add("of bob", ofBob)
		kept := w.add("elsewhere", elsewhere)
		g.Expect(w.Remove(t.Context(), mend)).To(Succeed())
		for _, author := range []database.User{ann, bob} {
			g.Expect(w.List(t.Context(), mend, author.UID)).To(BeEmpty())
		}
		g.Expect(w.Get(t.Context(), other, kept.ID)).To(Equal(kept))
		g.Expect(w.Remove(t.Context(), mend)).To(Succeed(), "nothing is left")
	})
}
