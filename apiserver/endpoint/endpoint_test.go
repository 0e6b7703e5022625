package endpoint_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/endpoint/endpointtest"
)

type grant struct {
	UserID  endpoint.Optional[int64] `param:"user_id"`
	Destroy bool                     `param:"_destroy"`
}

type request struct {
	endpoint.Paging
	ID       string                       `param:"id"`
	Name     string                       `param:"name" required:"" blank:"refuse"`
	Color    string                       `param:"color" required:"" example:"red"`
	State    string                       `param:"state" values:"opened,closed" default:"opened"`
	Priority endpoint.Optional[int]       `param:"priority" minimum:"0"`
	Since    endpoint.Optional[time.Time] `param:"since"`
	Force    endpoint.Optional[bool]      `param:"force"`
	Labels   []string                     `param:"labels" comma:""`
	IDs      []int64                      `param:"ids"`
	Grants   []grant                      `param:"grants"`
	Position struct {
		Base string `param:"base_sha" required:""`
		Line int    `param:"line"`
	} `param:"position"`
}

func echo(_ context.Context, _ endpoint.None, r *request) (any, error) { return r, nil }

// open admits everyone.
type open struct{}

func (open) Admit(r *http.Request, _ *endpoint.Endpoint, _ endpoint.Sent) (context.Context, any, error) {
	return r.Context(), endpoint.None{}, nil
}

func (open) Check(*endpoint.Endpoint) error { return nil }

func newHandler(table endpoint.Table) *endpoint.Handler {
	return endpoint.NewHandler(endpoint.Options{
		Guard: open{}, Log: logr.Discard(),
		BaseURL: &url.URL{Scheme: "https", Host: "forge.example", Path: "/api/v4"},
		Info:    endpoint.Info{Title: "A forge", Version: "1.2.3", Server: "../v4", Try: "/labels?per_page=2"},
	}, table)
}

func serve(t *testing.T, table endpoint.Table, r *http.Request) *httptest.ResponseRecorder {
	t.Helper()
	h := newHandler(table)
	w := httptest.NewRecorder()
	endpointtest.Of(t, h).Handler(t, h).ServeHTTP(w, r)
	w.Body = bytes.NewBufferString(endpointtest.Undescribed(w.Body.String()))
	return w
}

var echoing = endpoint.Table{
	endpoint.Post("/projects/{id}/labels", echo),
	endpoint.Get("/projects/{id}/labels", echo),
	endpoint.Delete("/projects/{id}/labels", func(context.Context, endpoint.None, *request) (endpoint.None, error) { return endpoint.None{}, nil }),
}

func TestParameters_areReadFromQueryAndBody(t *testing.T) {
	const want = `"Name":"a b","Color":"#fff"`
	tests := map[string]struct{ method, query, contentType, body string }{
		"query":               {http.MethodPost, "?name=a+b&color=%23fff", "", ""},
		"query of a GET":      {http.MethodGet, "?name=a+b&color=%23fff", "", ""},
		"form":                {http.MethodPost, "", "application/x-www-form-urlencoded", "name=a+b&color=%23fff"},
		"JSON":                {http.MethodPost, "", "application/json", `{"name":"a b","color":"#fff"}`},
		"JSON of a GET":       {http.MethodGet, "", "application/json; charset=utf-8", `{"name":"a b","color":"#fff"}`},
		"both, the body wins": {http.MethodPost, "?name=x&color=%23fff", "application/json", `{"name":"a b"}`},
		"multipart": {http.MethodPost, "", "multipart/form-data; boundary=b",
			"--b\r\nContent-Disposition: form-data; name=\"name\"\r\n\r\na b\r\n--b\r\nContent-Disposition: form-data; name=\"color\"\r\n\r\n#fff\r\n--b--\r\n"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(tt.method, "/projects/a%2Fb/labels"+tt.query, strings.NewReader(tt.body))
			r.Header.Set("Content-Type", tt.contentType)
			w := serve(t, echoing, r)
			if w.Code >= 300 || !strings.Contains(w.Body.String(), want) || !strings.Contains(w.Body.String(), `"ID":"a/b"`) {
				t.Errorf("got %d %s", w.Code, w.Body)
			}
		})
	}
}

