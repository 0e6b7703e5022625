package endpoint_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/forgeplane/forgeplane/apiserver/endpoint"
)

type owner struct {
	ID   int64  `json:"id"`
	Name string `json:"name" doc:"Name to show."`
}

type label struct {
	owner
	Name   string            `json:"name" doc:"Title of the label."`
	Color  *string           `json:"color"`
	Parent *label            `json:"parent"`
	By     []*owner          `json:"by"`
	Counts map[string]uint32 `json:"counts,omitempty"`
	Made   endpoint.Time     `json:"made_at"`
	Due    endpoint.Date     `json:"due"`
	At     time.Time         `json:"at"`
	Any    any               `json:"any"`
	Large  int64             `json:"large,string"`
	Secret string            `json:"-"`
}

type listLabels struct {
	endpoint.Paging
	ID     string   `param:"id" doc:"ID or full path."`
	States []string `param:"states" values:"opened,closed" comma:""`
}

// family is a table that uses everything that the document describes.
func family(shown label) endpoint.Table {
	list := func(_ context.Context, _ endpoint.None, r *listLabels) (endpoint.List[label], error) {
		return endpoint.Page(r.Paging, []label{shown}, func(l label) label { return l }), nil
	}
	create := func(context.Context, endpoint.None, *request) (*label, error) { return &shown, nil }
	remove := func(context.Context, endpoint.None, *listLabels) (endpoint.None, error) {
		return endpoint.None{}, endpoint.NotModified()
	}
	return endpoint.Table{
		endpoint.Get("/projects/{id}/labels", list).Doc("Lists the labels.").Anonymous(endpoint.Served),
		endpoint.Post("/projects/{id}/labels", create).Needs("write_labels").Asks("own_labels").Limited(5, "label"),
		endpoint.Delete("/projects/{id}/labels", remove).Also(http.StatusNotModified, http.StatusMethodNotAllowed),
		endpoint.Delete("/labels", func(context.Context, endpoint.None, *endpoint.None) (endpoint.None, error) {
			return endpoint.None{}, nil
		}).Conditional(),
	}.Named("Labels")
}

var complete = label{Color: new(string), Parent: &label{By: []*owner{}}, By: []*owner{nil, {ID: 1}}, Made: endpoint.Time(time.Now())}

