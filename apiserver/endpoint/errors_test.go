package endpoint_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/forgeplane/forgeplane/apiserver/endpoint"
)

func TestDescribe_reachesClientInEachForm(t *testing.T) {
	for want, e := range map[string]*endpoint.Error{
		`{"message":"403 Forbidden","error_description":"This is why."}`:        endpoint.Forbidden(""),
		`{"message":{"title":["is taken"]},"error_description":"This is why."}`: endpoint.Invalid(map[string][]string{"title": {"is taken"}}),
		`{"message":["Label is taken"],"error_description":"This is why."}`:     endpoint.Unprocessable("Label is taken"),
		`{"error":"title is missing","error_description":"This is why."}`:       endpoint.Parameters("title is missing"),
		`{"error":"It is gone.","error_description":"This is why."}`:            endpoint.Gone("It is gone."),
		`{"message":{"error":"No slot"},"error_description":"This is why."}`:    endpoint.TooManyAtOnce("No slot", time.Second),
		"Retry later\nThis is why.\n":                                           endpoint.Throttled(time.Second),
		"":                                                                      endpoint.NotModified(),
	} {
		w := httptest.NewRecorder()
		newHandler(various).Refuse(e.Describe("This is %s.", "why")).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/fine", http.NoBody))
		if w.Body.String() != want {
			t.Errorf("%s is answered %q", e, w.Body)
		}
	}
}
