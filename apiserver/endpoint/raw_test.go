package endpoint_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"

	"github.com/forgeplane/forgeplane/apiserver/endpoint"
)

type envelope struct {
	ID   int64         `param:"id"`
	Key  string        `param:"key" required:""`
	Body endpoint.File `body:"application/x-envelope,text/plain"`
}

// piece is a piece of a trace.
type piece struct {
	JobID int64         `param:"job_id"`
	Piece endpoint.File `body:"*/*" range:""`
}

// trace is the text that was sent for a job, piece by piece.
type trace struct{ text []byte }

func (t *trace) append(_ context.Context, _ endpoint.None, r *piece) (endpoint.Reply[endpoint.None], error) {
	if r.Piece.Offset != int64(len(t.text)) {
		return endpoint.Reply[endpoint.None]{}, endpoint.RangeNotSatisfiable(int64(len(t.text)))
	}
	more, err := io.ReadAll(r.Piece.Open())
	t.text = append(t.text, more...)
	return endpoint.Reply[endpoint.None]{Header: endpoint.Stored(int64(len(t.text)))}, err
}

const sentBytes, unzippedBytes = 100 << 10, 1 << 20

func rawTable(traced *trace) endpoint.Table {
	return endpoint.Table{
		endpoint.Post("/envelopes/{id}", func(_ context.Context, _ endpoint.None, r *envelope) (string, error) {
			text, err := io.ReadAll(r.Body.Open())
			return fmt.Sprintf("%d %s %s %d %.20s", r.ID, r.Key, r.Body.Type, r.Body.Size, text), err
		}).MaxBody(sentBytes).Unzipped(unzippedBytes),
		endpoint.Patch("/jobs/{job_id}/trace", traced.append).Status(http.StatusAccepted).Answers(endpoint.Answer{
			Status: http.StatusAccepted, Doc: "It is appended.", Headers: map[string]string{"Range": "How much there is."},
		}),
	}
}

func zipped(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestRawBodies_reachTheHandler(t *testing.T) {
	large := `{"a":1}` + "\n" + strings.Repeat("x", 80<<10)
	whole := zipped(t, large)
	const tooLarge = `{"message":"413 Request Entity Too Large"}`
	for name, tt := range map[string]struct {
		query, contentType, encoding, body string
		status                             int
		want                               string
	}{
		"a small one":                   {"?key=k", "text/plain", "", "[1,2]", 201, `"7 k text/plain 5 [1,2]"`},
		"a large one":                   {"?key=k", "application/x-envelope", "", large, 201, `"7 k application/x-envelope 81928 {\"a\":1}\nxxxxxxxxxxxx"`},
		"a zipped one":                  {"?key=k", "text/plain; charset=utf-8", "gzip", whole, 201, `"7 k text/plain 81928 {\"a\":1}\nxxxxxxxxxxxx"`},
		"the encoding identity":         {"?key=k", "text/plain", "identity", "abc", 201, `"7 k text/plain 3 abc"`},
		"an empty one":                  {"?key=k", "text/plain", "", "", 201, `"7 k text/plain 0 "`},
		"parameters in the body":        {"", "text/plain", "", "key=k", 400, `{"error":"key is missing"}`},
		"another type":                  {"?key=k", "application/json", "", "{}", 415, `{"error":"The provided content-type 'application/json' is not supported."}`},
		"no type":                       {"?key=k", "", "", "{}", 415, `{"error":"The provided content-type '' is not supported."}`},
		"another encoding":              {"?key=k", "text/plain", "br", "abc", 415, `{"error":"The provided content-encoding 'br' is not supported."}`},
		"one that is not zipped":        {"?key=k", "text/plain", "gzip", "abcdefghijklmnop", 400, `{"error":"the body is not valid gzip"}`},
		"a zipped one that breaks off":  {"?key=k", "text/plain", "gzip", whole[:len(whole)-10], 400, `{"error":"the body is not valid gzip"}`},
		"an empty one as gzip":          {"?key=k", "text/plain", "gzip", "", 400, `{"error":"the body is not valid gzip"}`},
		"one that is too long":          {"?key=k", "text/plain", "", strings.Repeat("x", sentBytes+1), 413, tooLarge},
		"one that is just short enough": {"?key=k", "text/plain", "", strings.Repeat("x", sentBytes), 201, `"7 k text/plain 102400 xxxxxxxxxxxxxxxxxxxx"`},
		"zipped, just short enough":     {"?key=k", "text/plain", "gzip", zipped(t, strings.Repeat("x", unzippedBytes)), 201, `"7 k text/plain 1048576 xxxxxxxxxxxxxxxxxxxx"`},
		"zipped, and too long unzipped": {"?key=k", "text/plain", "gzip", zipped(t, strings.Repeat("x", unzippedBytes+1)), 413, tooLarge},
		"zipped, and too long as sent":  {"?key=k", "text/plain", "gzip", zipped(t, noise(sentBytes)), 413, tooLarge},
		"a bomb":                        {"?key=k", "text/plain", "x-gzip", zipped(t, strings.Repeat("x", 16<<20)), 413, tooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			for _, length := range []int64{int64(len(tt.body)), -1} {
				memory := &scarce{}
				r := httptest.NewRequest(http.MethodPost, "/envelopes/7"+tt.query, strings.NewReader(tt.body))
				r.Header.Set("Content-Type", tt.contentType)
				r.Header.Set("Content-Encoding", tt.encoding)
				r.ContentLength = length
				w := send(t, rawTable(&trace{}), memory, r)
				if w.Code != tt.status || w.Body.String() != tt.want || memory.waited != 0 {
					t.Errorf("length %d: got %d %s, want %d %s; waited %d times for memory", length, w.Code, w.Body, tt.status, tt.want, memory.waited)
				}
			}
		})
	}
}

