package endpoint_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-logr/logr"

	"github.com/forgeplane/forgeplane/apiserver/endpoint"
)

// counted is a text that counts how often it is encoded.
type counted struct {
	Text  string
	times *int
}

// MarshalJSON implements json.Marshaler.
func (c counted) MarshalJSON() ([]byte, error) {
	*c.times++
	return json.Marshal(c.Text)
}

func TestKept_isEncodedOnce(t *testing.T) {
	times := 0
	text := strings.Repeat("é\n", 100_000)
	one := endpoint.Keep(counted{text, &times})
	m := &scarce{}
	h := endpoint.NewHandler(endpoint.Options{Guard: open{}, Log: logr.Discard(), BaseURL: mustParse(t, "https://forge.example/api/v4"), Memory: m},
		endpoint.Table{endpoint.Get("/kept", func(context.Context, endpoint.None, *endpoint.None) (*endpoint.Kept[counted], error) { return one, nil })})
	get := func(tag string) *httptest.ResponseRecorder {
		m.most = 0
		r, w := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/kept", http.NoBody), httptest.NewRecorder()
		r.Header.Set("If-None-Match", tag)
		h.ServeHTTP(w, r)
		if m.held != 0 {
			t.Errorf("%d bytes are still held", m.held)
		}
		return w
	}
	first := get("")
	if got := ""; json.Unmarshal(first.Body.Bytes(), &got) != nil || got != text {
		t.Fatalf("the answer is %d %.100s", first.Code, first.Body)
	}
	size := int64(first.Body.Len())
	if m.most < 3*size || one.Size() < size {
		t.Errorf("%d bytes were held, and the maximum size is %d, of an answer of %d", m.most, one.Size(), size)
	}
	again := get("")
	if again.Body.String() != first.Body.String() || again.Header().Get("ETag") != first.Header().Get("ETag") || m.most != size {
		t.Errorf("the second answer is %d %v %.100s, and %d bytes were held", again.Code, again.Header(), again.Body, m.most)
	}
	if w := get(first.Header().Get("ETag")); w.Code != http.StatusNotModified || w.Body.Len() != 0 {
		t.Errorf("the answer with the same ETag is %d %.100s", w.Code, w.Body)
	}
	if times != 1 {
		t.Errorf("it was encoded %d times", times)
	}
}

func TestOpenAPI_describesKeptAnswer(t *testing.T) {
	var document any
	table := endpoint.Table{endpoint.Get("/kept", func(context.Context, endpoint.None, *endpoint.None) (*endpoint.Kept[export], error) { return nil, nil })}
	if err := json.Unmarshal(newHandler(table).OpenAPI(), &document); err != nil {
		t.Fatal(err)
	}
	const want = `{"application/json":{"schema":{"$ref":"#/components/schemas/Export"}}}`
	if got := find(document, "paths /kept get responses 200 content"); !equalJSON(t, got, want) {
		t.Errorf("the answer is described as %v", got)
	}
}
