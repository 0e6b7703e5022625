package database

import (
	"database/sql/driver"
	"strconv"
	"strings"
)

const (
	// maxWord is the maximum length of a word.
	maxWord = 32
	// maxDigits is the maximum number of digits of numbers that stay in a text.
	maxDigits = 2
)

// takeValues replaces the values in a statement of SQLite by placeholders, so that statements which differ only in values have the same text. Words, such
// as the state of an issue, and small numbers stay: the plan can depend on them if an index has only some rows. It returns false for statements without
// a plan, such as PRAGMA, and for those with something that the query builder does not write, such as a comment.
func takeValues(query string) (text string, values []driver.NamedValue, ok bool) {
	if !hasPlan(query) {
		return "", nil, false
	}
	b, copied := make([]byte, 0, len(query)), 0
	for at := 0; at < len(query); {
		n := tokenLength(query[at:])
		if n == 0 {
			return "", nil, false
		}
		if v, is := valueOf(query[at : at+n]); is {
			values = append(values, driver.NamedValue{Ordinal: len(values) + 1, Value: v})
			b, copied = append(append(b, query[copied:at]...), '?'), at+n
		}
		at += n
	}
	return string(append(b, query[copied:]...)), values, true
}

// hasPlan reports whether a statement reads or changes rows, or explains such a statement.
func hasPlan(query string) bool {
	for _, verb := range []string{"SELECT ", "INSERT ", "UPDATE ", "DELETE ", "WITH ", "EXPLAIN "} {
		if strings.HasPrefix(strings.TrimLeft(query, "\n"), verb) {
			return true
		}
	}
	return false
}

// tokenLength returns the length of the first token of a text, or 0 if the query builder does not write such a token.
func tokenLength(text string) int {
	switch c := text[0]; {
	case c == '"':
		return strings.IndexByte(text[1:], '"') + 2 // a text without an end gets an error from SQLite
	case inNames[c]:
		n := 1
		for n < len(text) && inNames[text[n]] {
			n++
		}
		if n < len(text) && text[n] == '\'' { // X'00'
			return 0
		}
		return n
	case c == '\'':
		return quotedLength(text)
	case foreign[c], strings.HasPrefix(text, "--"), strings.HasPrefix(text, "/*"):
		return 0
	default:
		return 1
	}
}

// quotedLength returns the length of a text in quotes, or 0 if it has no end. A quote in the text is doubled.
func quotedLength(text string) int {
	for n := 1; ; {
		end := strings.IndexByte(text[n:], '\'')
		if end < 0 {
			return 0
		}
		if n += end + 1; n == len(text) || text[n] != '\'' {
			return n
		}
		n++
	}
}

// inNames has the characters of names and numbers, with the point between them. foreign has those with which no token of the query builder begins.
var inNames, foreign = func() (names, foreign [256]bool) {
	for c := range 256 {
		names[c] = isLetter(byte(c)) || isDigit(byte(c)) || c == '.' || c >= 0x80
		foreign[c] = strings.IndexByte("?:@$#;`[{", byte(c)) >= 0
	}
	return names, foreign
}()

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// valueOf returns the value of a token that a placeholder replaces.
func valueOf(token string) (driver.Value, bool) {
	switch {
	case token[0] == '\'':
		text := token[1 : len(token)-1]
		if len(text) <= maxWord && strings.IndexFunc(text, func(r rune) bool { return r >= 0x80 || !isLetter(byte(r)) }) < 0 {
			return nil, false
		}
		return strings.ReplaceAll(text, "''", "'"), true
	case isDigit(token[0]) && len(token) > maxDigits:
		n, err := strconv.ParseInt(token, 10, 64)
		return n, err == nil
	default:
		return nil, false
	}
}