func TestValues_areConverted(t *testing.T) {
	tests := map[string]string{
		"priority=3":              `"Priority":{"Set":true,"Null":false,"Value":3}`,
		"priority=":               `"Priority":{"Set":true,"Null":true,"Value":0}`,
		"":                        `"Priority":{"Set":false,"Null":false,"Value":0}`,
		"force=on":                `"Force":{"Set":true,"Null":false,"Value":true}`,
		"force=F":                 `"Force":{"Set":true,"Null":false,"Value":false}`,
		"labels[]=a&labels[]=b,c": `"Labels":["a","b,c"]`,
		"labels=a, b,":            `"Labels":["a","b"]`,
		"labels[]=":               `"Labels":[]`,
		"ids[]=1&ids[]=2":         `"IDs":[1,2]`,
		"grants[][user_id]=1&grants[][_destroy]=1": `"Grants":[{"UserID":{"Set":true,"Null":false,"Value":1},"Destroy":true}]`,
		"grants[][user_id]=1&grants[][user_id]=2":  `{"UserID":{"Set":true,"Null":false,"Value":2},"Destroy":false}]`,
		"position[base_sha]=abc&position[line]=7":  `"Position":{"Base":"abc","Line":7}`,
		"since=2026-01-02T03:04:05%2B01:00":        `"Since":{"Set":true,"Null":false,"Value":"2026-01-02T03:04:05+01:00"}`,
		"state=closed":                             `"State":"closed"`,
		"unknown[x][]=1":                           `"State":"opened"`,
		"page=2&per_page=500":                      `"PerPage":{"Set":true,"Null":false,"Value":500}`,
	}
	for query, want := range tests {
		t.Run(query, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodGet, "/projects/1/labels?name=n&color=c&"+strings.ReplaceAll(query, " ", "+"), http.NoBody)
			if w := serve(t, echoing, r); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), want) {
				t.Errorf("got %d %s\nwant %s", w.Code, w.Body, want)
			}
		})
	}
}

