// Package traffic sends the same request again and again, on several connections at the same time.
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

// Connection sends one request at a time and reads the answer completely.
type Connection interface {
	// Exchange returns the status of the answer. It does not reuse data that it has read.
	Exchange(ctx context.Context) (status int, err error)
	Close() error
}

// Dial opens a connection.
type Dial func(ctx context.Context) (Connection, error)

// Result are the measurements of some traffic.
type Result struct {
	// Rate is the number of answers per second.
	Rate float64
	// Times are the durations of the requests, in ascending order.
	Times []time.Duration
}

// Quantile returns the maximum duration of a share of the requests.
func (r Result) Quantile(share float64) time.Duration {
	return r.Times[min(int(share*float64(len(r.Times))), len(r.Times)-1)]
}

// Run sends requests on a number of connections for some time. Every answer must be a success.
func Run(ctx context.Context, dial Dial, connections int, lasts time.Duration) (Result, error) {
	// Requests that are interrupted by the end are not counted.
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

// timeout limits one exchange.
const timeout = 30 * time.Second

// plain is a connection of HTTP/1.1 without TLS. It uses as little CPU time as possible, because the measured server uses the same cores.
type plain struct {
	connection net.Conn
	reader     *bufio.Reader
	request    *http.Request
	bytes      []byte
	read       []byte
}

// readSize is the number of bytes that are read at once. It is large, so that reading uses less CPU time than the measured server.
const readSize = 256 << 10

// Plain returns a function that opens connections which send a request. A request with a body can only be sent by one connection.
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

// shared is one of many connections that use the same client, which manages its own connections.
type shared struct {
	client  *http.Client
	request *http.Request
}

// Through returns a function that opens connections which send a request with a client. All of them share the connections of the client.
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
