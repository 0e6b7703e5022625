package endpoint

import (
	"fmt"
	"net/http"
	"net/url"
	"sort"
	"strconv"
	"strings"
)

// The limits of pagination (API behaviour, section 1.3).
const (
	defaultPerPage = 20
	maxPerPage     = 100
	// maxCounted is the maximum number of rows that are counted for the client.
	maxCounted = 10_000
)

// Paging is embedded by the requests of lists.
type Paging struct {
	Page    Optional[int64] `param:"page" default:"1" doc:"Number of the page, from 1."`
	PerPage Optional[int64] `param:"per_page" default:"20" doc:"Rows on a page, at most 100."`
}

// number returns the number of the requested page. Numbers below 1 mean the first page.
func (p Paging) number() int { return int(min(max(p.Page.Or(1), 1), 1<<31)) }

func (p Paging) size() int { return int(min(p.PerPage.Or(defaultPerPage), maxPerPage)) }

func (p Paging) check() error {
	if p.PerPage.Or(defaultPerPage) < 1 {
		return Parameters("per_page has a value not allowed").Describe("per_page must be 1 or more; a value above %d counts as %d.", maxPerPage, maxPerPage)
	}
	return nil
}

// PagingIfSent is Paging for lists that are whole unless a page is requested; see PageIfSent.
type PagingIfSent struct {
	Page    Optional[int64] `param:"page" doc:"Number of the page, from 1. Without it, the list has all rows."`
	PerPage Optional[int64] `param:"per_page" default:"20" doc:"Rows on a page, at most 100."`
}

func (p PagingIfSent) paging() Paging { return Paging(p) }

// paged is a request that embeds Paging or PagingIfSent.
type paged interface{ paging() Paging }

func (p Paging) paging() Paging { return p }

// List is a page of rows, the response of an endpoint whose request embeds Paging.
type List[T any] struct {
	rows  []T
	total int
	// uncounted says that the total is not known, and more whether further rows follow.
	uncounted, more bool
	// after is the key of the next page, for pages that follow by key; empty on the last page.
	after string
	// cursor is the parameter that takes such a key; empty if pages follow by number.
	cursor string
}

// Page returns the page of all that p requests, and converts its rows with show.
func Page[S, T any](p Paging, all []S, show func(S) T) List[T] {
	return Cut(Rows(p, all), len(all), show)
}

// Cut returns a page whose rows are already selected. total is the number of rows of the whole list.
func Cut[S, T any](rows []S, total int, show func(S) T) List[T] {
	return List[T]{rows: shown(rows, show), total: total}
}

// Rows returns the rows of the page that Page would return, for handlers that must look something up for all of them before they are shown.
func Rows[S any](p Paging, all []S) []S {
	skip, size := p.Window()
	from := min(skip, len(all))
	return all[from:min(from+size, len(all))]
}

// Window returns the position of the page in the list: the number of rows before it, and the maximum number of rows on it.
func (p Paging) Window() (skip, size int) { return (p.number() - 1) * p.size(), p.size() }

// Enough returns the number of rows at which counting can stop: one more than are counted for clients, but not before the first row after the page, so
// that it is known whether another page follows.
func (p Paging) Enough() int {
	skip, size := p.Window()
	return max(maxCounted, skip+size) + 1
}

// Part returns a page of a list whose total is not known. more says whether further rows follow.
func Part[S, T any](rows []S, more bool, show func(S) T) List[T] {
	return List[T]{rows: shown(rows, show), uncounted: true, more: more}
}

// Whole returns all rows on one page, without pagination headers.
func Whole[S, T any](all []S, show func(S) T) List[T] {
	return List[T]{rows: shown(all, show), cursor: "cursor"}
}

// PageIfSent returns the requested page of all, or Whole if none is requested.
func PageIfSent[S, T any](p PagingIfSent, all []S, show func(S) T) List[T] {
	if !p.Page.Set {
		return Whole(all, show)
	}
	return Page(p.paging(), all, show)
}