func TestParameters_reportAllMistakes(t *testing.T) {
	tests := []struct{ contentType, sent, status, want string }{
		{"", "", "400", `{"error":"name is missing, color is missing"}`},
		{"", "name=&color=c", "400", `{"error":"name is empty"}`},
		{"", "name=n&color=c&state=x", "400", `{"error":"state does not have a valid value"}`},
		{"", "name=n&color=c&priority=x", "400", `{"error":"priority is invalid"}`},
		{"", "name=n&color=c&priority=-1", "400", `{"error":"priority does not have a valid value"}`},
		{"", "name=n&color=c&priority=99999999999999999999", "400", `{"error":"priority is invalid"}`},
		{"", "name=n&color=c&force=maybe", "400", `{"error":"force is invalid"}`},
		{"", "name=n&color=c&ids=1", "400", `{"error":"ids is invalid"}`},
		{"", "name=n&color=c&position[line]=1", "400", `{"error":"position[base_sha] is missing"}`},
		{"", "name=n&color=c&grants[][user_id]=x", "400", `{"error":"grants[0][user_id] is invalid"}`},
		{"", "name=n&color=c&per_page=0", "400", `{"error":"per_page has a value not allowed"}`},
		{"", "name=n&color=c&per_page=-1", "400", `{"error":"per_page has a value not allowed"}`},
		{"", "name=n&color=c&per_page=1.5", "400", `{"error":"per_page is invalid"}`},
		{"", "name=n&color=c&per_page=99999999999999999999", "400", `{"error":"per_page is invalid"}`},
		{"", "name=n&color=c&page=x", "400", `{"error":"page is invalid"}`},
		{"", "name=%00&color=c", "400", `{"error":"name is invalid"}`},
		{"", "name=%ff&color=c", "400", `{"error":"a parameter is not valid UTF-8"}`},
		{"", "name=n&color=c&a[b=1", "400", `{"error":"a[b is invalid"}`},
		{"", "name=n&color=c&name[x]=1", "400", `{"error":"name is invalid"}`},
		{"application/json", `{"name":`, "400", `{"error":"the body is not valid JSON"}`},
		{"application/json", `{"name":"n"} {}`, "400", `{"error":"the body is not valid JSON"}`},
		{"application/json", `null`, "400", `{"error":"name is missing, color is missing"}`},
		{"application/json", `[1]`, "400", `{"error":"the body must be a JSON object"}`},
		{"application/json", strings.Repeat("[", 1000), "400", `{"error":"the body is not valid JSON"}`},
		{"application/json", `{"labels":[` + strings.Repeat(`"",`, 100_000) + `""]}`, "400", `{"error":"there are too many parameters"}`},
		{"application/json", `{"name":{},"color":"c"}`, "400", `{"error":"name is invalid"}`},
		{"application/json", `{"name":"n","color":"c","ids":null}`, "201", `"IDs":[]`},
		{"application/json", `{"name":"n","color":"c","labels":3}`, "201", `"Labels":["3"]`},
		{"application/json", `{"name":"n","color":"c","ids":3}`, "400", `{"error":"ids is invalid"}`},
		{"application/json", `{"name":"n","color":"c","priority":null}`, "201", `"Priority":{"Set":true,"Null":true,"Value":0}`},
		{"application/json", `{"name":"n","color":"c","priority":1.5}`, "400", `{"error":"priority is invalid"}`},
		{"application/json", `{"name":"` + strings.Repeat("x", 5<<20) + `"}`, "413", `413 Request Entity Too Large`},
		{"none", `{"name":"n","color":"c","priority":1}`, "201", `"Value":1`},
		{"none", `name`, "400", `error`},
		{"text/plain", `name`, "415", `not supported`},
		{"multipart/form-data", `x`, "400", `{"error":"the form is malformed"}`},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("%.60s", tt.sent), func(t *testing.T) {
			r := httptest.NewRequest(http.MethodPost, "/projects/1/labels", strings.NewReader(tt.sent))
			if tt.contentType == "" {
				r = httptest.NewRequest(http.MethodPost, "/projects/1/labels?"+tt.sent, http.NoBody)
			}
			r.Header.Set("Content-Type", tt.contentType)
			if tt.contentType == "none" {
				r.Header.Del("Content-Type")
			}
			w := serve(t, echoing, r)
			if got := fmt.Sprint(w.Code); got != tt.status || !strings.Contains(w.Body.String(), tt.want) {
				t.Errorf("got %d %.300s\nwant %s %s", w.Code, w.Body, tt.status, tt.want)
			}
		})
	}
}

func TestRoutes_refuseUnknownPathsAndMethods(t *testing.T) {
	tests := []struct {
		method, path string
		status       int
		body, allow  string
	}{
		{http.MethodGet, "/nothing", 404, `{"error":"404 Not Found"}`, ""},
		{http.MethodPatch, "/projects/1/labels", 405, `{"error":"405 Not Allowed"}`, "GET, HEAD, POST, DELETE"},
		{http.MethodGet, "/projects/a/b/labels", 404, `{"error":"404 Not Found"}`, ""},
	}
	for _, tt := range tests {
		w := serve(t, echoing, httptest.NewRequest(tt.method, tt.path, http.NoBody))
		if w.Code != tt.status || w.Body.String() != tt.body || w.Header().Get("Allow") != tt.allow {
			t.Errorf("%s %s: got %d %s, Allow %q", tt.method, tt.path, w.Code, w.Body, w.Header().Get("Allow"))
		}
	}
}

type listRequest struct {
	endpoint.Paging
	Sort string `param:"sort" default:"asc"`
}

func lists(rows int) endpoint.Table {
	return endpoint.Table{endpoint.Get("/rows", func(_ context.Context, _ endpoint.None, r *listRequest) (endpoint.List[int], error) {
		return endpoint.Page(r.Paging, make([]int, rows), func(i int) int { return i }), nil
	})}
}

