package endpoint_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/forgeplane/forgeplane/apiserver/endpoint"
)

// filter has the parameters that narrow a list.
type filter struct {
	Assignee   endpoint.Either[int64]    `param:"assignee_id" words:"None,Any" minimum:"1" doc:"Who it is assigned to."`
	ApprovedBy endpoint.Either[[]int64]  `param:"approved_by_ids" words:"None,Any"`
	Labels     endpoint.Either[[]string] `param:"labels" words:"None,Any" comma:""`
	Milestone  endpoint.Either[string]   `param:"milestone" words:"None,Any" blank:"refuse"`
	AuthorID   endpoint.Optional[int64]  `param:"author_id" atMostOne:"author"`
	Author     string                    `param:"author_username" atMostOne:"author"`
	IIDs       []int64                   `param:"iids"`
}

type filtered struct {
	endpoint.Paging
	filter
	Not       filter            `param:"not" doc:"What is left out."`
	Variables map[string]string `param:"variables" doc:"What the jobs get."`
}

// repeated is a handler that returns the request that it received.
func repeated[Req any](_ context.Context, _ endpoint.None, r *Req) (any, error) { return r, nil }

// nothing is a handler that returns no response.
func nothing[Req any](context.Context, endpoint.None, *Req) (endpoint.None, error) {
	return endpoint.None{}, nil
}

var binding = endpoint.Table{
	endpoint.Get("/things", repeated[filtered]),
	endpoint.Post("/things", repeated[filtered]),
	endpoint.Get("/lists", func(_ context.Context, _ endpoint.None, r *filtered) (endpoint.List[int], error) {
		return endpoint.Page(r.Paging, make([]int, 30), func(i int) int { return i }), nil
	}),
}

// each sends the same parameters in each supported form: as a query, as a form and, if it is given, as JSON.
func each(t *testing.T, query, text string, check func(t *testing.T, status int, body string)) {
	t.Helper()
	send := func(name, method, target, contentType, body string) {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(method, target, strings.NewReader(body))
			r.Header.Set("Content-Type", contentType)
			w := serve(t, binding, r)
			check(t, w.Code, w.Body.String())
		})
	}
	if query != "" {
		send("query "+query, http.MethodGet, "/things?"+query, "", "")
		send("form "+query, http.MethodPost, "/things", "application/x-www-form-urlencoded", query)
	}
	if text != "" {
		send("JSON "+text, http.MethodPost, "/things", "application/json", text)
	}
}

func TestEither_isAValueOrAWord(t *testing.T) {
	for _, tt := range []struct{ query, json, want string }{
		{"", `{}`, `"Assignee":{"Set":false,"Word":"","Value":0}`},
		{"assignee_id=7", `{"assignee_id":7}`, `"Assignee":{"Set":true,"Word":"","Value":7}`},
		{"assignee_id=None", `{"assignee_id":"None"}`, `"Assignee":{"Set":true,"Word":"None","Value":0}`},
		{"assignee_id=ANY", `{"assignee_id":"any"}`, `"Assignee":{"Set":true,"Word":"Any","Value":0}`},
		{"assignee_id=", `{"assignee_id":null}`, `"Assignee":{"Set":false,"Word":"","Value":0}`},
		{"approved_by_ids[]=3&approved_by_ids[]=4", `{"approved_by_ids":[3,"4"]}`, `"ApprovedBy":{"Set":true,"Word":"","Value":[3,4]}`},
		{"approved_by_ids=none", `{"approved_by_ids":"none"}`, `"ApprovedBy":{"Set":true,"Word":"None","Value":null}`},
		{"", `{"approved_by_ids":[]}`, `"ApprovedBy":{"Set":true,"Word":"","Value":[]}`},
		{"", `{"approved_by_ids":null}`, `"ApprovedBy":{"Set":true,"Word":"","Value":[]}`},
		{"labels=a,+b", `{"labels":"a, b"}`, `"Labels":{"Set":true,"Word":"","Value":["a","b"]}`},
		{"labels[]=a&labels[]=None", `{"labels":["a","None"]}`, `"Labels":{"Set":true,"Word":"","Value":["a","None"]}`},
		{"labels[]=none", `{"labels":["none"]}`, `"Labels":{"Set":true,"Word":"None","Value":null}`},
		{"labels=None", `{"labels":"None"}`, `"Labels":{"Set":true,"Word":"None","Value":null}`},
		{"milestone=v1", `{"milestone":"v1"}`, `"Milestone":{"Set":true,"Word":"","Value":"v1"}`},
		{"milestone=any", `{"milestone":"Any"}`, `"Milestone":{"Set":true,"Word":"Any","Value":""}`},
	} {
		each(t, tt.query, tt.json, func(t *testing.T, status int, body string) {
			if status >= 300 || !strings.Contains(body, tt.want) {
				t.Errorf("got %d %s\nwant %s", status, body, tt.want)
			}
		})
	}
}

