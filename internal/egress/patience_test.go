package egress_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/forgeplane/forgeplane/internal/egress"
)

// impatient are limits that drip exceeds at once.
var impatient = egress.Limits{Patience: 100 * time.Millisecond, Throughput: 1 << 20}

const tooSlow = "127.0.0.1 is too slow: after the first 100ms the server requires at least 1024 KiB per second on average"

// patient are limits that a busy machine can keep.
var patient = egress.Limits{Patience: time.Second, Throughput: 1 << 20}

// both returns a server without TLS and a server with TLS. They run until the test ends.
func both(t *testing.T, answer http.HandlerFunc) map[string]*httptest.Server {
	t.Helper()
	all := map[string]*httptest.Server{"http": httptest.NewServer(answer), "https": httptest.NewTLSServer(answer)}
	for _, s := range all {
		t.Cleanup(s.Close)
	}
	return all
}

// drip calls do every few milliseconds until it fails, over is closed or 20 seconds have passed.
func drip(over <-chan struct{}, do func() error) {
	tick, enough := time.NewTicker(10*time.Millisecond), time.After(20*time.Second)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if do() != nil {
				return
			}
		case <-over:
			return
		case <-enough:
			return
		}
	}
}

// client returns a client that connects to a server through a proxy.
func client(t *testing.T, proxy string, to *httptest.Server) *http.Client {
	t.Helper()
	at, err := url.Parse(proxy)
	if err != nil {
		t.Fatal(err)
	}
	transport := to.Client().Transport.(*http.Transport).Clone()
	transport.Proxy = http.ProxyURL(at)
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func TestProxy_cutsOffTargetThatSendsTooSlowly(t *testing.T) {
	for scheme, server := range both(t, func(w http.ResponseWriter, r *http.Request) {
		drip(r.Context().Done(), func() error {
			_, err := w.Write(make([]byte, 100))
			return errors.Join(err, http.NewResponseController(w).Flush())
		})
	}) {
		t.Run(scheme, func(t *testing.T) {
			p := within(t, impatient, "127.0.0.1")
			err := p.Through(func(proxy string) error {
				answer, err := client(t, proxy, server).Get(server.URL)
				if err != nil {
					return err
				}
				defer answer.Body.Close()
				_, err = io.Copy(io.Discard, answer.Body)
				return err
			})
			if !errors.Is(err, egress.ErrTooSlow) || err.Error() != tooSlow {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestProxy_cutsOffTargetThatReadsTooSlowly(t *testing.T) {
	over := make(chan struct{})
	defer close(over)
	for scheme, server := range both(t, func(_ http.ResponseWriter, r *http.Request) {
		drip(over, func() error { _, err := r.Body.Read(make([]byte, 100)); return err })
	}) {
		t.Run(scheme, func(t *testing.T) {
			p := within(t, impatient, "127.0.0.1")
			err := p.Through(func(proxy string) error {
				// This is more than all buffers on the way can hold.
				_, err := client(t, proxy, server).Post(server.URL, "text/plain", io.LimitReader(zeros{}, 256<<20))
				if err == nil {
					err = errors.New("the target has answered")
				}
				return err
			})
			if !errors.Is(err, egress.ErrTooSlow) || err.Error() != tooSlow {
				t.Errorf("got %v", err)
			}
		})
	}
}

// zeros is an endless stream of zeros.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) { return len(b), nil }

func TestProxy_cutsOffUseDespiteManyConnections(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		<-time.After(impatient.Patience / 4)
	}))
	defer server.Close()
	p := within(t, impatient, "127.0.0.1")
	err := p.Through(func(proxy string) error {
		for range 20 {
			if err := get(t, proxy, server.URL, nil); err != nil {
				return err
			}
		}
		return nil
	})
	if !errors.Is(err, egress.ErrTooSlow) {
		t.Errorf("got %v", err)
	}
}

func TestProxy_toleratesSlowClient(t *testing.T) {
	const size = 16 << 20 // more than all buffers on the way can hold
	for scheme, server := range both(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = w.Write(make([]byte, size))
	}) {
		t.Run(scheme, func(t *testing.T) {
			t.Parallel()
			p := within(t, patient, "127.0.0.1")
			err := p.Through(func(proxy string) error {
				c := client(t, proxy, server)
				for range 2 { // with TLS, both requests use one connection
					content, sent := io.Pipe()
					go func() { // the client is slow to produce its request
						_, _ = sent.Write(make([]byte, 1000))
						<-time.After(patient.Patience * 3 / 2)
						_, err := sent.Write(make([]byte, 1000))
						sent.CloseWithError(err)
					}()
					answer, err := c.Post(server.URL, "text/plain", content)
					if err != nil {
						return err
					}
					<-time.After(patient.Patience * 3 / 2) // the client is busy with something else
					n, err := io.Copy(io.Discard, answer.Body)
					answer.Body.Close()
					if err == nil && n < size {
						err = io.ErrUnexpectedEOF
					}
					if err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}
