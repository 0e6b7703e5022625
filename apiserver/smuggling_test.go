package apiserver

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	"k8s.io/utils/clock"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/family"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
)

// answerTimeout ends tests that fail.
const answerTimeout = 10 * time.Second

// listen serves the REST API in the same way as the forge, and returns the address.
func listen(t *testing.T, w *world) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := newListener(Options{Log: testr.New(t), Kit: family.Kit{Clock: clock.RealClock{}}})
	s.handler = split(w.handler, http.NotFoundHandler(), http.NotFoundHandler(), http.NotFoundHandler(), http.NotFoundHandler())
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.serve(ctx, listener) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return listener.Addr().String()
}

// say sends raw bytes, and returns the statuses of all answers.
func say(t *testing.T, address, raw string) []int {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(answerTimeout)); err != nil {
		t.Fatal(err)
	}
	// An error is possible, because the server can answer and close the connection before it has read everything. After CloseWrite, the server
	// closes a connection that is still open.
	_, _ = io.WriteString(conn, raw)
	_ = conn.(*net.TCPConn).CloseWrite()
	var statuses []int
	for from := bufio.NewReader(conn); ; {
		answer, err := http.ReadResponse(from, nil)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || isReset(err) {
			return statuses
		}
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.Copy(io.Discard, answer.Body)
		_ = answer.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		statuses = append(statuses, answer.StatusCode)
	}
}

func isReset(err error) bool {
	var failed *net.OpError
	return errors.As(err, &failed) && !failed.Timeout()
}

