package database_test

import (
	"context"
	"io/fs"
	"testing"
	"testing/fstest"

	. "github.com/onsi/gomega"
	"github.com/uptrace/bun"

	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/database/databasetest"
)

func TestMigrations_runInOneSequenceForAllAggregates(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g := NewWithT(t)
		// Each version builds upon the previous one, which can belong to another aggregate.
		one := files("00001_one.sql", "CREATE TABLE one (a INTEGER);")
		one["migrations/sqlite3/00003_more.sql"] = &fstest.MapFile{Data: []byte("ALTER TABLE two ADD COLUMN c INTEGER; INSERT INTO one VALUES (3);")}
		one["migrations/postgres/00003_more.sql"] = one["migrations/sqlite3/00003_more.sql"]
		two := files("00002_two.sql", "CREATE TABLE two AS SELECT a FROM one;")
		more := files("00003_more.sql", "UPDATE one SET a = a + 1;")
		d := databasetest.Open(t, name, two, one, more)
		var a int
		g.Expect(d.Read(t.Context(), "reading", func(ctx context.Context, db bun.IDB) error {
			return db.NewSelect().Table("one").Column("a").Scan(ctx, &a)
		})).To(Succeed())
		g.Expect(a).To(Equal(4), "parts of one version are run in the order of the aggregates")
		databasetest.Open(t, name, two, one, more)
	})
}

func TestMigrations_ofNewerVersionStay(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		more := files("00002_more.sql", "ALTER TABLE notes ADD COLUMN more INTEGER NOT NULL DEFAULT 0; INSERT INTO notes (text) VALUES ('new')")
		expectNotes(t, databasetest.Open(t, name, notes(), more), "new")
		expectNotes(t, databasetest.Open(t, name, notes()), "new")
		expectNotes(t, databasetest.Open(t, name, notes(), more), "new")
	})
}

func TestMigrations_areRolledBackOnFailure(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g := NewWithT(t)
		_, err := database.Open(t.Context(), name, notes(), files("00002_more.sql", "INSERT INTO notes VALUES ('half')"), files("00002_more.sql", "INSERT INTO none VALUES (1)"))
		g.Expect(err).To(MatchError(ContainSubstring("00002_more.sql")))
		expectNotes(t, open(t, name))
		expectNotes(t, databasetest.Open(t, name, notes(), files("00002_more.sql", "INSERT INTO notes VALUES ('whole')")), "whole")
	})
}

func TestMigrations_areRefusedIfInvalid(t *testing.T) {
	for want, aggregates := range map[string][]fs.FS{
		"00001_notes.sql and 00001_others.sql have the same version": {notes(), files("00001_others.sql", "")},
		"words.sql has no version":                                   {files("words.sql", "")},
	} {
		_, err := database.Open(t.Context(), databasetest.SQLite(t), aggregates...)
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring(want)))
	}
}
