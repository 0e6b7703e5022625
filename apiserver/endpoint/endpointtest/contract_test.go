package endpointtest_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/endpoint/endpointtest"
)

type thing struct {
	ID   int64    `json:"id"`
	Tags []string `json:"tags"`
}

type listThings struct {
	endpoint.Paging
	ID string `param:"id"`
}

type createThing struct {
	Size int64 `param:"size" required:"" example:"42"`
}

var table = endpoint.Table{
	endpoint.Get("/groups/{id}/things", func(context.Context, endpoint.None, *listThings) (endpoint.List[thing], error) {
		return endpoint.List[thing]{}, nil
	}),
	endpoint.Post("/things", func(context.Context, endpoint.None, *createThing) (thing, error) { return thing{}, nil }).Anybody(),
	endpoint.Delete("/things/{id}", func(context.Context, endpoint.None, *listThings) (endpoint.None, error) { return endpoint.None{}, nil }),
}

// closed is a guard that refuses everyone.
type closed struct{}

func (closed) Admit(*http.Request, *endpoint.Endpoint, endpoint.Sent) (context.Context, any, error) {
	return nil, nil, endpoint.Unauthorized("")
}

func (closed) Check(*endpoint.Endpoint) error { return nil }

func document() string {
	info := endpoint.Info{Title: "t", Version: "1"}
	return string(endpoint.NewHandler(endpoint.Options{Guard: closed{}, BaseURL: &url.URL{}, Info: info}, table).OpenAPI())
}

func TestCheck_comparesAnswersWithDocument(t *testing.T) {
	contract, err := endpointtest.Load([]byte(document()))
	if err != nil {
		t.Fatal(err)
	}
	const list = "/groups/a%2Fb/things"
	tests := map[string]struct {
		method, path string
		status       int
		header       string // name=value
		body         string
		problem      string // empty if there is none
	}{
		"a list":                      {"GET", list, 200, "", `[{"id":1,"tags":["x"]}]`, ""},
		"a list to HEAD":              {"HEAD", list, 200, "", ``, ""},
		"null for a list":             {"GET", list, 200, "", `[{"id":1,"tags":null}]`, "want array"},
		"a field that is missing":     {"GET", list, 200, "", `[{"tags":[]}]`, "missing property 'id'"},
		"an object for a list":        {"GET", list, 200, "", `{}`, "want array"},
		"malformed JSON":              {"GET", list, 200, "", `[`, "not JSON"},
		"another content type":        {"GET", list, 200, "Content-Type=text/html", `[]`, "content type"},
		"a header without a number":   {"GET", list, 200, "X-Page=one", `[]`, "X-Page"},
		"an empty header":             {"GET", list, 200, "X-Next-Page=", `[]`, ""},
		"no ETag":                     {"GET", list, 200, "ETag", `[]`, "ETag: is missing"},
		"an undocumented status":      {"GET", list, 418, "", `{}`, "no answer 418"},
		"a failure of the server":     {"GET", list, 500, "", `{"message":"x"}`, "no answer 500"},
		"an error":                    {"GET", list, 404, "", `{"message":"404 Group Not Found"}`, ""},
		"an error of another form":    {"GET", list, 404, "", `{"error":"404 Group Not Found"}`, "missing property 'message'"},
		"an error that says too much": {"GET", list, 404, "", `{"message":"404","trace":"x"}`, "trace"},
		"a text in place of JSON":     {"GET", list, 404, "Content-Type=text/plain", `Not found`, "content type"},
		"a text as documented":        {"GET", list, 429, "Content-Type=text/plain", `Retry later`, "Retry-After: is missing"},
		"No Content":                  {"DELETE", "/things/1", 204, "", ``, ""},
		"a body with No Content":      {"DELETE", "/things/1", 204, "", `{}`, "there is a body"},
		"an unknown path":             {"GET", "/nothing", 404, "", `{"error":"404 Not Found"}`, ""},
		"an unknown path that exists": {"GET", "/nothing", 200, "", `{}`, "no such operation"},
		"an unknown method":           {"PUT", "/things/1", 405, "", `{"error":"405 Not Allowed"}`, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			h := http.Header{"Content-Type": {"application/json"}, "Etag": {`W/"x"`}}
			if key, value, set := strings.Cut(tt.header, "="); set {
				h.Set(key, value)
			} else {
				h.Del(key)
			}
			err := contract.Check(tt.method, tt.path, tt.status, h, []byte(tt.body))
			if tt.problem == "" && err != nil || tt.problem != "" && (err == nil || !strings.Contains(err.Error(), tt.problem)) {
				t.Errorf("got %v, want %q", err, tt.problem)
			}
		})
	}
}

func TestLoad_refusesInvalidDocuments(t *testing.T) {
	tests := map[string]struct{ old, replacement, problem string }{
		"malformed JSON":           {`{`, ``, "reading the document"},
		"another version":          {`"3.1.0"`, `"3.0.0"`, "not OpenAPI 3.1"},
		"a parameter in no place":  {`"in":"path"`, `"in":"nowhere"`, "not OpenAPI 3.1"},
		"a schema of unknown type": {`"type":"integer"`, `"type":"whole"`, "not valid against metaschema"},
		"a missing schema":         {`#/components/schemas/Thing"`, `#/components/schemas/Nothing"`, "Nothing"},
		"a wrong example":          {`"size":42`, `"size":"large"`, "the example of application/json is not valid"},
		"one path by two names":    {`"/things/{id}":`, `"/groups/{group}/things":`, "are one path"},
		"one operation twice":      {`"deleteThingsById"`, `"getGroupsByIdThings"`, "operationId"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			text := document()
			broken := strings.ReplaceAll(text, tt.old, tt.replacement)
			if broken == text {
				t.Fatalf("the document has no %s", tt.old)
			}
			if _, err := endpointtest.Load([]byte(broken)); err == nil || !strings.Contains(err.Error(), tt.problem) {
				t.Errorf("got %v, want %q", err, tt.problem)
			}
		})
	}
}

// failures records the messages with which a test would fail.
type failures struct {
	testing.TB
	said []string
}

func (*failures) Helper()                        {}
func (f *failures) Errorf(text string, v ...any) { f.said = append(f.said, fmt.Sprintf(text, v...)) }

func TestTransport_reportsAnswersMissingFromDocument(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte(`{"no":"family"}`))
	}))
	defer server.Close()
	contract, err := endpointtest.Load([]byte(document()))
	if err != nil {
		t.Fatal(err)
	}
	told := &failures{TB: t}
	client := http.Client{Transport: contract.Transport(told, "/api/v4", http.DefaultTransport)}
	for path, want := range map[string]int{"/api/v4/groups/a%2Fb/things": 1, "/healthz": 0} {
		told.said = nil
		answer, err := client.Get(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		var body strings.Builder
		if err := answer.Write(&body); err != nil || !strings.Contains(body.String(), `{"no":"family"}`) {
			t.Errorf("%s: the body is gone: %v", path, err)
		}
		if len(told.said) != want {
			t.Errorf("%s: got %q", path, told.said)
		}
	}
}
