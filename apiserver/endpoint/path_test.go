package endpoint_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/forgeplane/forgeplane/apiserver/endpoint"
)

func TestPath_refusesWhatNoFileCanHave(t *testing.T) {
	table := endpoint.Table{endpoint.Get("/files/{path...}", repeated[struct {
		Path endpoint.Path `param:"path"`
	}])}
	for path, want := range map[string]string{
		"a%20b/c": `{"Path":"a b/c"}`,
		"a%00b":   `{"message":"400 Bad request"}`,
		"a/%ff":   `{"message":"400 Bad request"}`,
	} {
		w := serve(t, table, httptest.NewRequest(http.MethodGet, "/files/"+path, http.NoBody))
		if got := w.Body.String(); got != want {
			t.Errorf("%s is answered %d %s, want %s", path, w.Code, got, want)
		}
	}
}
