package endpoint_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"

	"github.com/forgeplane/forgeplane/apiserver/endpoint"
)

// various is a table whose endpoints give the answers in answered.
var various = endpoint.Table{
	endpoint.Get("/fine", func(context.Context, endpoint.None, *endpoint.None) (string, error) { return "fine", nil }),
	endpoint.Delete("/gone", func(context.Context, endpoint.None, *endpoint.None) (endpoint.None, error) {
		return endpoint.None{}, nil
	}),
	endpoint.Get("/same", func(context.Context, endpoint.None, *endpoint.None) (endpoint.None, error) {
		return endpoint.None{}, endpoint.NotModified()
	}),
	endpoint.Get("/broken", func(context.Context, endpoint.None, *endpoint.None) (endpoint.None, error) {
		return endpoint.None{}, fmt.Errorf("the disk is full")
	}),
	endpoint.Get("/panic", func(context.Context, endpoint.None, *endpoint.None) (endpoint.None, error) { panic("no") }),
	endpoint.Get("/refused", func(context.Context, endpoint.None, *endpoint.None) (endpoint.None, error) {
		return endpoint.None{}, endpoint.Forbidden("")
	}),
}

var answered = map[string]int{
	"GET /fine": 200, "HEAD /fine": 200, "GET /fine?x=%ff": 400, "DELETE /gone": 204, "GET /same": 304, "GET /broken": 500, "GET /panic": 500,
	"GET /refused": 403, "GET /nothing": 404, "GET /": 404, "PUT /fine": 405, "GET //fine": 404, "GET /x/../fine": 404,
}

func TestAnswer_namesItsRequest(t *testing.T) {
	h := newHandler(various)
	for request, status := range answered {
		method, target, _ := strings.Cut(request, " ")
		r := httptest.NewRequest(method, "/", http.NoBody)
		r.URL = mustParse(t, "http://forge.example"+target)
		r.Header.Set("X-Request-Id", "from_the-CLIENT-7")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != status {
			t.Errorf("%s: got %d %s, want %d", request, w.Code, w.Body, status)
		}
		for name, want := range map[string]string{
			"X-Request-Id": "from_the-CLIENT-7", "X-Gitlab-Meta": `{"correlation_id":"from_the-CLIENT-7","version":"1"}`,
			"X-Content-Type-Options": "nosniff", "X-Frame-Options": "SAMEORIGIN", "Vary": "Origin", "Location": "",
			"Cache-Control": "max-age=0, private, must-revalidate",
		} {
			if got := w.Header().Get(name); got != want {
				t.Errorf("%s: %s is %q, want %q", request, name, got, want)
			}
		}
	}
}

func TestRefuse_setsUsualHeaders(t *testing.T) {
	h := newHandler(various).Refuse(endpoint.Gone("It is gone."))
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/fine", http.NoBody))
	if w.Code != http.StatusGone || w.Body.String() != `{"error":"It is gone."}` || w.Header().Get("X-Request-Id") == "" {
		t.Errorf("got %d %s, %v", w.Code, w.Body, w.Header())
	}
}

func TestRequestID_isReplacedIfInvalid(t *testing.T) {
	h := newHandler(various)
	name := regexp.MustCompile(`^[0-9a-f]{32}$`)
	seen := map[string]bool{}
	for _, sent := range []string{"", "a b", "a\"b", "ä", "a.b", "a/b", strings.Repeat("x", 129), ""} {
		r := httptest.NewRequest(http.MethodGet, "/fine", http.NoBody)
		r.Header.Set("X-Request-Id", sent)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		got := w.Header().Get("X-Request-Id")
		if !name.MatchString(got) || seen[got] {
			t.Errorf("%q: got %q", sent, got)
		}
		seen[got] = true
		var meta struct {
			CorrelationID string `json:"correlation_id"`
		}
		if err := json.Unmarshal([]byte(w.Header().Get("X-Gitlab-Meta")), &meta); err != nil || meta.CorrelationID != got {
			t.Errorf("%q: got %+v, %v", sent, meta, err)
		}
	}
	longest := strings.Repeat("x", 128)
	r := httptest.NewRequest(http.MethodGet, "/fine", http.NoBody)
	r.Header.Set("X-Request-Id", longest)
	w := httptest.NewRecorder()
	if h.ServeHTTP(w, r); w.Header().Get("X-Request-Id") != longest {
		t.Errorf("a name of 128 characters became %q", w.Header().Get("X-Request-Id"))
	}
}

func TestLog_namesFailedRequests(t *testing.T) {
	var logged []string
	h := endpoint.NewHandler(endpoint.Options{
		Guard: open{}, Log: funcr.New(func(_, line string) { logged = append(logged, line) }, funcr.Options{}),
	}, various)
	for _, path := range []string{"/broken", "/panic", "/refused", "/fine"} {
		r := httptest.NewRequest(http.MethodGet, path, http.NoBody)
		r.Header.Set("X-Request-Id", "the-request")
		h.ServeHTTP(httptest.NewRecorder(), r)
	}
	if len(logged) != 2 || !strings.Contains(logged[0], `"request"="the-request"`) || !strings.Contains(logged[1], `"request"="the-request"`) {
		t.Errorf("got %q", logged)
	}
	logged = nil
	gone, leave := context.WithCancel(t.Context())
	leave()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(gone, http.MethodGet, "/broken", http.NoBody))
	if len(logged) != 0 || w.Code != http.StatusInternalServerError {
		t.Errorf("for a client that has gone: got %d, logged %q", w.Code, logged)
	}
}
