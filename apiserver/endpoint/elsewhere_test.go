package endpoint_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/forgeplane/forgeplane/apiserver/endpoint"
)

type fetching struct {
	URL  string `param:"url"`
	Fail bool   `param:"fail"`
}

var fetched = endpoint.Table{endpoint.Get("/archive", func(_ context.Context, _ endpoint.None, r *fetching) (endpoint.Elsewhere, error) {
	return endpoint.Elsewhere{URL: r.URL, Content: func() (endpoint.Content, error) {
		if r.Fail {
			return endpoint.Content{}, endpoint.NotFound("File")
		}
		return endpoint.Content{Type: "application/zip", Size: 3, Write: func(w io.Writer) error {
			_, err := io.WriteString(w, "zip")
			return err
		}}, nil
	}}, nil
})}

func TestElsewhere_redirectsUnlessRedirectsAreLost(t *testing.T) {
	const address = "https://store.example/a?signed=1"
	for name, tt := range map[string]struct {
		method, query    string
		stay             bool
		status           int
		body, to, length string
	}{
		"a redirect":                             {http.MethodGet, "?url=https%3A%2F%2Fstore.example%2Fa%3Fsigned%3D1", false, 302, "", address, ""},
		"a redirect of HEAD":                     {http.MethodHead, "?url=https%3A%2F%2Fstore.example%2Fa%3Fsigned%3D1", false, 302, "", address, ""},
		"no redirect if it would be lost":        {http.MethodGet, "?url=https%3A%2F%2Fstore.example%2Fa%3Fsigned%3D1", true, 200, "zip", "", "3"},
		"HEAD if a redirect would be lost":       {http.MethodHead, "?url=https%3A%2F%2Fstore.example%2Fa%3Fsigned%3D1", true, 200, "", "", "3"},
		"no other address":                       {http.MethodGet, "", false, 200, "zip", "", "3"},
		"no content":                             {http.MethodGet, "?fail=true", false, 404, `{"message":"404 File Not Found"}`, "", "32"},
		"no content if a redirect would be lost": {http.MethodGet, "?fail=true&url=x", true, 404, `{"message":"404 File Not Found"}`, "", "32"},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(tt.method, "/archive"+tt.query, http.NoBody)
			if tt.stay {
				r = r.WithContext(endpoint.WithoutRedirects(r.Context()))
			}
			w := serve(t, fetched, r)
			h := w.Header()
			if w.Code != tt.status || w.Body.String() != tt.body || h.Get("Location") != tt.to || h.Get("Content-Length") != tt.length {
				t.Errorf("got %d %s, %v", w.Code, w.Body, h)
			}
		})
	}
}

func TestOpenAPI_describesRedirects(t *testing.T) {
	var document any
	if err := json.Unmarshal(newHandler(fetched).OpenAPI(), &document); err != nil {
		t.Fatal(err)
	}
	const answers = "paths /archive get responses "
	for place, want := range map[string]string{
		answers + "200": `{"description":"OK","content":{"*/*":{}}}`,
		answers + "302": `{"description":"The content is at another address.","headers":{"Location":{"$ref":"#/components/headers/Location"}}}`,
	} {
		if got := find(document, place); !equalJSON(t, got, want) {
			shown, _ := json.Marshal(got)
			t.Errorf("%s:\ngot  %s\nwant %s", place, shown, want)
		}
	}
}

func TestContent_isSentPieceByPieceIfLive(t *testing.T) {
	seen := make(chan struct{})
	address, _ := start(t, generous, generous, endpoint.Table{
		endpoint.Get("/log", func(ctx context.Context, _ endpoint.None, _ *endpoint.None) (endpoint.Content, error) {
			return endpoint.Content{Type: "text/plain", Size: -1, Live: true, Write: func(w io.Writer) error {
				if _, err := io.WriteString(w, "one\n"); err != nil {
					return err
				}
				select {
				case <-seen: // the client received the first piece before the second was written
				case <-ctx.Done():
					return errors.New("the client has left")
				}
				_, err := io.WriteString(w, "two\n")
				return err
			}}, nil
		}),
	})
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/log", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = a.Body.Close() }()
	lines := bufio.NewReader(a.Body)
	for _, want := range []string{"one\n", "two\n"} {
		line, err := lines.ReadString('\n')
		if err != nil || line != want {
			t.Fatalf("got %q, %v", line, err)
		}
		if want == "one\n" {
			close(seen)
		}
	}
}
