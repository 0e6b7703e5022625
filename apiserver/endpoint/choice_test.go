package endpoint_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/forgeplane/forgeplane/apiserver/endpoint"
)

// change has the parameters that several requests share by embedding it.
type change struct {
	Name     endpoint.Optional[string] `param:"new_name" atLeastOne:"change"`
	Priority endpoint.Optional[int]    `param:"priority" atLeastOne:"change"`
}

type choosing struct {
	change
	ID    string `param:"id"`
	KeyID int64  `param:"key_id" exactlyOne:"key"`
	Key   string `param:"key" exactlyOne:"key"`
	Needs string `param:"needs" required:""`
	Of    struct {
		A int `param:"a" exactlyOne:"of"`
		B int `param:"b" exactlyOne:"of"`
	} `param:"of"`
}

func TestParameters_checkGroupsOfAlternatives(t *testing.T) {
	table := endpoint.Table{endpoint.Put("/things/{id}", func(_ context.Context, _ endpoint.None, _ *choosing) (endpoint.None, error) {
		return endpoint.None{}, nil
	})}
	for body, want := range map[string]string{
		`{"needs":"x","key":"a","new_name":"b"}`:                "",
		`{"needs":"x","key_id":1,"priority":null}`:              "",
		`{"needs":"x","key":null,"new_name":null,"priority":1}`: "",
		`{"needs":"x","key":"a"}`:                               "new_name, priority are missing, at least one parameter must be provided",
		`{"needs":"x","new_name":"b"}`:                          "key_id, key are missing, exactly one parameter must be provided",
		`{"needs":"x","new_name":"b","key":"a","key_id":1}`:     "key_id, key are mutually exclusive",
		`{"needs":"x","new_name":"b","key":"a","key_id":null}`:  "key_id, key are mutually exclusive",
		`{}`: "needs is missing, new_name, priority are missing, at least one parameter must be provided, " +
			"key_id, key are missing, exactly one parameter must be provided",
		`{"needs":"x","key":"a","priority":"y"}`:                  "priority is invalid",
		`{"needs":"x","key":"a","priority":1,"of":{"a":1}}`:       "",
		`{"needs":"x","key":"a","priority":1,"of":{}}`:            "of[a], of[b] are missing, exactly one parameter must be provided",
		`{"needs":"x","key":"a","priority":1,"of":{"a":1,"b":2}}`: "of[a], of[b] are mutually exclusive",
	} {
		t.Run(body, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodPut, "/things/1", strings.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			w := serve(t, table, r)
			status, text := http.StatusOK, ""
			if want != "" {
				status, text = http.StatusBadRequest, `{"error":"`+want+`"}`
			}
			if w.Code != status || w.Body.String() != text {
				t.Errorf("got  %d %s\nwant %d %s", w.Code, w.Body, status, text)
			}
		})
	}
}

func TestNonempty_refusesRequestsWithoutParameters(t *testing.T) {
	table := endpoint.Table{endpoint.Put("/things/{id}", func(_ context.Context, _ endpoint.None, _ *struct {
		ID   int64  `param:"id"`
		Name string `param:"name"`
		Path string `param:"path"`
	}) (endpoint.None, error) {
		return endpoint.None{}, nil
	}).Nonempty()}
	const want = `{"error":"name, path are missing, at least one parameter must be provided"}`
	for target, refused := range map[string]bool{
		"": true, "?sudo=otto": true, "?private_token=x": true, "?unknown=1": false, "?name=": false,
	} {
		w := serve(t, table, httptest.NewRequest(http.MethodPut, "/things/1"+target, http.NoBody))
		if got := w.Body.String() == want; got != refused || refused != (w.Code == http.StatusBadRequest) {
			t.Errorf("%q: got %d %s", target, w.Code, w.Body)
		}
	}
}
