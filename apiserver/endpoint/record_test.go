package endpoint_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/go-logr/logr"

	"github.com/forgeplane/forgeplane/apiserver/endpoint"
)

// note is a subject that two parameters name.
type note struct{ of, id string }

func (note) Parameters() []endpoint.Parameter {
	return []endpoint.Parameter{{Doc: "The issue."}, {Doc: "The note.", Integer: true}}
}

// clerk knows notes.
type clerk struct{ doorman }

func (*clerk) Admit(_ *http.Request, e *endpoint.Endpoint, sent endpoint.Sent) (context.Context, any, error) {
	named := e.Located()
	return context.Background(), note{sent.Path[named[0]], sent.Path[named[1]]}, nil
}

func noteTable() endpoint.Table {
	type request struct {
		Award string `param:"award_id" doc:"The award."`
	}
	show := func(_ context.Context, n note, r *request) (string, error) {
		return n.of + " " + n.id + " " + r.Award, nil
	}
	return endpoint.Table{
		endpoint.Get("/issues/{iid}/notes/{note_id}/awards/{award_id}", show).Needs("read").Or("own").Feature("awards").
			TakesWhile("jobs", endpoint.JobToken),
		endpoint.Delete("/issues/{iid}/notes/{note_id}/awards/{award_id}", show).Needs("write").And("own"),
	}
}

func TestSubject_isNamedBySeveralParameters(t *testing.T) {
	h := endpoint.NewHandler(endpoint.Options{Guard: &clerk{}, Log: logr.Discard(), BaseURL: &url.URL{}}, noteTable())
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/issues/a%2Fb/notes/7/awards/8", http.NoBody))
	if got := w.Body.String(); got != `"a/b 7 8"` {
		t.Errorf("got %s", got)
	}
	defer func() {
		if got, want := recover(), "endpoint: /issues/{iid}: no parameter names the endpoint_test.note"; got != want {
			t.Errorf("got %v, want %s", got, want)
		}
	}()
	endpoint.Get("/issues/{iid}", func(context.Context, note, *endpoint.None) (endpoint.None, error) { return endpoint.None{}, nil })
}

func TestOpenAPI_describesRulesAndFeatures(t *testing.T) {
	const path = "paths /issues/{iid}/notes/{note_id}/awards/{award_id} "
	var document any
	if err := json.Unmarshal(newHandler(noteTable()).OpenAPI(), &document); err != nil {
		t.Fatal(err)
	}
	for place, want := range map[string]string{
		path + "get x-rule":       `{"or":"own"}`,
		path + "get x-feature":    `"awards"`,
		path + "delete x-rule":    `{"and":"own"}`,
		path + "delete x-feature": `null`,

		path + "get x-credentials":            `["access_token","job_token"]`,
		path + "get x-credential-features":    `{"job_token":"jobs"}`,
		path + "delete x-credential-features": `null`,
		path + "get parameters": `[
			{"name":"iid","in":"path","required":true,"schema":{"type":"string"},"description":"The issue."},
			{"name":"note_id","in":"path","required":true,"schema":{"type":"integer","format":"int64"},"description":"The note."},
			{"name":"award_id","in":"path","required":true,"schema":{"type":"string"},"description":"The award."}]`,
	} {
		if got := find(document, place); !equalJSON(t, got, want) {
			shown, _ := json.Marshal(got)
			t.Errorf("%s:\ngot  %s\nwant %s", place, shown, want)
		}
	}
}

func TestID_mustBeNumber(t *testing.T) {
	if id, err := endpoint.ID("id", " 7"); id != 7 || err != nil {
		t.Errorf("got %d, %v", id, err)
	}
	for _, text := range []string{"", "x", "7.0", "9223372036854775808"} {
		if _, err := endpoint.ID("id", text); err == nil || err.Error() != `400 {"error":"id is invalid"}` {
			t.Errorf("%q: got %v", text, err)
		}
	}
}
