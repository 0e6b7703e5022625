package endpoint_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/go-logr/logr"

	"github.com/forgeplane/forgeplane/apiserver/endpoint"
)

// bearer is a caller who presented a credential.
type bearer struct{ name string }

// doorman admits callers who present a credential of a kind that the endpoint takes.
type doorman struct{ asked int }

func (d *doorman) Admit(r *http.Request, e *endpoint.Endpoint, sent endpoint.Sent) (context.Context, any, error) {
	d.asked++
	for _, c := range e.Credentials() {
		if sent.Credentials[c] == "good" || c == endpoint.AccessToken && r.Header.Get("PRIVATE-TOKEN") == "good" {
			return r.Context(), bearer{string(c)}, nil
		}
	}
	return nil, nil, endpoint.Unauthorized("")
}

func (*doorman) Check(*endpoint.Endpoint) error { return nil }

func TestCredential_isReadFromParameters(t *testing.T) {
	type request struct {
		Ref string `param:"ref"`
	}
	type rawRequest struct {
		Ref  string        `param:"ref"`
		Body endpoint.File `body:"text/plain"`
	}
	type formRequest struct {
		Ref  string        `param:"ref"`
		File endpoint.File `param:"file"`
	}
	who := func(_ context.Context, b bearer, r *request) (string, error) { return b.name + " " + r.Ref, nil }
	table := endpoint.Table{
		endpoint.Post("/trigger", who).Takes(endpoint.TriggerToken, endpoint.JobToken).Carries(endpoint.TriggerToken, "token"),
		endpoint.Get("/job", who).Takes(endpoint.AccessToken, endpoint.JobToken).Carries(endpoint.JobToken, "job_token"),
		endpoint.Post("/usual", who),
		endpoint.Post("/envelopes", func(_ context.Context, b bearer, r *rawRequest) (string, error) {
			return fmt.Sprint(b.name, " ", r.Ref, " ", r.Body.Size), nil
		}).MaxBody(1<<20).Takes(endpoint.ClientKey).Carries(endpoint.ClientKey, "key"),
		endpoint.Post("/files", func(_ context.Context, b bearer, r *formRequest) (string, error) {
			return fmt.Sprint(b.name, " ", r.Ref, " ", r.File.Size), nil
		}).Takes(endpoint.JobToken).Carries(endpoint.JobToken, "token").Uploads(1<<20, 1<<20),
	}
	const raw, multipart = "text/plain", "multipart/form-data; boundary=x"
	const fields = "--x\r\nContent-Disposition: form-data; name=\"ref\"\r\n\r\nmain\r\n" +
		"--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\nabc\r\n--x--\r\n"
	const form, json = "application/x-www-form-urlencoded", "application/json"
	tests := map[string]struct {
		request, kind, body string
		want                string
		asked               int
	}{
		"in a form":                      {"POST /trigger", form, "token=good&ref=main", `201 "trigger_token main"`, 1},
		"in JSON":                        {"POST /trigger", json, `{"token":"good","ref":"main"}`, `201 "trigger_token main"`, 1},
		"in the query":                   {"POST /trigger?token=good&ref=main", "", "", `201 "trigger_token main"`, 1},
		"in the query of a GET":          {"GET /job?job_token=good&ref=main", "", "", `200 "job_token main"`, 1},
		"an invalid one":                 {"POST /trigger", form, "token=bad", `401 {"message":"401 Unauthorized"}`, 1},
		"none":                           {"POST /trigger", form, "ref=main", `401 {"message":"401 Unauthorized"}`, 1},
		"one of another kind":            {"POST /trigger", form, "job_token=good", `401 {"message":"401 Unauthorized"}`, 1},
		"one that is not a text":         {"POST /trigger", json, `{"token":["good"]}`, `400 {"error":"token is invalid"}`, 0},
		"in a long body":                 {"POST /trigger", form, "token=good&ref=" + strings.Repeat("x", 64<<10), `413 {"message":"413 Request Entity Too Large"}`, 0},
		"in the query beside a raw body": {"POST /envelopes?key=good&ref=main", raw, strings.Repeat("x", 100<<10), `201 "client_key main 102400"`, 1},
		"not in a raw body":              {"POST /envelopes", raw, "key=good", `401 {"message":"401 Unauthorized"}`, 1},
		"in the query beside files":      {"POST /files?token=good", multipart, fields, `201 "job_token main 3"`, 1},
		"not among files":                {"POST /files", multipart, strings.ReplaceAll(fields, "ref", "token"), `401 {"message":"401 Unauthorized"}`, 1},
		"in an endpoint without one":     {"POST /usual", form, "token=good", `401 {"message":"401 Unauthorized"}`, 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			d := &doorman{}
			h := endpoint.NewHandler(endpoint.Options{Guard: d, Log: logr.Discard(), BaseURL: &url.URL{}}, table)
			method, target, _ := strings.Cut(tt.request, " ")
			r := httptest.NewRequestWithContext(t.Context(), method, target, strings.NewReader(tt.body))
			if tt.kind != "" {
				r.Header.Set("Content-Type", tt.kind)
			} else {
				r.Body, r.ContentLength = http.NoBody, 0
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if got := fmt.Sprintf("%d %s", w.Code, w.Body); got != tt.want || d.asked != tt.asked {
				t.Errorf("got %s, and the guard was asked %d times; want %s, %d", got, d.asked, tt.want, tt.asked)
			}
		})
	}
}

// The server must not read the body of a request that it refuses.
func TestBody_isNotReadForUnknownCaller(t *testing.T) {
	who := func(_ context.Context, b bearer, _ *endpoint.None) (string, error) { return b.name, nil }
	h := endpoint.NewHandler(endpoint.Options{Guard: &doorman{}, Log: logr.Discard(), BaseURL: &url.URL{}}, endpoint.Table{endpoint.Post("/usual", who)})
	body := &untouched{t}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/usual", body))
	if w.Code != http.StatusUnauthorized {
		t.Errorf("got %d", w.Code)
	}
}

// untouched is a body that fails the test if it is read.
type untouched struct{ t *testing.T }

func (u *untouched) Read([]byte) (int, error) {
	u.t.Error("the body was read")
	return 0, http.ErrBodyReadAfterClose
}
