package database_test

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/uptrace/bun"

	"github.com/forgeplane/forgeplane/internal/database/databasetest"
)

func TestAtomically_makesAllChangesOrNone(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g, d := NewWithT(t), open(t, name)
		inTurn := func(texts ...string) error {
			return d.Atomically(t.Context(), "writing both", func(ctx context.Context, _ bun.IDB) error {
				for _, text := range texts {
					if err := write(ctx, d, text); err != nil {
						return err
					}
				}
				return nil
			})
		}
		g.Expect(inTurn("a", "b")).To(Succeed())
		expectNotes(t, d, "a", "b")
		g.Expect(inTurn("c", "a")).To(MatchError(HavePrefix("activity database: writing both: writing a: ")))
		expectNotes(t, d, "a", "b")
	})
}

func TestAtomically_hidesChangesUntilCommit(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g, d := NewWithT(t), open(t, name)
		g.Expect(d.Atomically(t.Context(), "writing", func(ctx context.Context, tx bun.IDB) error {
			if _, err := tx.NewInsert().Model(&note{Text: "mine"}).Exec(ctx); err != nil {
				return err
			}
			g.Expect(read(ctx, d)).To(HaveExactElements("mine"))
			g.Expect(read(t.Context(), d)).To(BeEmpty())
			return nil
		})).To(Succeed())
		expectNotes(t, d, "mine")
	})
}

func TestAtomically_joinsOuterTransaction(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g, d, failure := NewWithT(t), open(t, name), errors.New("failure")
		err := d.Atomically(t.Context(), "outer", func(ctx context.Context, _ bun.IDB) error {
			g.Expect(d.Atomically(ctx, "inner", func(ctx context.Context, tx bun.IDB) error {
				_, err := tx.NewInsert().Model(&note{Text: "inner"}).Exec(ctx)
				return err
			})).To(Succeed())
			return failure
		})
		g.Expect(err).To(MatchError(failure))
		expectNotes(t, d)
	})
}

func TestAtomically_isIndependentOfOtherDatabases(t *testing.T) {
	g, one, other := NewWithT(t), open(t, databasetest.SQLite(t)), open(t, databasetest.SQLite(t))
	failure := errors.New("failure")
	g.Expect(one.Atomically(t.Context(), "writing", func(ctx context.Context, _ bun.IDB) error {
		return errors.Join(write(ctx, other, "other"), write(ctx, one, "one"), failure)
	})).To(MatchError(failure))
	expectNotes(t, one)
	expectNotes(t, other, "other")
}

func TestAfterwards_runsAfterTransaction(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g, d := NewWithT(t), open(t, name)
		var seen [][]string
		look := func() {
			texts, err := read(t.Context(), d)
			g.Expect(err).NotTo(HaveOccurred())
			seen = append(seen, texts)
		}
		d.Afterwards(t.Context(), look)
		for _, failure := range []error{nil, errors.New("failure")} {
			err := d.Atomically(t.Context(), "writing", func(ctx context.Context, _ bun.IDB) error {
				d.Afterwards(ctx, look)
				if failure == nil {
					return write(ctx, d, "mine")
				}
				return failure
			})
			g.Expect(errors.Is(err, failure)).To(BeTrue())
		}
		g.Expect(seen).To(HaveExactElements(BeEmpty(), HaveExactElements("mine"), HaveExactElements("mine")))
	})
}