func TestList_hasHeadersOfItsPage(t *testing.T) {
	link := func(page, perPage int, rel string) string {
		return fmt.Sprintf(`<https://forge.example/api/v4/rows?per_page=%d&sort=asc&page=%d>; rel=%q`, perPage, page, rel)
	}
	tests := map[string]struct {
		rows                                int
		query                               string
		shown                               int
		page, per, next, prev, total, pages string
		links                               []string
	}{
		"first of three":  {45, "", 20, "1", "20", "2", "", "45", "3", []string{link(2, 20, "next"), link(1, 20, "first"), link(3, 20, "last")}},
		"last of three":   {45, "page=3", 5, "3", "20", "", "2", "45", "3", []string{link(2, 20, "prev"), link(1, 20, "first"), link(3, 20, "last")}},
		"empty":           {0, "", 0, "1", "20", "", "", "0", "1", []string{link(1, 20, "first"), link(1, 20, "last")}},
		"beyond the end":  {45, "page=9", 0, "9", "20", "", "", "45", "3", []string{link(1, 20, "first"), link(3, 20, "last")}},
		"below the first": {45, "page=-3", 20, "1", "20", "2", "", "45", "3", []string{link(2, 20, "next"), link(1, 20, "first"), link(3, 20, "last")}},
		"too many a page": {250, "per_page=1000", 100, "1", "100", "2", "", "250", "3", []string{link(2, 100, "next"), link(1, 100, "first"), link(3, 100, "last")}},
		"just counted":    {10000, "page=500", 20, "500", "20", "", "499", "10000", "500", []string{link(499, 20, "prev"), link(1, 20, "first"), link(500, 20, "last")}},
		"not counted":     {10001, "", 20, "1", "20", "2", "", "", "", []string{link(2, 20, "next"), link(1, 20, "first")}},
		"huge page":       {45, "page=9223372036854775807", 0, "2147483648", "20", "", "", "45", "3", []string{link(1, 20, "first"), link(3, 20, "last")}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := serve(t, lists(tt.rows), httptest.NewRequest(http.MethodGet, "/rows?"+tt.query, http.NoBody))
			var rows []int
			if err := json.Unmarshal(w.Body.Bytes(), &rows); err != nil || rows == nil || len(rows) != tt.shown {
				t.Errorf("got %d rows of %.100s, %v", len(rows), w.Body, err)
			}
			for header, want := range map[string]string{
				"X-Page": tt.page, "X-Per-Page": tt.per, "X-Next-Page": tt.next, "X-Prev-Page": tt.prev,
				"X-Total": tt.total, "X-Total-Pages": tt.pages, "Link": strings.Join(tt.links, ", "),
			} {
				if got := w.Header().Get(header); got != want {
					t.Errorf("%s: got %q, want %q", header, got, want)
				}
			}
			if _, ok := w.Header()["X-Next-Page"]; !ok {
				t.Error("X-Next-Page is not there")
			}
		})
	}
}

func TestLinks_keepSudo(t *testing.T) {
	w := serve(t, lists(3), httptest.NewRequest(http.MethodGet, "/rows?per_page=2&sudo=a%26b&other=x", http.NoBody))
	want := `<https://forge.example/api/v4/rows?per_page=2&sort=asc&sudo=a%26b&page=2>; rel="next"`
	if got := w.Header().Get("Link"); !strings.HasPrefix(got, want) {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestIdentity_mustBeText(t *testing.T) {
	tests := map[string]struct{ query, contentType, body, want string }{
		"a text":             {"", "application/json", `{"name":"a","color":"b","sudo":"otto","private_token":"x"}`, ""},
		"a number":           {"", "", `{"name":"a","color":"b","sudo":1}`, ""},
		"null":               {"", "application/json", `{"name":"a","color":"b","sudo":null}`, ""},
		"something below it": {"", "application/json", `{"name":"a","color":"b","position":{"base_sha":"c","sudo":"otto"}}`, ""},
		"a list":             {"", "application/json", `{"name":"a","color":"b","sudo":["otto"]}`, `{"error":"sudo is invalid"}`},
		"a list in a form":   {"", "application/x-www-form-urlencoded", "name=a&color=b&private_token[]=x", `{"error":"private_token is invalid"}`},
		"a list in a query":  {"?sudo[]=otto", "application/json", `{"name":"a","color":"b"}`, `{"error":"sudo is invalid"}`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodPost, "/projects/1/labels"+tt.query, strings.NewReader(tt.body))
			r.Header.Set("Content-Type", tt.contentType)
			w := serve(t, echoing, r)
			if tt.want == "" && w.Code != http.StatusCreated || tt.want != "" && (w.Code != http.StatusBadRequest || w.Body.String() != tt.want) {
				t.Errorf("got %d %s", w.Code, w.Body)
			}
		})
	}
}

