package endpoint_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/forgeplane/forgeplane/apiserver/endpoint"
)

type fileRequest struct {
	Fail string `param:"fail"`
}

const fileText = "the first half, and the second"

// files serves a text in two pieces. If a request asks for it, writing fails before, between or after the pieces.
var files = endpoint.Table{endpoint.Get("/file", func(_ context.Context, _ endpoint.None, r *fileRequest) (endpoint.Content, error) {
	failure := errors.New("a disk was lost")
	return endpoint.Content{
		Type: "text/plain; charset=utf-8", Size: int64(len(fileText)), Header: http.Header{"Cache-Control": {"no-store"}},
		Write: func(w io.Writer) error {
			switch r.Fail {
			case "before":
				return failure
			case "refused":
				return endpoint.NotFound("File")
			}
			if _, err := io.WriteString(w, fileText[:15]); err != nil {
				return err
			}
			if r.Fail == "between" {
				return failure
			}
			_, err := io.WriteString(w, fileText[15:])
			return err
		},
	}, nil
})}

func TestContent_isSentAsFile(t *testing.T) {
	const failed = `{"message":"500 Internal Server Error","error_description":"The reason is in the log, with the request id r1. Please tell an administrator."}`
	tests := []struct {
		method, fail  string
		status        int
		kind, body    string
		length, cache string
	}{
		{"GET", "", 200, "text/plain; charset=utf-8", fileText, "30", "no-store"},
		{"HEAD", "", 200, "text/plain; charset=utf-8", "", "30", "no-store"},
		{"HEAD", "before", 200, "text/plain; charset=utf-8", "", "30", "no-store"},
		{"GET", "before", 500, "application/json", failed, "141", "max-age=0, private, must-revalidate"},
		{"GET", "refused", 404, "application/json", `{"message":"404 File Not Found"}`, "32", "max-age=0, private, must-revalidate"},
	}
	for _, tt := range tests {
		t.Run(tt.method+" "+tt.fail, func(t *testing.T) {
			w := httptest.NewRecorder()
			r := httptest.NewRequest(tt.method, "/file?fail="+tt.fail, http.NoBody)
			r.Header.Set("X-Request-Id", "r1")
			newHandler(files).ServeHTTP(w, r)
			got := fmt.Sprint(w.Code, w.Header().Get("Content-Type"), w.Body, w.Header().Get("Content-Length"), w.Header().Get("Cache-Control"))
			if want := fmt.Sprint(tt.status, tt.kind, tt.body, tt.length, tt.cache); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
	serve(t, files, httptest.NewRequest(http.MethodGet, "/file", http.NoBody)) // checks the answer against the OpenAPI document
}

func TestContent_failsVisiblyWhenItBreaksOff(t *testing.T) {
	address, _ := start(t, generous, generous, files)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/file?fail=between", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		return // before the headers were sent
	}
	defer a.Body.Close()
	if body, err := io.ReadAll(a.Body); err == nil {
		t.Errorf("the client has taken %q for the whole", body)
	}
}

func TestContent_cutsOffClientThatStopsReading(t *testing.T) {
	ended := make(chan error, 1)
	large := endpoint.Table{endpoint.Get("/file", func(context.Context, endpoint.None, *endpoint.None) (endpoint.Content, error) {
		return endpoint.Content{Type: "text/plain", Size: -1, Write: func(w io.Writer) error {
			piece := strings.Repeat("x", 1<<20)
			for {
				if _, err := io.WriteString(w, piece); err != nil {
					ended <- err
					return err
				}
			}
		}}, nil
	})}
	address, _ := start(t, generous, brief, large)
	c := dial(t, address)
	if _, err := io.WriteString(c, "GET /file HTTP/1.1\r\nHost: forge.example\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(c).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil {
		t.Error("the file has an end")
	}
}

// page is a response that is streamed if it is large.
type page struct {
	Text string `json:"text"`
}

func (p page) Stream() (endpoint.Content, bool) {
	return endpoint.Content{Type: "application/json", Size: -1, Write: func(w io.Writer) error {
		_, err := io.WriteString(w, `{"text":"streamed"}`)
		return err
	}}, p.Text == "large"
}

func TestResponse_isStreamedIfLarge(t *testing.T) {
	pages := endpoint.Table{endpoint.Get("/page", func(_ context.Context, _ endpoint.None, r *fileRequest) (page, error) { return page{r.Fail}, nil })}
	for fail, want := range map[string]string{"small": `{"text":"small"}`, "large": `{"text":"streamed"}`} {
		w := httptest.NewRecorder()
		newHandler(pages).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/page?fail="+fail, http.NoBody))
		if w.Code != http.StatusOK || w.Body.String() != want || w.Header().Get("Content-Type") != "application/json" {
			t.Errorf("%s: got %d %s of type %s", fail, w.Code, w.Body, w.Header().Get("Content-Type"))
		}
	}
}

func TestDownload_isRefusedToPagesOfOtherSites(t *testing.T) {
	download := endpoint.Table{endpoint.Get("/file", func(context.Context, endpoint.None, *fileRequest) (endpoint.Content, error) {
		return endpoint.Content{Type: "text/plain", Size: 0, Write: func(io.Writer) error { return nil }}, nil
	}).Download()}
	for _, tt := range []struct {
		site, mode string
		status     int
	}{
		{"", "", 200}, {"cross-site", "navigate", 200}, {"same-origin", "cors", 200}, {"none", "navigate", 200},
		{"cross-site", "no-cors", 406}, {"cross-site", "cors", 406}, {"cross-site", "", 406},
	} {
		r := httptest.NewRequest(http.MethodGet, "/file", http.NoBody)
		r.Header.Set("Sec-Fetch-Site", tt.site)
		r.Header.Set("Sec-Fetch-Mode", tt.mode)
		if w := serve(t, download, r); w.Code != tt.status || w.Code == 406 && w.Body.String() != `{"message":"406 Not Acceptable"}` {
			t.Errorf("%+v: got %d %s", tt, w.Code, w.Body)
		}
	}
}
