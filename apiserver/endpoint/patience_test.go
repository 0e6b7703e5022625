package endpoint_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"github.com/forgeplane/forgeplane/apiserver/endpoint"
)

const (
	// brief is a limit that the test expects to be exceeded, and generous a limit that it expects to be met.
	brief    = 50 * time.Millisecond
	generous = 20 * time.Second
)

// start serves a table with the given timeouts for clients.
func start(t *testing.T, read, write time.Duration, table endpoint.Table) (address string, closed <-chan struct{}) {
	t.Helper()
	ended := make(chan struct{}, 10)
	server := httptest.NewUnstartedServer(endpoint.NewHandler(
		endpoint.Options{Guard: open{}, Log: logr.Discard(), ReadTimeout: read, WriteTimeout: write}, table,
	))
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateClosed {
			ended <- struct{}{}
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	return server.Listener.Addr().String(), ended
}

func dial(t *testing.T, address string) net.Conn {
	t.Helper()
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(generous)); err != nil {
		t.Fatal(err)
	}
	return c
}

// answer reads one answer.
func answer(t *testing.T, from *bufio.Reader) (status int, body string) {
	t.Helper()
	a, err := http.ReadResponse(from, nil)
	if err != nil {
		t.Fatalf("no answer: %v", err)
	}
	defer func() { _ = a.Body.Close() }()
	text, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatalf("half an answer: %v", err)
	}
	return a.StatusCode, string(text)
}

type named struct {
	Name string `param:"name" required:""`
}

var naming = endpoint.Table{endpoint.Post("/names", func(_ context.Context, _ endpoint.None, n *named) (string, error) { return n.Name, nil })}

func TestSlowSenders_areCutOff(t *testing.T) {
	for name, head := range map[string]string{
		"JSON":           "POST /names HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n",
		"a form":         "POST /names HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 100000\r\n\r\n",
		"multipart":      "POST /names HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=b\r\nContent-Length: 100000\r\n\r\n",
		"no type":        "POST /names HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n",
		"chunks":         "POST /names HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n",
		"to no endpoint": "POST /nothing HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			address, closed := start(t, brief, generous, naming)
			c := dial(t, address)
			if _, err := io.WriteString(c, head); err != nil {
				t.Fatal(err)
			}
			// Send one byte at a time, for as long as the server reads.
			stopped, stop := context.WithCancel(t.Context())
			defer stop()
			sent := make(chan struct{})
			go func() {
				defer close(sent)
				tick := time.NewTicker(brief / 10)
				defer tick.Stop()
				for name != "no type" {
					select {
					case <-stopped.Done():
						return
					case <-tick.C:
						if _, err := c.Write([]byte(" ")); err != nil {
							return
						}
					}
				}
			}()
			status, body := answer(t, bufio.NewReader(c))
			stop()
			<-sent
			switch {
			case name == "to no endpoint" && status == 404:
			case name == "chunks" && status == 400: // a blank is not a chunk
			case status == 408 && body == `{"message":"408 Request Timeout"}`:
			default:
				t.Errorf("got %d %s", status, body)
			}
			_ = c.Close()
			select {
			case <-closed:
			case <-time.After(generous):
				t.Error("the server keeps the connection")
			}
		})
	}
}

func TestSlowReaders_areCutOff(t *testing.T) {
	large := strings.Repeat("x", 64<<20) // larger than the buffers of a connection
	address, closed := start(t, generous, brief, endpoint.Table{
		endpoint.Get("/large", func(context.Context, endpoint.None, *endpoint.None) (string, error) { return large, nil }),
	})
	c := dial(t, address)
	if _, err := io.WriteString(c, "GET /large HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	select {
	case <-closed:
	case <-time.After(generous):
		t.Error("the server keeps the connection")
	}
}

func TestSlowHandlers_areNotCutOff(t *testing.T) {
	const limit = time.Second // the client must be faster
	table := endpoint.Table{endpoint.Post("/slow", func(ctx context.Context, _ endpoint.None, _ *named) (string, error) {
		select {
		case <-ctx.Done():
			return "", fmt.Errorf("the handler was told to stop: %w", ctx.Err())
		case <-time.After(2 * limit):
			return "done", nil
		}
	})}
	address, _ := start(t, limit, limit, table)
	c := dial(t, address)
	from := bufio.NewReader(c)
	// The second request shows that the connection can still be used.
	for range 2 {
		request := "POST /slow HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 12\r\n\r\n" + `{"name":"a"}`
		if _, err := io.WriteString(c, request); err != nil {
			t.Fatal(err)
		}
		if status, body := answer(t, from); status != http.StatusCreated || body != `"done"` {
			t.Fatalf("got %d %s", status, body)
		}
	}
}

func TestLongBodies_areRefusedEarly(t *testing.T) {
	address, _ := start(t, generous, generous, naming)
	const want = `{"message":"413 Request Entity Too Large"}`
	t.Run("by their announced length", func(t *testing.T) {
		c := dial(t, address)
		// The 50 MB are never sent.
		if _, err := io.WriteString(c, "POST /names HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 52428800\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if status, body := answer(t, bufio.NewReader(c)); status != 413 || body != want {
			t.Errorf("got %d %s", status, body)
		}
	})
	for _, kind := range []string{"application/json", "application/x-www-form-urlencoded", "multipart/form-data; boundary=b"} {
		t.Run("while they are read as "+kind, func(t *testing.T) {
			endless := &counting{of: bytes.Repeat([]byte("--b\r\nContent-Disposition: form-data; name=\"name\"\r\n\r\nx\r\n"), 1000)}
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+address+"/names", endless)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", kind)
			a, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = a.Body.Close() }()
			body, err := io.ReadAll(a.Body)
			if err != nil || a.StatusCode != 413 || string(body) != want {
				t.Errorf("got %d %s, %v", a.StatusCode, body, err)
			}
		})
	}
}

// counting is a body of 50 MB.
type counting struct {
	of   []byte
	read int
}

func (c *counting) Read(into []byte) (int, error) {
	if c.read >= 50<<20 {
		return 0, io.EOF
	}
	n := copy(into, c.of[c.read%len(c.of):])
	c.read += n
	return n, nil
}
