// Package search finds texts in the activity database without regard to case, with the same results on both engines.
package search

import (
	"strings"
	"unicode/utf8"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect"
	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"github.com/forgeplane/forgeplane/internal/database"
)

// Fold returns the form of texts, such as a title and a description, in which they are stored and searched for. It does not depend on the engine,
// whose own rules of case differ. Each text is one line, except for the last one.
func Fold(texts ...string) string {
	folded := make([]string, len(texts))
	for i, text := range texts {
		folded[i] = norm.NFC.String(cases.Fold().String(text))
		if i < len(texts)-1 {
			folded[i] = strings.ReplaceAll(folded[i], "\n", " ")
		}
	}
	return strings.Join(folded, "\n")
}

// Contains is the condition that a column of folded texts contains a text. It takes the column and the Pattern of the text, and reads every row.
const Contains = "? LIKE ? ESCAPE '!'"

// Pattern returns the argument of Contains for a text.
func Pattern(text string) string {
	return "%" + strings.NewReplacer("!", "!!", "%", "!%", "_", "!_").Replace(Fold(text)) + "%"
}

// Part is the part of an item that a search looks through.
type Part string

// The parts. The zero value stands for both.
const (
	Title       Part = "title"
	Description Part = "description"
)

// trigram is the number of characters from which on an index finds a text.
const trigram = 3

// Find returns the condition that a part of an item contains a text, in any case. text is the column that has the folded title and description.
// The table index must have that column by trigrams, with the ids of the column id: on SQLite it is a table of FTS5, and on PostgreSQL one with an index
// of the arrays that the function text_trigrams makes of its column text. The extension of PostgreSQL for trigrams does not serve: it ignores all
// characters but letters and digits. A text of fewer than three characters is sought in every row that other conditions select,
// and so is any text if conditions are checked row by row.
func Find(db bun.IDB, id, text, index string, in Part, sought string) (query string, args []any) {
	sought = Fold(sought)
	sqlite := db.Dialect().Name() == dialect.SQLite
	position, line := "strpos", "chr(10)"
	if sqlite {
		position, line = "instr", "char(10)"
	}
	part := text
	switch end := position + "(" + text + ", " + line + ")"; in {
	case Title:
		part = "substr(" + text + ", 1, " + end + " - 1)"
	case Description:
		part = "substr(" + text + ", " + end + " + 1)"
	}
	query, args = position+"("+part+", ?) > 0", []any{sought}
	if utf8.RuneCountInString(sought) < trigram || database.IsRowByRow(db) {
		return query, args
	}
	with, key := "text_trigrams(text) @> text_trigrams(?)", sought
	if sqlite {
		with, key = index+" MATCH ?", `"`+strings.ReplaceAll(sought, `"`, `""`)+`"`
	}
	return id + " IN (SELECT rowid FROM " + index + " WHERE " + with + ") AND " + query, []any{key, sought}
}

// TitleOf returns the expression of the folded title in a column that has the folded title and description, for sorting.
func TitleOf(db bun.IDB, text string) string {
	if db.Dialect().Name() == dialect.SQLite {
		return "substr(" + text + ", 1, instr(" + text + ", char(10)) - 1)"
	}
	return "split_part(" + text + `, chr(10), 1) COLLATE "C"`
}