func TestEither_reportsExpectedValues(t *testing.T) {
	for _, tt := range []struct{ query, json, want string }{
		{"assignee_id=otto", `{"assignee_id":"otto"}`, "assignee_id should be an integer, 'None' or 'Any'"},
		{"assignee_id=1.5", `{"assignee_id":1.5}`, "assignee_id should be an integer, 'None' or 'Any'"},
		{"assignee_id=0", `{"assignee_id":0}`, "assignee_id does not have a valid value"},
		{"assignee_id[]=1", `{"assignee_id":[1]}`, "assignee_id is invalid"},
		{"assignee_id[x]=1", `{"assignee_id":{"x":1}}`, "assignee_id is invalid"},
		{"", `{"assignee_id":true}`, "assignee_id is invalid"},
		{"approved_by_ids=3", `{"approved_by_ids":3}`, "approved_by_ids should be an array, 'None' or 'Any'"},
		{"approved_by_ids[]=x", `{"approved_by_ids":["x"]}`, "approved_by_ids is invalid"},
		{"milestone=", `{"milestone":null}`, "milestone is empty"},
		{"milestone=%00", `{"milestone":"\u0000"}`, "milestone should be a text, 'None' or 'Any'"},
		{"assignee_id=x&approved_by_ids=y", `{"assignee_id":"x","approved_by_ids":"y"}`,
			"assignee_id should be an integer, 'None' or 'Any', approved_by_ids should be an array, 'None' or 'Any'"},
	} {
		each(t, tt.query, tt.json, func(t *testing.T, status int, body string) {
			if want := fmt.Sprintf(`{"error":%q}`, tt.want); status != http.StatusBadRequest || body != want {
				t.Errorf("got %d %s\nwant %s", status, body, want)
			}
		})
	}
}

func TestNegations_areSeparateParameters(t *testing.T) {
	for _, tt := range []struct{ query, json, want string }{
		{"not[labels]=a,b&labels=c", `{"not":{"labels":"a,b"},"labels":["c"]}`, `"Not":{"Assignee":{"Set":false,"Word":"","Value":0},` +
			`"ApprovedBy":{"Set":false,"Word":"","Value":null},"Labels":{"Set":true,"Word":"","Value":["a","b"]}`},
		{"not[assignee_id]=any", `{"not":{"assignee_id":"any"}}`, `"Not":{"Assignee":{"Set":true,"Word":"Any","Value":0}`},
		{"not[iids][]=1&not[iids][]=2", `{"not":{"iids":[1,2]}}`, `"IIDs":[1,2]}`},
		{"not[author_id]=3&author_username=otto", `{"not":{"author_id":3},"author_username":"otto"}`, `"Author":"otto"`},
		{"not[unknown]=1", `{"not":{"unknown":1}}`, `"Not":{"Assignee"`},
		{"not[assignee_id]=x", `{"not":{"assignee_id":"x"}}`, `{"error":"not[assignee_id] should be an integer, 'None' or 'Any'"}`},
		{"not[iids]=1", `{"not":{"iids":1}}`, `{"error":"not[iids] is invalid"}`},
		{"not[author_id]=3&not[author_username]=otto", `{"not":{"author_id":3,"author_username":"otto"}}`,
			`{"error":"not[author_id], not[author_username] are mutually exclusive"}`},
		{"author_id=3&author_username=otto", `{"author_id":3,"author_username":"otto"}`, `{"error":"author_id, author_username are mutually exclusive"}`},
		{"not=x", `{"not":"x"}`, `{"error":"not is invalid"}`},
		{"not[]=x", `{"not":["x"]}`, `{"error":"not is invalid"}`},
	} {
		each(t, tt.query, tt.json, func(t *testing.T, status int, body string) {
			if !strings.Contains(body, tt.want) || (status == http.StatusBadRequest) != strings.HasPrefix(tt.want, `{"error"`) {
				t.Errorf("got %d %s\nwant %s", status, body, tt.want)
			}
		})
	}
}

func TestMaps_acceptAnyKeys(t *testing.T) {
	const refused = `{"message":"variables needs to be a map of key-valued strings"}`
	for _, tt := range []struct {
		query, json string
		status      int
		want        string
	}{
		{"", `{}`, 0, `"Variables":null`},
		{"variables[A]=1&variables[b.c]=x%3Dy", `{"variables":{"A":"1","b.c":"x=y"}}`, 0, `"Variables":{"A":"1","b.c":"x=y"}`},
		{"variables[A]=1&variables[A]=2", `{"variables":{"A":"1","A":"2"}}`, 0, `"Variables":{"A":"2"}`},
		{"variables=", `{"variables":null}`, 0, `"Variables":null`},
		{"", `{"variables":{}}`, 0, `"Variables":{}`},
		{"variables=x", `{"variables":"x"}`, 400, `{"error":"variables is invalid"}`},
		{"variables[]=x", `{"variables":["x"]}`, 400, `{"error":"variables is invalid"}`},
		{"variables[A]=%00", `{"variables":{"A":"\u0000"}}`, 400, `{"error":"variables is invalid"}`},
		{"variables[A][B]=x", `{"variables":{"A":{"B":"x"}}}`, 400, refused},
		{"variables[A][]=x", `{"variables":{"A":["x"]}}`, 400, refused},
		{"", `{"variables":{"A":1}}`, 400, refused},
		{"", `{"variables":{"A":true}}`, 400, refused},
		{"", `{"variables":{"A":null}}`, 400, refused},
		{"variables[A][]=x&iids=1", `{"variables":{"A":1},"iids":1}`, 400, `{"error":"iids is invalid"}`},
	} {
		each(t, tt.query, tt.json, func(t *testing.T, status int, body string) {
			if tt.status == 0 && status >= 300 || tt.status != 0 && status != tt.status || !strings.Contains(body, tt.want) {
				t.Errorf("got %d %s\nwant %d %s", status, body, tt.status, tt.want)
			}
		})
	}
}

