package endpoint_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/endpoint/endpointtest"
	answers "github.com/forgeplane/forgeplane/apiserver/store"
	"github.com/forgeplane/forgeplane/internal/fair"
)

func mustParse(t *testing.T, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestConditional_refusesIfRecordWasChangedSince(t *testing.T) {
	changed := time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC)
	remove := func(ctx context.Context, _ endpoint.None, _ *endpoint.None) (endpoint.None, error) {
		if since := endpoint.UnmodifiedSince(ctx); !since.IsZero() && changed.After(since) {
			return endpoint.None{}, endpoint.PreconditionFailed()
		}
		return endpoint.None{}, nil
	}
	h := newHandler(endpoint.Table{endpoint.Delete("/labels/1", remove).Conditional(), endpoint.Delete("/labels/2", remove)})
	contract := endpointtest.Of(t, h)
	tests := []struct {
		path, sent string
		status     int
	}{
		{"/labels/1", "", 204},
		{"/labels/1", "Mon, 15 Jun 2026 12:00:00 GMT", 204},
		{"/labels/1", "Mon, 15 Jun 2026 11:59:59 GMT", 412},
		{"/labels/1", "Monday, 15-Jun-26 11:59:59 GMT", 412},
		{"/labels/1", "Mon Jun 15 11:59:59 2026", 412},
		{"/labels/1", "2026-06-15T11:59:59.999Z", 412},
		{"/labels/1", "2026-06-15T12:00:00.000Z", 204},
		{"/labels/1", "2026-06-15T14:00:00+02:30", 412},
		{"/labels/1", "yesterday", 204},
		{"/labels/1", "Mon, 15 Jun 2026 11:59:59 GMT, Mon, 15 Jun 2026 11:59:59 GMT", 204},
		{"/labels/2", "Mon, 15 Jun 2026 11:59:59 GMT", 204},
	}
	for _, tt := range tests {
		r := httptest.NewRequest(http.MethodDelete, tt.path, http.NoBody)
		r.Header.Set("If-Unmodified-Since", tt.sent)
		w := httptest.NewRecorder()
		contract.Handler(t, h).ServeHTTP(w, r)
		if w.Code != tt.status || tt.status == 412 && w.Body.String() != `{"message":"412 Precondition Failed"}` {
			t.Errorf("%s %q: got %d %s, want %d", tt.path, tt.sent, w.Code, w.Body, tt.status)
		}
	}
}

func TestTooManyRequests_hasTwoForms(t *testing.T) {
	refuse := func(err error) func(context.Context, endpoint.None, *endpoint.None) (endpoint.None, error) {
		return func(context.Context, endpoint.None, *endpoint.None) (endpoint.None, error) {
			return endpoint.None{}, err
		}
	}
	archive := endpoint.Get("/archive", refuse(endpoint.TooManyRequests("archive", 1500*time.Millisecond))).Limited(5, "archive")
	h := newHandler(endpoint.Table{archive, endpoint.Get("/any", refuse(endpoint.Throttled(time.Minute)))})
	if n, what := archive.Limit(); n != 5 || what != "archive" {
		t.Errorf("the limit is %d of %q", n, what)
	}
	contract := endpointtest.Of(t, h)
	for path, want := range map[string]struct{ wait, kind, body string }{
		"/archive": {"2", "application/json", `{"message":{"error":"This archive has been requested too many times. Try again later."}}`},
		"/any":     {"60", "text/plain", "Retry later\n"},
	} {
		w := httptest.NewRecorder()
		contract.Handler(t, h).ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, http.NoBody))
		if w.Code != 429 || w.Body.String() != want.body || w.Header().Get("Content-Type") != want.kind || w.Header().Get("Retry-After") != want.wait {
			t.Errorf("%s: got %d %q, %v", path, w.Code, w.Body, w.Header())
		}
	}
}