func TestPart_linksToNextPageWithoutTotal(t *testing.T) {
	const all = 45
	table := endpoint.Table{endpoint.Get("/rows", func(_ context.Context, _ endpoint.None, r *listRequest) (endpoint.List[int], error) {
		skip, size := r.Window()
		left := max(all-skip, 0)
		return endpoint.Part(make([]int, min(left, size)), left > size, func(i int) int { return i }), nil
	})}
	link := func(page int, rel string) string {
		return fmt.Sprintf(`<https://forge.example/api/v4/rows?per_page=20&sort=asc&page=%d>; rel=%q`, page, rel)
	}
	for query, want := range map[string]struct {
		rows             int
		page, next, prev string
		links            []string
	}{
		"":                         {20, "1", "2", "", []string{link(2, "next"), link(1, "first")}},
		"page=2":                   {20, "2", "3", "1", []string{link(1, "prev"), link(3, "next"), link(1, "first")}},
		"page=3":                   {5, "3", "", "2", []string{link(2, "prev"), link(1, "first")}},
		"page=4":                   {0, "4", "", "", []string{link(1, "first")}},
		"page=9223372036854775807": {0, "2147483648", "", "", []string{link(1, "first")}},
	} {
		w := serve(t, table, httptest.NewRequest(http.MethodGet, "/rows?"+query, http.NoBody))
		var rows []int
		if err := json.Unmarshal(w.Body.Bytes(), &rows); err != nil || rows == nil || len(rows) != want.rows {
			t.Errorf("%s: got %d rows of %.100s, %v", query, len(rows), w.Body, err)
		}
		for header, want := range map[string][]string{
			"X-Page": {want.page}, "X-Per-Page": {"20"}, "X-Next-Page": {want.next}, "X-Prev-Page": {want.prev},
			"X-Total": nil, "X-Total-Pages": nil, "Link": {strings.Join(want.links, ", ")},
		} {
			if got := w.Header()[header]; !slices.Equal(got, want) {
				t.Errorf("%s: %s is %q, want %q", query, header, got, want)
			}
		}
	}
}

type labelled struct {
	Name string `json:"name"`
}

func (l labelled) Header() http.Header { return http.Header{"X-Name": {l.Name}} }

func TestResponse_canSetHeaders(t *testing.T) {
	table := endpoint.Table{endpoint.Get("/label", func(context.Context, endpoint.None, *endpoint.None) (labelled, error) { return labelled{"a"}, nil })}
	for _, method := range []string{http.MethodGet, http.MethodHead} {
		w := serve(t, table, httptest.NewRequest(method, "/label", http.NoBody))
		if w.Code != http.StatusOK || w.Header().Get("X-Name") != "a" || w.Header().Get("Etag") == "" {
			t.Errorf("%s is answered %d with %v", method, w.Code, w.Header())
		}
	}
}

type keysetRequest struct {
	listRequest
	Pagination string                  `param:"pagination" values:"legacy,keyset" default:"legacy"`
	Search     string                  `param:"search"`
	Archived   bool                    `param:"archived" default:"false"`
	Cursor     endpoint.Optional[int]  `param:"cursor"`
	Owned      endpoint.Optional[bool] `param:"owned"`
}