func TestLinks_keepMapsUnionsAndNegations(t *testing.T) {
	w := serve(t, binding, httptest.NewRequest(http.MethodGet, "/lists?assignee_id=none&approved_by_ids[]=3&not[labels]=a,b&not[iids][]=1&variables[A]=x", http.NoBody))
	const want = `<https://forge.example/api/v4/lists?approved_by_ids%5B%5D=3&assignee_id=none&not%5Biids%5D%5B%5D=1&not%5Blabels%5D=a%2Cb` +
		`&per_page=20&variables%5BA%5D=x&page=2>; rel="next"`
	if got := w.Header().Get("Link"); w.Code != http.StatusOK || !strings.HasPrefix(got, want) {
		t.Errorf("got %d, Link %s\nwant %s", w.Code, got, want)
	}
}

func TestOpenAPI_describesMapsUnionsAndNegations(t *testing.T) {
	const (
		list = "paths /things get parameters "
		body = "paths /things post requestBody content application/json schema properties "
		form = "paths /things post requestBody content application/x-www-form-urlencoded "
	)
	var document any
	if err := json.Unmarshal(newHandler(binding).OpenAPI(), &document); err != nil {
		t.Fatal(err)
	}
	for place, want := range map[string]string{
		list + "assignee_id": `{"name":"assignee_id","in":"query","required":false,"description":"Who it is assigned to.",
			"schema":{"anyOf":[{"type":"integer","format":"int64","minimum":1},{"type":"string","enum":["None","Any"]}]}}`,
		list + "approved_by_ids":        `{"name":"approved_by_ids","in":"query","required":false,"schema":{"type":"string","enum":["None","Any"]}}`,
		list + "approved_by_ids[]":      `{"name":"approved_by_ids[]","in":"query","required":false,"schema":{"type":"array","items":{"type":"integer","format":"int64"}}}`,
		list + "labels":                 `{"name":"labels","in":"query","required":false,"schema":{"type":"string","examples":["None","Any"]}}`,
		list + "labels[]":               `null`,
		list + "not[labels]":            `{"name":"not[labels]","in":"query","required":false,"schema":{"type":"string","examples":["None","Any"]}}`,
		list + "not[author_id] schema":  `{"type":["integer","null"],"format":"int64"}`,
		list + "variables":              `{"name":"variables","in":"query","required":false,"description":"What the jobs get.","style":"deepObject","explode":true,"schema":{"type":"object","additionalProperties":{"type":"string"}}}`,
		body + "approved_by_ids anyOf":  `[{"type":"array","items":{"type":"integer","format":"int64"}},{"type":"string","enum":["None","Any"]}]`,
		body + "labels anyOf":           `[{"type":["array","string"],"items":{"type":"string"}},{"type":"string","examples":["None","Any"]}]`,
		body + "variables":              `{"type":"object","additionalProperties":{"type":"string"},"description":"What the jobs get."}`,
		body + "not properties iids":    `{"type":"array","items":{"type":"integer","format":"int64"}}`,
		form + "encoding variables":     `{"style":"deepObject","explode":true}`,
		form + "schema properties iids": `null`,
	} {
		if got := find(document, place); !equalJSON(t, got, want) {
			shown, _ := json.Marshal(got)
			t.Errorf("%s:\ngot  %s\nwant %s", place, shown, want)
		}
	}
}

// find returns the value at a place in a document. It finds an element of a list by its name.
func find(in any, place string) any {
	for key := range strings.FieldsSeq(place) {
		switch v := in.(type) {
		case map[string]any:
			in = v[key]
		case []any:
			in = nil
			for _, element := range v {
				if one, is := element.(map[string]any); is && one["name"] == key {
					in = one
				}
			}
		default:
			return nil
		}
	}
	return in
}

func equalJSON(t *testing.T, got any, text string) bool {
	t.Helper()
	var want any
	if err := json.Unmarshal([]byte(text), &want); err != nil {
		t.Fatal(err)
	}
	return reflect.DeepEqual(got, want)
}

func TestGet_panicsOnInvalidParameters(t *testing.T) {
	for name, mistake := range map[string]func(){
		"a map of numbers": func() {
			endpoint.Get("/", repeated[struct {
				A map[string]int `param:"a"`
			}])
		},
		"Either without words": func() {
			endpoint.Get("/", repeated[struct {
				A endpoint.Either[int] `param:"a"`
			}])
		},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("nothing panicked")
				}
			}()
			mistake()
		})
	}
}
