package endpoint_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"

	"github.com/forgeplane/forgeplane/apiserver/endpoint"
)

// connections is a listener that accepts the connections that are sent to it.
type connections chan net.Conn

func (c connections) Accept() (net.Conn, error) {
	one, ok := <-c
	if !ok {
		return nil, net.ErrClosed
	}
	return one, nil
}

func (connections) Close() error   { return nil }
func (connections) Addr() net.Addr { return &net.UnixAddr{} }

// TestContent_cutsOffSlowClients runs with a fake clock, so that a minute takes no time.
func TestContent_cutsOffSlowClients(t *testing.T) {
	const size, piece = 32 << 20, 32 << 10
	for _, tt := range []struct {
		name string
		// second is the number of bytes that the client reads per second, and pause is the time that the server takes for each of four
		// parts.
		second int
		pause  time.Duration
		cutOff bool
	}{
		{"a client that is too slow, though it takes each piece in time", 32 << 10, 0, true},
		{"a client that is fast enough, for which it takes minutes", 128 << 10, 0, false},
		{"a server that is slow", 4 << 20, 20 * time.Minute, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var failed error
				file := endpoint.Table{endpoint.Get("/file", func(context.Context, endpoint.None, *endpoint.None) (endpoint.Content, error) {
					return endpoint.Content{Type: "text/plain", Size: size, Write: func(w io.Writer) error {
						for sent := 0; sent < size && failed == nil; sent += piece {
							if sent%(size/4) == 0 {
								<-time.After(tt.pause)
							}
							_, failed = w.Write(make([]byte, piece))
						}
						return failed
					}}, nil
				})}
				server := &http.Server{Handler: endpoint.NewHandler(endpoint.Options{Guard: open{}, Log: logr.Discard()}, file)}
				accepted, served := make(connections, 1), make(chan error)
				go func() { served <- server.Serve(accepted) }()
				client, behind := net.Pipe()
				accepted <- behind
				if _, err := io.WriteString(client, "GET /file HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"); err != nil {
					t.Fatal(err)
				}
				begun := time.Now()
				taken := take(t, client, tt.second)
				took := time.Since(begun)
				if cutOff := errors.Is(failed, os.ErrDeadlineExceeded); cutOff != tt.cutOff || !cutOff && (failed != nil || taken != size) {
					t.Errorf("the client got %d bytes in %s, and the server %v", taken, took, failed)
				}
				if tt.cutOff && took > 3*time.Minute {
					t.Errorf("the client was cut off after %s", took)
				}
				close(accepted)
				if err := <-served; !errors.Is(err, net.ErrClosed) {
					t.Error(err)
				}
			})
		})
	}
}

// take reads the body of an answer at the given number of bytes per second, and returns its length.
func take(t *testing.T, from net.Conn, second int) (taken int64) {
	t.Helper()
	defer func() { _ = from.Close() }()
	answer, err := http.ReadResponse(bufio.NewReader(from), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	for {
		n, err := io.CopyN(io.Discard, answer.Body, int64(second))
		if taken += n; err != nil {
			return taken
		}
		<-time.After(time.Second)
	}
}