func TestOpenAPI_describesTheTable(t *testing.T) {
	const (
		list   = "paths /projects/{id}/labels get "
		create = "paths /projects/{id}/labels post "
		remove = "paths /projects/{id}/labels delete "
		body   = create + "requestBody content application/json schema "
		form   = create + "requestBody content application/x-www-form-urlencoded schema "
		shown  = "components schemas Label "
	)
	tests := map[string]string{
		"info title":         `"A forge"`,
		"info version":       `"1.2.3"`,
		"servers":            `[{"url":"../v4"}]`,
		"tags":               `[{"name":"Labels"},{"name":"Reference"}]`,
		list + "operationId": `"getProjectsByIdLabels"`,
		list + "summary":     `"Lists the labels."`,
		list + "tags":        `["Labels"]`,
		list + "security":    `[{},{"privateToken":[]},{"bearer":[]},{"privateTokenQuery":[]}]`,
		list + "x-scopes":    `["api","read_api"]`,
		list + "parameters": `[
			{"name":"id","in":"path","required":true,"schema":{"type":"string"},"description":"ID or full path."},
			{"name":"page","in":"query","required":false,"schema":{"type":["integer","null"],"format":"int64","default":1},"description":"Number of the page, from 1."},
			{"name":"per_page","in":"query","required":false,"schema":{"type":["integer","null"],"format":"int64","default":20},"description":"Rows on a page, at most 100."},
			{"name":"states[]","in":"query","required":false,"schema":{"type":"array","items":{"type":"string","enum":["opened","closed"]}}}]`,
		list + "responses 200 content application/json schema": `{"type":"array","items":{"$ref":"#/components/schemas/Label"}}`,
		list + "responses 200 headers X-Total":                 `{"$ref":"#/components/headers/X-Total"}`,
		list + "responses 404":                                 `{"$ref":"#/components/responses/NotFound"}`,
		list + "responses 409":                                 `null`,

		create + "x-ability":                                    `"write_labels"`,
		create + "x-asks":                                       `["own_labels"]`,
		list + "x-asks":                                         `null`,
		create + "x-scopes":                                     `["api"]`,
		create + "security":                                     `null`,
		body + "required":                                       `["name","color"]`,
		body + "properties id":                                  `null`,
		body + "properties name":                                `{"type":"string","minLength":1}`,
		body + "properties state":                               `{"type":"string","enum":["opened","closed"],"default":"opened"}`,
		body + "properties priority":                            `{"type":["integer","null"],"format":"int64","minimum":0}`,
		body + "properties since":                               `{"type":["string","null"],"format":"date-time"}`,
		body + "properties labels":                              `{"type":["array","string"],"items":{"type":"string"}}`,
		body + "properties ids":                                 `{"type":"array","items":{"type":"integer","format":"int64"}}`,
		body + "properties grants items properties":             `{"user_id":{"type":["integer","null"],"format":"int64"},"_destroy":{"type":"boolean"}}`,
		body + "properties position":                            `{"type":"object","required":["base_sha"],"properties":{"base_sha":{"type":"string"},"line":{"type":"integer","format":"int64"}}}`,
		create + "requestBody content application/json example": `{"name":"name","color":"red"}`,
		form + "required":                                       `["name","color"]`,
		form + "properties labels[]":                            `{"type":"array","items":{"type":"string"}}`,
		form + "properties position[base_sha]":                  `{"type":"string"}`,
		form + "properties grants[][_destroy]":                  `{"type":"array","items":{"type":"boolean"}}`,
		create + "responses 201 headers":                        `null`,
		create + "responses 409":                                `{"$ref":"#/components/responses/Conflict"}`,
		"components responses Conflict content":                 `{"application/json":{"schema":{"anyOf":[{"$ref":"#/components/schemas/MessageError"},{"$ref":"#/components/schemas/ValidationError"}]}}}`,
		create + "responses 201 content":                        `{"application/json":{"schema":{"$ref":"#/components/schemas/Label"}}}`,

		create + "x-rate-limit":                        `{"requests":5,"seconds":60}`,
		create + "responses 429":                       `{"$ref":"#/components/responses/TooManyRequests"}`,
		"components responses TooManyRequests headers": `{"Retry-After":{"$ref":"#/components/headers/Retry-After"}}`,
		"paths /labels delete responses 412":           `{"$ref":"#/components/responses/PreconditionFailed"}`,
		"paths /labels delete parameters": `[{"name":"If-Unmodified-Since","in":"header","required":false,"schema":{"type":"string"},
			"description":"A date of HTTP or of the API: nothing is removed that was changed later."}]`,

		remove + "requestBody":   `null`,
		remove + "responses 412": `null`,
		remove + "responses 204": `{"description":"No Content"}`,
		remove + "responses 304": `{"description":"Nothing had to be done."}`,
		remove + "responses 405": `{"$ref":"#/components/responses/MethodNotAllowed"}`,

		shown + "required":           `["name","color","parent","by","made_at","due","at","any","large","id"]`,
		shown + "properties id":      `{"type":"integer","format":"int64"}`,
		shown + "properties name":    `{"type":"string","description":"Title of the label."}`,
		shown + "properties color":   `{"type":["string","null"]}`,
		shown + "properties parent":  `{"anyOf":[{"$ref":"#/components/schemas/Label"},{"type":"null"}]}`,
		shown + "properties by":      `{"type":"array","items":{"anyOf":[{"$ref":"#/components/schemas/Owner"},{"type":"null"}]}}`,
		shown + "properties counts":  `{"type":"object","additionalProperties":{"type":"integer","minimum":0}}`,
		shown + "properties made_at": `{"type":["string","null"],"format":"date-time"}`,
		shown + "properties due":     `{"type":["string","null"],"format":"date"}`,
		shown + "properties any":     `{}`,
		shown + "properties large":   `{"type":"string"}`,
	}
	var document any
	if err := json.Unmarshal(newHandler(family(complete)).OpenAPI(), &document); err != nil {
		t.Fatal(err)
	}
	for place, text := range tests {
		var want any
		if err := json.Unmarshal([]byte(text), &want); err != nil {
			t.Fatal(err)
		}
		got := document
		for _, key := range strings.Fields(place) {
			object, _ := got.(map[string]any)
			got = object[key]
		}
		if !reflect.DeepEqual(got, want) {
			shown, _ := json.Marshal(got)
			t.Errorf("%s:\ngot  %s\nwant %s", place, shown, text)
		}
	}
}

func TestOpenAPI_beginsWithRequestToTry(t *testing.T) {
	var document struct{ Info struct{ Description string } }
	if err := json.Unmarshal(newHandler(family(complete)).OpenAPI(), &document); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`curl --header "PRIVATE-TOKEN: $TOKEN" 'https://forge.example/api/v4/labels?per_page=2'`, "below `https://forge.example/api/v4`",
	} {
		if got := document.Info.Description; !strings.Contains(got, want) {
			t.Errorf("the introduction has no %s: %s", want, got)
		}
	}
}

func TestOpenAPI_isServed(t *testing.T) {
	table := family(complete)
	first := serve(t, table, httptest.NewRequest(http.MethodGet, "/openapi.json", http.NoBody))
	if first.Code != http.StatusOK || first.Body.String() != string(newHandler(table).OpenAPI()) {
		t.Errorf("got %d %.300s", first.Code, first.Body)
	}
	again := httptest.NewRequest(http.MethodGet, "/openapi.json", http.NoBody)
	again.Header.Set("If-None-Match", first.Header().Get("ETag"))
	if w := serve(t, table, again); w.Code != http.StatusNotModified {
		t.Errorf("again: got %d", w.Code)
	}
}

func TestAnswers_fitTheDocument(t *testing.T) {
	for method, want := range map[string]int{http.MethodGet: 200, http.MethodHead: 200, http.MethodPost: 201, http.MethodDelete: 304} {
		r := httptest.NewRequest(method, "/projects/a%2Fb/labels?name=n&color=c", http.NoBody)
		if w := serve(t, family(complete), r); w.Code != want {
			t.Errorf("%s: got %d %s", method, w.Code, w.Body)
		}
	}
}