func TestMalformedRequests_cannotSmuggleOthers(t *testing.T) {
	const (
		line    = "POST /api/v4/projects/10/protected_branches HTTP/1.1\r\nHost: a\r\n"
		token   = "PRIVATE-TOKEN: $TOKEN\r\n"
		json    = "Content-Type: application/json\r\n"
		body    = `{"name":"x"}` // 12 bytes
		another = "DELETE /api/v4/projects/10/protected_branches/main HTTP/1.1\r\nHost: a\r\n\r\n"
	)
	// A request that is not read to its end has exactly one answer, because the bytes that follow must not count as a request. The HTTP server
	// answers requests that do not reach the handler, among them those with 501 and 505.
	tests := []struct{ name, raw, want string }{
		{"Content-Length and Transfer-Encoding", line + token + json + "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + another, "400"},
		{"Transfer-Encoding and a longer length", line + token + json + "Transfer-Encoding: chunked\r\nContent-Length: 500\r\n\r\n0\r\n\r\n" + another, "400"},
		{"both from nobody", line + json + "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + another, "404"},
		{"both to nowhere", "POST /api/v4/nowhere HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + another, "404"},
		{"good chunks", line + token + json + "Transfer-Encoding: chunked\r\n\r\nc\r\n" + body + "\r\n0\r\n\r\n", "201"},
		{"two lengths", line + token + json + "Content-Length: 12\r\nContent-Length: 0\r\n\r\n" + body + another, "400"},
		{"two lengths in one", line + token + json + "Content-Length: 12, 0\r\n\r\n" + body + another, "400"},
		{"a length with a sign", line + token + json + "Content-Length: +12\r\n\r\n" + body, "400"},
		{"a negative length", line + token + json + "Content-Length: -1\r\n\r\n" + body, "400"},
		{"a length in hexadecimal", line + token + json + "Content-Length: 0xc\r\n\r\n" + body, "400"},
		{"a huge length", line + token + json + "Content-Length: 99999999999999999999\r\n\r\n" + body, "400"},
		{"a length that is longer than what comes", line + token + json + "Content-Length: 500\r\n\r\n" + body, "400"},
		{"a space before the colon", line + token + json + "Transfer-Encoding : chunked\r\nContent-Length: 12\r\n\r\n" + body, "400"},
		{"an unknown Transfer-Encoding", line + token + json + "Transfer-Encoding: identity\r\n\r\n" + body, "501"},
		{"a Transfer-Encoding twice", line + token + json + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "501"},
		{"a Transfer-Encoding of two", line + token + json + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", "501"},
		{"a Transfer-Encoding after a vertical tab", line + token + json + "Transfer-Encoding: \x0bchunked\r\nContent-Length: 12\r\n\r\n" + body, "400"},
		{"a chunk that is longer than it says", line + token + json + "Transfer-Encoding: chunked\r\n\r\n1\r\n" + body + "\r\n0\r\n\r\n", "400"},
		{"a chunk of a negative size", line + token + json + "Transfer-Encoding: chunked\r\n\r\n-1\r\n" + body + "\r\n0\r\n\r\n", "400"},
		{"a chunk of a huge size", line + token + json + "Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n" + body + "\r\n0\r\n\r\n", "400"},
		{"a chunk whose size ends in a bare LF", line + token + json + "Transfer-Encoding: chunked\r\n\r\nc\n" + body + "\n0\n\n", "400"},
		{"bare LF", strings.ReplaceAll(line+json+"Content-Length: 12\r\n\r\n", "\r\n", "\n") + body, "404"},
		{"bare CR", strings.ReplaceAll(line+json+"Content-Length: 12\r\n\r\n", "\r\n", "\r") + body, "400"},
		// HTTP lets a server decide whether to accept folded headers. This one does.
		{"a header that is folded", line + json + "PRIVATE-TOKEN:\r\n $TOKEN\r\nContent-Length: 12\r\n\r\n" + body, "201"},
		{"a token that is folded in the middle", line + json + "PRIVATE-TOKEN: fpat-of-the\r\n -user\r\nContent-Length: 12\r\n\r\n" + body, "401"},
		{"no host", "POST /api/v4/projects HTTP/1.1\r\n" + token + json + "\r\n", "400"},
		{"two hosts", line + token + json + "Host: b\r\nContent-Length: 12\r\n\r\n" + body, "400"},
		{"a NUL in a header", line + json + "PRIVATE-TOKEN: a\x00b\r\nContent-Length: 12\r\n\r\n" + body, "400"},
		{"a header without a name", line + token + ": a\r\nContent-Length: 12\r\n\r\n" + body, "400"},
		{"a header with a space in its name", line + token + "A B: a\r\nContent-Length: 12\r\n\r\n" + body, "400"},
		{"a header that is too long", line + token + "A: " + strings.Repeat("a", 200_000) + "\r\n\r\n", "431"},
		{"a line that is too long", "GET /api/v4/projects/" + strings.Repeat("a", 200_000) + " HTTP/1.1\r\nHost: a\r\n\r\n", "431"},
		{"HTTP 0.9", "GET /api/v4/user\r\n", "400"},
		{"an unknown version", "GET /api/v4/user HTTP/9.9\r\nHost: a\r\n\r\n", "505"},
		{"a path that is not escaped", "GET /api/v4/projects/%zz HTTP/1.1\r\nHost: a\r\n" + token + "\r\n", "400"},
		{"a path with a NUL", "GET /api/v4/projects/a\x00b HTTP/1.1\r\nHost: a\r\n" + token + "\r\n", "400"},
		{"a path with a space", "GET /api/v4/projects/a b HTTP/1.1\r\nHost: a\r\n" + token + "\r\n", "400"},
		{"a path with bytes", "GET /api/v4/projects/\xff\xfe HTTP/1.1\r\nHost: a\r\n" + token + "\r\n", "404"},
		{"another address", "GET http://elsewhere.example/api/v4/user HTTP/1.1\r\nHost: a\r\n\r\n", "401"},
		{"a star", "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", "200"},
		{"CONNECT", "CONNECT elsewhere.example:80 HTTP/1.1\r\nHost: a\r\n\r\n", "404"},
		{"an unknown method", "FLY /api/v4/projects HTTP/1.1\r\nHost: a\r\n\r\n", "405"},
		{"TRACE", "TRACE /api/v4/projects HTTP/1.1\r\nHost: a\r\n" + token + "\r\n", "405"},
		{"HTTP 2 without asking", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "404"},
		{"TLS", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "400"},
		{"nothing but line ends", strings.Repeat("\r\n", 1000), "400"},
		{"nothing", "", ""},
	}
	w := newWorld(t, v1alpha1.VisibilityPrivate)
	address := listen(t, w)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			raw := strings.ReplaceAll(tt.raw, "$TOKEN", familytest.Value(member("project", v1alpha1.RoleMaintainer)))
			if got := strings.Trim(fmt.Sprint(say(t, address, raw)), "[]"); got != tt.want {
				t.Errorf("answered %q, want %q", got, tt.want)
			}
			if changed := w.store.changes(); len(changed) > 0 && tt.want != "201" {
				t.Errorf("there is a change in %v", changed)
			}
			w.reset()
		})
	}
}
