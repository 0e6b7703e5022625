package endpointtest

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/forgeplane/forgeplane/apiserver/endpoint"
)

// Of returns the contract of a handler. It ends the test if the OpenAPI document is not valid.
func Of(t testing.TB, h *endpoint.Handler) *Contract {
	t.Helper()
	c, err := Load(h.OpenAPI())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Handler serves requests with next, and fails the test if an answer does not match the document.
func (c *Contract) Handler(t testing.TB, next http.Handler) http.Handler {
	t.Helper()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := httptest.NewRecorder()
		next.ServeHTTP(answer, r)
		c.check(t, r.Method, r.URL.EscapedPath(), answer.Code, answer.Header(), answer.Body.Bytes())
		for name, values := range answer.Header() {
			w.Header()[name] = values
		}
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes())
	})
}

// Transport sends requests with next, and fails the test if an answer does not match the document. Requests outside the prefix, such as
// /api/v4, are not checked.
func (c *Contract) Transport(t testing.TB, prefix string, next http.RoundTripper) http.RoundTripper {
	t.Helper()
	return transport(func(r *http.Request) (*http.Response, error) {
		answer, err := next.RoundTrip(r)
		path, within := strings.CutPrefix(r.URL.EscapedPath(), prefix)
		if err != nil || !within {
			return answer, err
		}
		body, err := io.ReadAll(answer.Body)
		if err := answer.Body.Close(); err != nil {
			return nil, err
		}
		if err != nil {
			return nil, err
		}
		c.check(t, r.Method, path, answer.StatusCode, answer.Header, body)
		answer.Body = io.NopCloser(bytes.NewReader(body))
		return answer, nil
	})
}

func (c *Contract) check(t testing.TB, method, path string, status int, h http.Header, body []byte) {
	t.Helper()
	if err := c.Check(method, path, status, h, body); err != nil {
		t.Errorf("%s %s: %v", method, path, err)
	}
}

// transport is a function that implements http.RoundTripper.
type transport func(r *http.Request) (*http.Response, error)

func (send transport) RoundTrip(r *http.Request) (*http.Response, error) { return send(r) }
