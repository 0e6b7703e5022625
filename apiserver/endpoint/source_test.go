package endpoint_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/endpoint/endpointtest"
)

// database has rows that are not in memory, numbered from 0.
type database struct {
	rows          int
	asked, counts int // how many rows were requested, and how often they were counted
	failing       error
}

func (d *database) source() endpoint.Source[int] {
	return endpoint.Source[int]{
		Rows: func(_ context.Context, skip, most int) ([]int, error) {
			d.asked = most
			var rows []int
			for i := skip; i < min(skip+most, d.rows); i++ {
				rows = append(rows, i)
			}
			return rows, d.failing
		},
		Count: func(_ context.Context, most int) (int, error) {
			d.counts++
			return min(d.rows, most), d.failing
		},
	}
}

func same(i int) int { return i }

// both serves one list twice: from memory, and from a database.
func both(d *database) endpoint.Table {
	all := make([]int, d.rows)
	for i := range all {
		all[i] = i
	}
	return endpoint.Table{
		endpoint.Get("/memory", func(_ context.Context, _ endpoint.None, r *listRequest) (endpoint.List[int], error) {
			return endpoint.Page(r.Paging, all, same), nil
		}),
		endpoint.Get("/database", func(ctx context.Context, _ endpoint.None, r *listRequest) (endpoint.List[int], error) {
			return endpoint.Counted(ctx, r.Paging, d.source(), same)
		}),
	}
}

func TestCounted_answersLikePage(t *testing.T) {
	for _, rows := range []int{0, 1, 19, 20, 21, 45, 10_000, 10_001, 12_345} {
		h := newHandler(both(&database{rows: rows}))
		checked := endpointtest.Of(t, h).Handler(t, h)
		for _, query := range []string{"", "page=2", "page=3", "page=500", "page=501", "page=9999", "per_page=100", "page=101&per_page=100", "page=-1"} {
			want, got := httptest.NewRecorder(), httptest.NewRecorder()
			checked.ServeHTTP(want, httptest.NewRequest(http.MethodGet, "/memory?"+query, http.NoBody))
			checked.ServeHTTP(got, httptest.NewRequest(http.MethodGet, "/database?"+query, http.NoBody))
			for _, name := range []string{"Link", "X-Page", "X-Per-Page", "X-Next-Page", "X-Prev-Page", "X-Total", "X-Total-Pages"} {
				if wanted := strings.ReplaceAll(want.Header().Get(name), "/memory", "/database"); got.Header().Get(name) != wanted {
					t.Errorf("%d rows, %s, %s: got %q, want %q", rows, query, name, got.Header().Get(name), wanted)
				}
			}
			if got.Code != http.StatusOK || got.Body.String() != want.Body.String() {
				t.Errorf("%d rows, %s: got %d %s\nwant %s", rows, query, got.Code, got.Body, want.Body)
			}
		}
	}
}

func TestCounted_countsOnlyIfNecessary(t *testing.T) {
	for _, tt := range []struct {
		rows   int
		query  string
		counts int
	}{
		{0, "", 0}, {20, "", 0}, {21, "page=2", 0}, {45, "page=3", 0}, {21, "", 1}, {45, "page=9", 1}, {0, "page=2", 1},
	} {
		d := &database{rows: tt.rows}
		serve(t, both(d), httptest.NewRequest(http.MethodGet, "/database?"+tt.query, http.NoBody))
		if d.counts != tt.counts || d.asked != 21 {
			t.Errorf("%d rows, %s: counted %d times, asked for %d rows", tt.rows, tt.query, d.counts, d.asked)
		}
	}
}

func TestCounted_failsWithItsSource(t *testing.T) {
	for _, query := range []string{"", "page=9"} {
		d := &database{rows: 45, failing: errors.New("gone")}
		w := httptest.NewRecorder()
		newHandler(both(d)).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/database?"+query, http.NoBody))
		if w.Code != http.StatusInternalServerError {
			t.Errorf("%s: got %d %s", query, w.Code, w.Body)
		}
	}
}

// place is the key of a row. A list can have an order in which rows are equal.
type place struct {
	Half int `json:"half"`
	ID   int `json:"id"`
}

type cursorRequest struct {
	endpoint.Paging
	Cursor string `param:"cursor"`
	Sort   string `param:"sort" default:"asc"`
}

func cursors(rows int) endpoint.Table {
	return endpoint.Table{endpoint.Get("/rows", func(_ context.Context, _ endpoint.None, r *cursorRequest) (endpoint.List[int], error) {
		from, err := endpoint.FromCursor[*place]("cursor", r.Cursor)
		if err != nil {
			return endpoint.List[int]{}, err
		}
		first := 0
		if from != nil {
			first = from.ID + 1
		}
		var found []int
		for i := first; i < min(first+r.Ahead(), rows); i++ {
			found = append(found, i)
		}
		return endpoint.Following(r.Paging, found, func(i int) string { return endpoint.CursorOf(place{i / 2, i}) }, same), nil
	})}
}

func TestFollowing_linksEachPageToTheNext(t *testing.T) {
	next := regexp.MustCompile(`^<https://forge\.example/api/v4(/rows\?cursor=[^&>]+&per_page=7&sort=asc)>; rel="next"$`)
	for _, rows := range []int{0, 6, 7, 8, 20, 21, 22} {
		target, seen, pages := "/rows?per_page=7", []string{}, 0
		for target != "" {
			w := serve(t, cursors(rows), httptest.NewRequest(http.MethodGet, target, http.NoBody))
			if text := strings.Trim(w.Body.String(), "[]"); text != "" {
				seen = append(seen, strings.Split(text, ",")...)
			}
			pages++
			link := w.Header().Get("Link")
			if link != "" && next.FindStringSubmatch(link) == nil || w.Header().Get("X-Total") != "" || w.Header().Get("X-Page") != "" {
				t.Fatalf("%d rows: Link %s, %v", rows, link, w.Header())
			}
			target = ""
			if link != "" {
				target = next.FindStringSubmatch(link)[1]
			}
		}
		want := []string{}
		for i := range rows {
			want = append(want, strconv.Itoa(i))
		}
		if !reflect.DeepEqual(seen, want) || pages != max((rows+6)/7, 1) {
			t.Errorf("%d rows: got %v on %d pages", rows, seen, pages)
		}
	}
}

func TestFromCursor_refusesInvalidCursors(t *testing.T) {
	for _, cursor := range []string{"nonsense!", "bm9uc2Vuc2U", endpoint.CursorOf("text")} {
		w := serve(t, cursors(3), httptest.NewRequest(http.MethodGet, "/rows?cursor="+cursor, http.NoBody))
		if w.Code != http.StatusBadRequest || w.Body.String() != `{"error":"cursor is invalid"}` {
			t.Errorf("%s: got %d %s", cursor, w.Code, w.Body)
		}
	}
}