func TestRawBodies_canBePiecesOfAWhole(t *testing.T) {
	traced := &trace{}
	table := rawTable(traced)
	for _, tt := range []struct {
		sent, body string
		status     int
		want, is   string
	}{
		{"0-4", "hello", 202, "", "0-5"},
		{"5-10", " world", 202, "", "0-11"},
		{"0-4", "hello", 416, `{"error":"416 Range Not Satisfiable"}`, "0-11"},
		{"20-24", "hello", 416, `{"error":"416 Range Not Satisfiable"}`, "0-11"},
		{"bytes 11-11/12", "!", 202, "", "0-12"},
		{"12-13", "!", 202, "", "0-13"}, // from a client that counts the end as exclusive
		{"13-13", "", 202, "", "0-13"},
		{"", "hello", 400, `{"error":"400 Missing header Content-Range"}`, ""},
		{"hello", "hello", 400, `{"error":"Content-Range is invalid"}`, ""},
		{"-4", "hello", 400, `{"error":"Content-Range is invalid"}`, ""},
		{"4-", "hello", 400, `{"error":"Content-Range is invalid"}`, ""},
		{"-1-4", "hello", 400, `{"error":"Content-Range is invalid"}`, ""},
		{"99999999999999999999-1", "hello", 400, `{"error":"Content-Range is invalid"}`, ""},
	} {
		r := httptest.NewRequest(http.MethodPatch, "/jobs/3/trace", strings.NewReader(tt.body))
		r.Header.Set("Content-Type", "text/plain")
		r.Header.Set("Content-Range", tt.sent)
		if w := serve(t, table, r); w.Code != tt.status || w.Body.String() != tt.want || w.Header().Get("Range") != tt.is {
			t.Errorf("%q: got %d %s, Range %q", tt.sent, w.Code, w.Body, w.Header().Get("Range"))
		}
	}
	if string(traced.text) != "hello world!!" {
		t.Errorf("got %q", traced.text)
	}
}

func TestOpenAPI_describesRawBodies(t *testing.T) {
	var document any
	if err := json.Unmarshal(newHandler(rawTable(&trace{})).OpenAPI(), &document); err != nil {
		t.Fatal(err)
	}
	const post, patch = "paths /envelopes/{id} post ", "paths /jobs/{job_id}/trace patch "
	for place, want := range map[string]string{
		post + "requestBody":          `{"required":true,"content":{"application/x-envelope":{},"text/plain":{}}}`,
		post + "parameters key":       `{"name":"key","in":"query","required":true,"schema":{"type":"string"}}`,
		post + "responses 416":        `null`,
		patch + "requestBody content": `{"*/*":{}}`,
		patch + "responses 416":       `{"$ref":"#/components/responses/RequestedRangeNotSatisfiable"}`,
		patch + "responses 202":       `{"description":"It is appended.","headers":{"Range":{"description":"How much there is.","schema":{"type":"string"}}}}`,
		patch + "parameters Content-Range": `{"name":"Content-Range","in":"header","required":true,"schema":{"type":"string","pattern":"^(bytes )?\\d+-\\d+(/.*)?$"},
			"description":"Where the body belongs in the whole: its first and last byte, as in 0-99."}`,
	} {
		if got := find(document, place); !equalJSON(t, got, want) {
			shown, _ := json.Marshal(got)
			t.Errorf("%s:\ngot  %s\nwant %s", place, shown, want)
		}
	}
}

// TestRawBodies_canTakeMinutesIfFastEnough runs with a fake clock, so that a minute takes no time.
func TestRawBodies_canTakeMinutesIfFastEnough(t *testing.T) {
	const size = 8 << 20
	for _, tt := range []struct {
		name   string
		second int // bytes per second that the client sends
		status int
	}{
		{"a client that is fast enough, for which it takes minutes", 96 << 10, http.StatusCreated},
		{"a client that is too slow", 32 << 10, http.StatusRequestTimeout},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				table := endpoint.Table{endpoint.Post("/raw", func(_ context.Context, _ endpoint.None, r *struct {
					Body endpoint.File `body:"*/*"`
				}) (int64, error) {
					return r.Body.Size, nil
				}).MaxBody(size)}
				server := &http.Server{Handler: endpoint.NewHandler(endpoint.Options{Guard: open{}, Log: logr.Discard(), Spool: t.TempDir()}, table)}
				accepted, served := make(connections, 1), make(chan error)
				go func() { served <- server.Serve(accepted) }()
				client, behind := net.Pipe()
				accepted <- behind
				sent := make(chan struct{})
				go func() {
					defer close(sent)
					_, err := fmt.Fprintf(client, "POST /raw HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n", size)
					for left := size; left > 0 && err == nil; left -= tt.second {
						_, err = client.Write(make([]byte, min(left, tt.second)))
						<-time.After(time.Second)
					}
				}()
				answer, err := http.ReadResponse(bufio.NewReader(client), nil)
				if err != nil {
					t.Fatal(err)
				}
				body, err := io.ReadAll(answer.Body)
				if err != nil || answer.StatusCode != tt.status {
					t.Errorf("got %d %s, %v", answer.StatusCode, body, err)
				}
				_ = answer.Body.Close()
				_ = client.Close()
				<-sent
				close(accepted)
				if err := <-served; err == nil {
					t.Error("the server ended without an error")
				}
			})
		})
	}
}