func TestMemory_limitsLongBodiesHeldAtOnce(t *testing.T) {
	begun, end := make(chan struct{}), make(chan struct{})
	type request struct {
		Text string `param:"text"`
	}
	hold := func(ctx context.Context, _ endpoint.None, r *request) (endpoint.None, error) {
		if r.Text[0] == 'h' {
			begun <- struct{}{}
			<-end
		}
		return endpoint.None{}, nil
	}
	const places, long, short = 4, 5 << 20, 32 << 10
	memory := fair.NewMemory("bodies", fair.Limits{Total: places * 3 * (long + short), Wait: time.Millisecond})
	h := endpoint.NewHandler(
		endpoint.Options{Guard: open{}, Log: logr.Discard(), BaseURL: mustParse(t, "https://forge.example/api/v4"), Memory: memory, Refused: answers.AnswerLimit},
		endpoint.Table{endpoint.Post("/commits", hold).MaxBody(6 << 20)},
	)
	contract := endpointtest.Of(t, h)
	callers := int64(0)
	post := func(kind string, size int, chunked ...bool) *httptest.ResponseRecorder {
		callers++
		ctx := fair.With(t.Context(), fair.User(callers))
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/commits", strings.NewReader(`{"text":"`+kind+strings.Repeat("x", size)+`"}`))
		if len(chunked) > 0 {
			r.ContentLength = -1
		}
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	held := make(chan int, places)
	for range places {
		go func() { held <- post("h", long).Code }()
		<-begun
	}
	busy := post("x", long)
	if err := contract.Check(http.MethodPost, "/commits", busy.Code, busy.Header(), busy.Body.Bytes()); err != nil || busy.Code != 503 || busy.Header().Get("Retry-After") != "10" {
		t.Errorf("one too many was answered with %d %s, %v (%v)", busy.Code, busy.Body, busy.Header(), err)
	}
	for _, chunked := range [][]bool{nil, {true}} {
		if code := post("x", short, chunked...).Code; code != 201 {
			t.Errorf("one of usual length was answered with %d", code)
		}
	}
	if code := post("x", 2*short, true).Code; code != 503 {
		t.Errorf("one too many of unknown length was answered with %d", code)
	}
	close(end)
	for range places {
		if code := <-held; code != 201 {
			t.Errorf("one that was held was answered with %d", code)
		}
	}
	for _, chunked := range [][]bool{nil, {true}} {
		if code := post("x", long, chunked...).Code; code != 201 {
			t.Errorf("one that came later was answered with %d", code)
		}
	}
}

func TestBusy_tellsClientsToRetry(t *testing.T) {
	type request struct{}
	noTime := errors.New("there was no time")
	h := endpoint.NewHandler(endpoint.Options{
		Guard: open{}, Log: logr.Discard(), BaseURL: mustParse(t, "https://forge.example/api/v4"),
		Refused: func(err error) *endpoint.Error {
			if errors.Is(err, noTime) {
				return endpoint.Busy(10 * time.Second)
			}
			return nil
		},
	}, endpoint.Table{endpoint.Get("/history", func(context.Context, endpoint.None, *request) (endpoint.None, error) {
		return endpoint.None{}, fmt.Errorf("walking: %w", noTime)
	})})
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/history", http.NoBody))
	if err := endpointtest.Of(t, h).Check(http.MethodGet, "/history", w.Code, w.Header(), w.Body.Bytes()); err != nil || w.Code != 503 || w.Header().Get("Retry-After") != "10" {
		t.Errorf("got %d %s, %v (%v)", w.Code, w.Body, w.Header(), err)
	}
}

func TestExceeded_explainsTheLimit(t *testing.T) {
	type request struct{}
	tooMuch := errors.New("too much")
	h := endpoint.NewHandler(endpoint.Options{
		Guard: open{}, Log: logr.Discard(), BaseURL: mustParse(t, "https://forge.example/api/v4"),
		Exceeded: func(err error) string {
			if errors.Is(err, tooMuch) {
				return "This takes more than 100% of what there is."
			}
			return ""
		},
	}, endpoint.Table{endpoint.Get("/history", func(context.Context, endpoint.None, *request) (endpoint.None, error) {
		return endpoint.None{}, fmt.Errorf("walking: %w", tooMuch)
	})})
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/history", http.NoBody))
	if w.Code != 413 || w.Body.String() != `{"message":"This takes more than 100% of what there is."}` {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
	if err := endpointtest.Of(t, h).Check(http.MethodGet, "/history", w.Code, w.Header(), w.Body.Bytes()); err != nil {
		t.Error(err)
	}
}

func TestOpenAPI_describesRateLimits(t *testing.T) {
	get := func(context.Context, endpoint.None, *endpoint.None) (endpoint.None, error) {
		return endpoint.None{}, nil
	}
	var document any
	if err := json.Unmarshal(newHandler(endpoint.Table{
		endpoint.Post("/trigger", get).Limited(5, "trigger").LimitedBy(endpoint.ByAddress, 60, "trigger").LimitedBy(endpoint.ByCredential, 30, "trigger"),
	}).OpenAPI(), &document); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"x-rate-limit": `{"requests":5,"seconds":60}`, "x-rate-limit-by-address": `{"requests":60,"seconds":60}`,
		"x-rate-limit-by-credential": `{"requests":30,"seconds":60}`,
	} {
		if got := find(document, "paths /trigger post "+name); !equalJSON(t, got, want) {
			t.Errorf("%s is %v, want %s", name, got, want)
		}
	}
}
