package endpoint_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/forgeplane/forgeplane/apiserver/endpoint"
)

type export struct {
	Finished bool `json:"has_finished"`
}

type asking struct {
	Finished bool `param:"finished"`
	Status   int  `param:"status"`
}

func exports(_ context.Context, _ endpoint.None, r *asking) (endpoint.Reply[*export], error) {
	reply := endpoint.Reply[*export]{Status: r.Status, Body: &export{r.Finished}}
	if !r.Finished && r.Status == 0 {
		reply.Status, reply.Header = http.StatusAccepted, http.Header{"Poll-Interval": {"5000"}}
	}
	return reply, nil
}

var replying = endpoint.Table{
	endpoint.Get("/exports", exports).Answers(
		endpoint.Answer{Status: http.StatusAccepted, Doc: "It is not finished.", Headers: map[string]string{"Poll-Interval": "Milliseconds to wait."}},
		endpoint.Answer{Status: http.StatusResetContent, Doc: "It has begun anew.", Empty: true},
	),
	endpoint.Post("/lists", func(_ context.Context, _ endpoint.None, r *listRequest) (endpoint.Reply[endpoint.List[int]], error) {
		return endpoint.Reply[endpoint.List[int]]{
			Header: http.Header{"X-Seen": {"1"}}, Body: endpoint.Page(r.Paging, make([]int, 3), func(i int) int { return i }),
		}, nil
	}).Answers(endpoint.Answer{Status: http.StatusCreated, Doc: "A list.", Headers: map[string]string{"X-Seen": "How often."}}),
}

func TestReply_hasStatusAndHeadersOfTheHandler(t *testing.T) {
	for _, tt := range []struct {
		method, target string
		status         int
		body           string
		header, value  string
	}{
		{http.MethodGet, "/exports?finished=true", 200, `{"has_finished":true}`, "Poll-Interval", ""},
		{http.MethodGet, "/exports", 202, `{"has_finished":false}`, "Poll-Interval", "5000"},
		{http.MethodGet, "/exports?status=205", 205, ``, "Content-Type", ""},
		{http.MethodGet, "/exports", 202, `{"has_finished":false}`, "ETag", ""},
		{http.MethodPost, "/lists?per_page=2", 201, `[0,0]`, "X-Seen", "1"},
		{http.MethodPost, "/lists?per_page=2", 201, `[0,0]`, "X-Total", "3"},
	} {
		t.Run(tt.target, func(t *testing.T) {
			w := serve(t, replying, httptest.NewRequest(tt.method, tt.target, http.NoBody))
			if w.Code != tt.status || w.Body.String() != tt.body || w.Header().Get(tt.header) != tt.value {
				t.Errorf("got %d %s, %s %q", w.Code, w.Body, tt.header, w.Header().Get(tt.header))
			}
		})
	}
}

func TestReply_failsWithUndeclaredStatus(t *testing.T) {
	w := httptest.NewRecorder()
	newHandler(replying).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/exports?status=203", http.NoBody))
	if w.Code != http.StatusInternalServerError {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
}

func TestOpenAPI_describesAllReplies(t *testing.T) {
	var document any
	if err := json.Unmarshal(newHandler(replying).OpenAPI(), &document); err != nil {
		t.Fatal(err)
	}
	const answers = "paths /exports get responses "
	for place, want := range map[string]string{
		answers + "200 content":     `{"application/json":{"schema":{"$ref":"#/components/schemas/Export"}}}`,
		answers + "200 description": `"OK"`,
		answers + "202": `{"description":"It is not finished.","content":{"application/json":{"schema":{"$ref":"#/components/schemas/Export"}}},
			"headers":{"Poll-Interval":{"description":"Milliseconds to wait.","schema":{"type":"string"}}}}`,
		answers + "205": `{"description":"It has begun anew."}`,
		"paths /lists post responses 201 description": `"A list."`,
		"paths /lists post responses 201 headers":     listHeaders,
	} {
		if got := find(document, place); !equalJSON(t, got, want) {
			shown, _ := json.Marshal(got)
			t.Errorf("%s:\ngot  %s\nwant %s", place, shown, want)
		}
	}
}

const listHeaders = `{"X-Seen":{"description":"How often.","schema":{"type":"string"}},
	"Link":{"$ref":"#/components/headers/Link"},"X-Page":{"$ref":"#/components/headers/X-Page"},"X-Per-Page":{"$ref":"#/components/headers/X-Per-Page"},
	"X-Next-Page":{"$ref":"#/components/headers/X-Next-Page"},"X-Prev-Page":{"$ref":"#/components/headers/X-Prev-Page"},
	"X-Total":{"$ref":"#/components/headers/X-Total"},"X-Total-Pages":{"$ref":"#/components/headers/X-Total-Pages"}}`
