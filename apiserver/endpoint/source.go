package endpoint

import (
	"context"
	"encoding/base64"
	"encoding/json"
)

// Source is a list that is not in memory, such as the rows of a database.
type Source[S any] struct {
	// Rows skips some rows and returns at most the given number of the rows that follow.
	Rows func(ctx context.Context, skip, most int) ([]S, error)
	// Count returns the number of rows. It can stop counting at most.
	Count func(ctx context.Context, most int) (int, error)
}

// Counted reads the page that p requests. It counts the rows of the list only if the page does not reveal their number.
func Counted[S, T any](ctx context.Context, p Paging, from Source[S], show func(S) T) (List[T], error) {
	skip, size := p.Window()
	rows, err := from.Rows(ctx, skip, p.Ahead())
	if err != nil {
		return List[T]{}, err
	}
	known := skip + len(rows)
	l := List[T]{more: len(rows) > size}
	l.rows = shown(rows[:min(len(rows), size)], show)
	if !l.more && (len(rows) > 0 || skip == 0) {
		l.total = known // this is the last page
		return l, nil
	}
	if l.total, err = from.Count(ctx, maxCounted+1); err != nil {
		return List[T]{}, err
	}
	if len(rows) > 0 {
		l.total = max(l.total, known) // rows were added between the two queries
	}
	l.uncounted = l.total > maxCounted
	return l, nil
}

// Ahead returns the number of rows that must be read to show a page and to know whether another one follows: one more than the page has.
func (p Paging) Ahead() int { return p.size() + 1 }

// Following returns a page of a list that is read in the order of keys. rows are at most p.Ahead() rows that follow the key of the
// preceding row. The link to the next page has the last key as cursor; see From and CursorOf.
func Following[S, T any](p Paging, rows []S, key func(S) string, show func(S) T) List[T] {
	page := rows[:min(len(rows), p.size())]
	l := List[T]{rows: shown(page, show), cursor: "cursor"}
	if len(rows) > len(page) {
		l.after = key(page[len(page)-1])
	}
	return l
}

// CursorOf encodes a key of several parts as a cursor for clients. The key must be encodable as JSON.
func CursorOf(key any) string {
	text, err := json.Marshal(key)
	if err != nil {
		panic("endpoint: a cursor cannot be written: " + err.Error())
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

// FromCursor decodes a cursor that CursorOf encoded and a client sent as the named parameter. An empty cursor gives the zero key.
func FromCursor[K any](name, cursor string) (key K, err error) {
	if cursor == "" {
		return key, nil
	}
	text, err := base64.RawURLEncoding.DecodeString(cursor)
	if err == nil {
		err = json.Unmarshal(text, &key)
	}
	if err != nil {
		return *new(K), Parameters(name + " is invalid")
	}
	return key, nil
}
