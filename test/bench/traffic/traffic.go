// Package traffic sends the same request again and again, on several connections at once.
package traffic

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
)

// Connection sends one request at a time and reads the answer to its end.
type Connection interface {
	// Exchange returns the status of the answer. It does not reuse what it has read.
	Exchange(ctx context.Context) (status int, err error)
	Close() error
}

// Dial opens a connection.
type Dial func(ctx context.Context) (Connection, error)

// Result is what was seen of some traffic.
type Result struct {
	// Rate is how many requests were answered in a second.
	Rate float64
	// Times are how long each took, in order of length.
	Times []time.Duration
}

// Quantile is what a share of the requests took at most.
func (r Result) Quantile(share float64) time.Duration {
	return r.Times[min(int(share*float64(len(r.Times))), len(r.Times)-1)]
}

// Run sends requests on a number of connections for a while. Every answer must be a success.
func Run(ctx context.Context, dial Dial, connections int, lasts time.Duration) (Result, error) {
	// Requests that the end cuts off are not counted.
	ended := time.Now().Add(lasts)
	times := make([][]time.Duration, connections)
	all, ctx := errgroup.WithContext(ctx)
	begun := time.Now()
	for n := range connections {
		all.Go(func() (err error) {
			c, err := dial(ctx)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, c.Close()) }()
			for from := time.Now(); from.Before(ended); {
				status, err := c.Exchange(ctx)
				if err != nil {
					return fmt.Errorf("waiting for an answer: %w", err)
				}
				if status >= http.StatusMultipleChoices {
					return fmt.Errorf("a request was answered with %d", status)
				}
				now := time.Now()
				times[n] = append(times[n], now.Sub(from))
				from = now
			}
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		return Result{}, err
	}
	r := Result{Times: slices.Concat(times...)}
	r.Rate = float64(len(r.Times)) / time.Since(begun).Seconds()
	slices.Sort(r.Times)
	return r, nil
}

// timeout bounds one exchange.
const timeout = 30 * time.Second

// plain is a connection of HTTP/1.1 without TLS, which computes as little as it can: what is measured has the same cores.
type plain struct {
	connection net.Conn
	reader     *bufio.Reader
	request    *http.Request
	bytes      []byte
	read       []byte
}

// readSize is how much is read at once. Much, so that it takes less computing than what is measured.
const readSize = 256 << 10

// Plain returns how to open connections that send a request without a body.
func Plain(request *http.Request) Dial {
	return func(ctx context.Context) (Connection, error) {
		var b bytes.Buffer
		if err := request.Write(&b); err != nil {
			return nil, err
		}
		c, err := new(net.Dialer).DialContext(ctx, "tcp", request.URL.Host)
		if err != nil {
			return nil, err
		}
		return &plain{connection: c, reader: bufio.NewReader(c), request: request, bytes: b.Bytes(), read: make([]byte, readSize)}, nil
	}
}

// Exchange implements Connection.
func (p *plain) Exchange(context.Context) (int, error) {
	if err := p.connection.SetDeadline(time.Now().Add(timeout)); err != nil {
		return 0, err
	}
	if _, err := p.connection.Write(p.bytes); err != nil {
		return 0, err
	}
	answer, err := http.ReadResponse(p.reader, p.request)
	if err != nil {
		return 0, err
	}
	for err == nil {
		_, err = answer.Body.Read(p.read)
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return answer.StatusCode, errors.Join(err, answer.Body.Close())
}

// Close implements Connection.
func (p *plain) Close() error { return p.connection.Close() }

// shared is one of many that use a client, which has its own idea of connections.
type shared struct {
	client  *http.Client
	request *http.Request
}

// Through returns how to send a request by a client: all of one run share what the client connects with.
func Through(client *http.Client, request *http.Request) Dial {
	return func(context.Context) (Connection, error) { return shared{client, request}, nil }
}

// Exchange implements Connection.
func (s shared) Exchange(ctx context.Context) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	answer, err := s.client.Do(s.request.Clone(ctx))
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode, errors.Join(err, answer.Body.Close())
}

// Close implements Connection.
func (shared) Close() error { return nil }
