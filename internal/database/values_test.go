package database_test

import (
	"fmt"
	"testing"

	"github.com/forgeplane/forgeplane/internal/database"
)

func TestTakeValues_leavesWordsAndSmallNumbers(t *testing.T) {
	for query, want := range map[string]string{
		`SELECT "a" FROM "t" WHERE (uid = '4f-2') LIMIT 20`:     `SELECT "a" FROM "t" WHERE (uid = ?) LIMIT 20 ["4f-2"]`,
		"\nSELECT id FROM t WHERE id IN (100, 7, 101)":          "\nSELECT id FROM t WHERE id IN (?, 7, ?) [100 101]",
		`UPDATE t SET body = 'It''s 1; -- ?', n = -1234`:        `UPDATE t SET body = ?, n = -? ["It's 1; -- ?" 1234]`,
		`INSERT INTO "t" VALUES ('''', 'é', NULL, '', 'open')`:  `INSERT INTO "t" VALUES (?, ?, NULL, '', 'open') ["'" "é"]`,
		`DELETE FROM "t""100" WHERE t100.b IN ('opened_x')`:     `DELETE FROM "t""100" WHERE t100.b IN ('opened_x') []`,
		`SELECT 9223372036854775808, 1.234, .567, a.b100`:       `SELECT 9223372036854775808, 1.234, .567, a.b100 []`,
		`SELECT 'abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqr'`: `SELECT ? ["abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqr"]`,
		`EXPLAIN QUERY PLAN SELECT 1234`:                        `EXPLAIN QUERY PLAN SELECT ? [1234]`,
	} {
		text, values, ok := database.TakeValues(query)
		var all []any
		for n, v := range values {
			if v.Ordinal != n+1 {
				t.Errorf("%s: the value %d has the number %d", query, n, v.Ordinal)
			}
			all = append(all, v.Value)
		}
		if got := fmt.Sprintf("%s %s", text, shown(all)); got != want || !ok {
			t.Errorf("%s: got %t, %s, want %s", query, ok, got, want)
		}
	}
}

// shown shows texts in quotes.
func shown(all []any) string {
	for n, v := range all {
		if text, is := v.(string); is {
			all[n] = fmt.Sprintf("%q", text)
		}
	}
	return fmt.Sprint(all)
}

func TestTakeValues_leavesOtherStatementsAlone(t *testing.T) {
	for _, query := range []string{
		"PRAGMA journal_mode", "VACUUM INTO 'copy-1'", "CREATE TABLE t (a TEXT DEFAULT 'a-1')", "BEGIN IMMEDIATE", "", "SELECT", "SELECT 1; SELECT 1234",
		"SELECT ?", "SELECT :a", "SELECT @a", "SELECT $a", "SELECT x'00', 1234", "SELECT 1234 -- a", "SELECT 1234 /* a */", "SELECT [a]", "SELECT `a`", "SELECT 'a-1",
	} {
		if text, _, ok := database.TakeValues(query); ok {
			t.Errorf("%q: got %q", query, text)
		}
	}
}