func TestKeyset_linksToNextPageWithAllParameters(t *testing.T) {
	rows := []int{10, 20, 30, 40, 50}
	table := endpoint.Table{endpoint.Get("/rows", func(_ context.Context, _ endpoint.None, r *keysetRequest) (endpoint.List[int], error) {
		past := func(row int) bool { return row > r.Cursor.Value }
		if !r.Cursor.Set {
			past = nil
		}
		return endpoint.Keyset(r.Paging, rows, past, strconv.Itoa, func(i int) int { return i }), nil
	})}
	const asked = "pagination=keyset&per_page=2&search=a+%26b&owned=true&private_token=secret&page=7"
	next := func(cursor string) string {
		return `<https://forge.example/api/v4/rows?archived=false&cursor=` + cursor +
			`&owned=true&pagination=keyset&per_page=2&search=a+%26b&sort=asc>; rel="next"`
	}
	tests := map[string]struct{ query, rows, link string }{
		"the first page":                  {asked, "[10,20]", next("20")},
		"the next page":                   {asked + "&cursor=20", "[30,40]", next("40")},
		"the last page":                   {asked + "&cursor=40", "[50]", ""},
		"a cursor whose row was deleted":  {asked + "&cursor=25", "[30,40]", next("40")},
		"a cursor beyond the end":         {asked + "&cursor=99", "[]", ""},
		"a page that ends with the table": {asked + "&cursor=30", "[40,50]", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := serve(t, table, httptest.NewRequest(http.MethodGet, "/rows?"+tt.query, http.NoBody))
			if w.Body.String() != tt.rows || w.Header().Get("Link") != tt.link {
				t.Errorf("got %s, Link %s\nwant %s, Link %s", w.Body, w.Header().Get("Link"), tt.rows, tt.link)
			}
			for _, name := range []string{"X-Page", "X-Per-Page", "X-Next-Page", "X-Prev-Page", "X-Total", "X-Total-Pages"} {
				if values, ok := w.Header()[name]; ok {
					t.Errorf("%s is %q", name, values)
				}
			}
		})
	}
}

func TestETag_avoidsSendingAnUnchangedAnswer(t *testing.T) {
	first := serve(t, lists(3), httptest.NewRequest(http.MethodGet, "/rows", http.NoBody))
	again := httptest.NewRequest(http.MethodGet, "/rows", http.NoBody)
	again.Header.Set("If-None-Match", first.Header().Get("ETag"))
	if w := serve(t, lists(3), again); w.Code != http.StatusNotModified || w.Body.Len() != 0 {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
	if w := serve(t, lists(4), again); w.Code != http.StatusOK {
		t.Errorf("another answer: got %d", w.Code)
	}
}

func TestFailures_areNotRevealedToClients(t *testing.T) {
	broken := endpoint.Table{
		endpoint.Get("/error", func(context.Context, endpoint.None, *endpoint.None) (endpoint.None, error) {
			return endpoint.None{}, fmt.Errorf("the password is hunter2")
		}),
		endpoint.Get("/panic", func(context.Context, endpoint.None, *endpoint.None) (endpoint.None, error) { panic("hunter2") }),
	}
	for _, path := range []string{"/error", "/panic"} {
		w := httptest.NewRecorder()
		newHandler(broken).ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, http.NoBody))
		if w.Code != 500 || endpointtest.Undescribed(w.Body.String()) != `{"message":"500 Internal Server Error"}` || strings.Contains(w.Body.String(), "hunter2") {
			t.Errorf("%s: got %d %s", path, w.Code, w.Body)
		}
	}
}

func TestTime_isWrittenInUTCWithMilliseconds(t *testing.T) {
	at := time.Date(2023, 9, 1, 14, 34, 56, 789654321, time.FixedZone("", 7200))
	got, err := json.Marshal([]any{endpoint.Time(at), endpoint.Time{}, endpoint.Date(at), endpoint.Date{}})
	if want := `["2023-09-01T12:34:56.789Z",null,"2023-09-01",null]`; err != nil || string(got) != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
}