// Keyset returns a page of rows that are sorted by key. The page begins at the first row for which past reports true, that is, whose key is
// greater than the key of the preceding row; that row may no longer exist. past is nil for the first page. The link to the next page has
// the last key as cursor; see From.
func Keyset[S, T any](p Paging, all []S, past func(S) bool, key func(S) string, show func(S) T) List[T] {
	from := 0
	if past != nil {
		from = sort.Search(len(all), func(i int) bool { return past(all[i]) })
	}
	to := min(from+p.size(), len(all))
	l := List[T]{rows: shown(all[from:to], show), cursor: "cursor"}
	if to < len(all) && to > from {
		l.after = key(all[to-1])
	}
	return l
}

// From names the parameter that takes the key of the last row. The default is "cursor".
func (l List[T]) From(parameter string) List[T] {
	l.cursor = parameter
	return l
}

// Each converts all rows of a page at once, for handlers that must look up more about them.
func Each[S, T any](page List[S], show func(rows []S) ([]T, error)) (List[T], error) {
	rows, err := show(page.rows)
	return List[T]{
		rows: rows, total: page.total, uncounted: page.uncounted, more: page.more, after: page.after, cursor: page.cursor,
	}, err
}

func shown[S, T any](rows []S, show func(S) T) []T {
	out := make([]T, len(rows))
	for i, r := range rows {
		out[i] = show(r)
	}
	return out
}

// list is any List.
type list interface {
	items() any
	headers(h http.Header, base *url.URL, query url.Values, p Paging)
}

func (l List[T]) items() any { return l.rows }

// headers sets the pagination headers. query has every declared parameter, defaults included.
func (l List[T]) headers(h http.Header, base *url.URL, query url.Values, p Paging) {
	size := p.size()
	query.Set("per_page", strconv.Itoa(size))
	query.Del("page")
	if l.cursor != "" {
		if l.after != "" {
			query.Set(l.cursor, l.after)
			h.Set("Link", linkTo(base.String()+"?"+query.Encode(), "next"))
		}
		return
	}
	pageless := base.String() + "?" + query.Encode() + "&page="
	page, pages := p.number(), l.pages(p)
	var links []string
	next, prev := "", ""
	if page > 1 && page <= pages {
		prev = strconv.Itoa(page - 1)
		links = append(links, linkTo(pageless+prev, "prev"))
	}
	if page < pages {
		next = strconv.Itoa(page + 1)
		links = append(links, linkTo(pageless+next, "next"))
	}
	links = append(links, linkTo(pageless+"1", "first"))
	if l.total <= maxCounted && !l.uncounted {
		links = append(links, linkTo(pageless+strconv.Itoa(pages), "last"))
		h.Set("X-Total", strconv.Itoa(l.total))
		h.Set("X-Total-Pages", strconv.Itoa(pages))
	}
	h.Set("Link", strings.Join(links, ", "))
	h.Set("X-Page", strconv.Itoa(page))
	h.Set("X-Per-Page", strconv.Itoa(size))
	// The header is always present; an empty value marks the last page.
	h["X-Next-Page"] = []string{next}
	h["X-Prev-Page"] = []string{prev}
}

// linkTo returns an element of the header Link (RFC 8288).
func linkTo(address, rel string) string { return "<" + address + `>; rel="` + rel + `"` }

// pages returns the number of pages, if it is known.
func (l List[T]) pages(p Paging) int {
	switch {
	case !l.uncounted:
		return max((l.total+p.size()-1)/p.size(), 1)
	case l.more:
		return p.number() + 1
	case len(l.rows) > 0:
		return p.number()
	default:
		return 1
	}
}

// query returns the declared parameters and sudo as they were sent, and the defaults of all others, for the links of a list.
func (p *plan) query(sent parameters) url.Values {
	q := url.Values{}
	for _, f := range p.fields {
		if f.path {
			continue
		}
		value, set := sent[f.name]
		if !set && f.initial != "" {
			value, set = f.initial, true
		}
		if set {
			flatten(q, f.name, value)
		}
	}
	flatten(q, sudo, sent[sudo])
	return q
}

func flatten(q url.Values, name string, value any) {
	switch v := value.(type) {
	case nil, *File:
	case parameters:
		for key, child := range v {
			flatten(q, name+"["+key+"]", child)
		}
	case []any:
		for _, element := range v {
			flatten(q, name+"[]", element)
		}
	case string:
		q.Add(name, v)
	default:
		q.Add(name, fmt.Sprint(v))
	}
}
