package forge

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// Writes are the requests of one client that may have changed something in Kubernetes. They are counted in the transport, so that no request is
// missed.
type Writes struct {
	lock     sync.Mutex
	requests []string
	// halt stops the client, unless it is nil.
	halt *halt
}

// All returns the requests so far as text. It omits the contents of Secrets.
func (w *Writes) All() []string {
	w.lock.Lock()
	defer w.lock.Unlock()
	return slices.Clone(w.requests)
}

// since returns the requests after the first n.
func (w *Writes) since(n int) []string { return w.All()[n:] }

func (w *Writes) count() int { return len(w.All()) }

func (w *Writes) wrap(next http.RoundTripper) http.RoundTripper { return &writesCounter{w, next} }

type writesCounter struct {
	writes *Writes
	next   http.RoundTripper
}

// maxShown limits the length of the recorded body of a request.
const maxShown = 2000

func (c *writesCounter) RoundTrip(r *http.Request) (*http.Response, error) {
	text := fmt.Sprintf("%s %s", r.Method, r.URL.Path)
	changes := r.Method != http.MethodGet && r.Method != http.MethodHead
	if changes {
		if r.Body != nil && !strings.Contains(r.URL.Path, "/secrets") {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return nil, err
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
			text += " " + strings.ToValidUTF8(string(body[:min(len(body), maxShown)]), "?")
		}
		c.writes.lock.Lock()
		c.writes.requests = append(c.writes.requests, text)
		c.writes.lock.Unlock()
	}
	wait := c.writes.meet(text)
	if changes {
		wait()
	}
	answer, err := c.next.RoundTrip(r)
	wait()
	return answer, err
}