// FuzzBinding sends arbitrary input as a query, a form, a multipart form and JSON. The answer must always be a success or a well-formed
// 4xx.
func FuzzBinding(f *testing.F) {
	f.Add("name=n&color=c&grants[][user_id]=1&position[base_sha]=x", `{"name":"n","color":[1,{"a":null}]}`)
	f.Add("a[b][]=1&a[b]=2&a=3&[]=4&a[", `{"name":"n","name":1e999}`)
	f.Add("page=9999999999&per_page=-1&ids[][x]=1", "\x00\xff")
	f.Add("labels=a,,b&name=%ff", "--b\r\nContent-Disposition: form-data; name=\"grants[][user_id]\"\r\n\r\n1\r\n--b--")
	f.Add("dry_run=&position=1&position[base_sha]=2", `{"name":"n","color":"c","ids":1,"labels":2,"grants":[[]],"position":{"base_sha":null}}`)
	h := newHandler(echoing)
	contract := endpointtest.Of(f, h)
	f.Fuzz(func(t *testing.T, form, body string) {
		for contentType, text := range map[string]string{
			"application/x-www-form-urlencoded": form, "application/json": body, "multipart/form-data; boundary=b": body,
		} {
			r := httptest.NewRequest(http.MethodPost, "/projects/1/labels", strings.NewReader(text))
			r.URL.RawQuery = form
			r.Header.Set("Content-Type", contentType)
			w := httptest.NewRecorder()
			contract.Handler(t, h).ServeHTTP(w, r)
			var answer map[string]any
			if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
				t.Fatalf("%q %q: %d %q: %v", form, text, w.Code, w.Body, err)
			}
			if _, refused := answer["error"]; w.Code >= 500 || w.Code != http.StatusCreated && !refused {
				t.Fatalf("%q %q: %d %s", form, text, w.Code, w.Body)
			}
		}
	})
}

func TestForms_keepOrderOfListElements(t *testing.T) {
	const want = `"Grants":[{"UserID":{"Set":true,"Null":false,"Value":1},"Destroy":false},` +
		`{"UserID":{"Set":true,"Null":false,"Value":2},"Destroy":true},{"UserID":{"Set":true,"Null":false,"Value":3},"Destroy":false}]`
	names := []string{"name", "color", "grants[][user_id]", "grants[][user_id]", "grants[][_destroy]", "grants[][user_id]"}
	values := []string{"n", "c", "1", "2", "1", "3"}
	var multipart, form strings.Builder
	for i, name := range names {
		fmt.Fprintf(&multipart, "--b\r\nContent-Disposition: form-data; name=%q\r\n\r\n%s\r\n", name, values[i])
		fmt.Fprintf(&form, "&%s=%s", name, values[i])
	}
	fmt.Fprint(&multipart, "--b\r\nContent-Disposition: form-data; name=\"name\"; filename=\"x\"\r\n\r\na file\r\n--b--\r\n")
	for kind, body := range map[string]string{
		"multipart/form-data; boundary=b": multipart.String(), "application/x-www-form-urlencoded": form.String(),
	} {
		for range 10 {
			r := httptest.NewRequest(http.MethodPost, "/projects/1/labels", strings.NewReader(body))
			r.Header.Set("Content-Type", kind)
			if w := serve(t, echoing, r); w.Code != 201 || !strings.Contains(w.Body.String(), want) || !strings.Contains(w.Body.String(), `"Name":"n"`) {
				t.Fatalf("%s: got %d %s", kind, w.Code, w.Body)
			}
		}
	}
}

func TestMaxBody_allowsLongerBodies(t *testing.T) {
	table := endpoint.Table{endpoint.Post("/projects/{id}/labels", echo).MaxBody(6 << 20)}
	for size, want := range map[int]int{5 << 20: 201, 7 << 20: 413} {
		r := httptest.NewRequest(http.MethodPost, "/projects/1/labels", strings.NewReader(`{"color":"c","name":"`+strings.Repeat("x", size)+`"}`))
		r.Header.Set("Content-Type", "application/json")
		if w := serve(t, table, r); w.Code != want {
			t.Errorf("%d bytes: got %d %.100s", size, w.Code, w.Body)
		}
	}
}
