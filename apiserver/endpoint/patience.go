package endpoint

import (
	"net/http"
	"strconv"
	"time"
)

// The time that clients have, unless Options say something else.
const (
	defaultReadTimeout  = time.Minute
	defaultWriteTimeout = time.Minute
	defaultFresh        = 5 * time.Second
)

// awaitBody limits how long a client may take to send a body: for a handler that reads it, and for the server, which throws
// away the rest of one that nobody has read.
func (h *Handler) awaitBody(w http.ResponseWriter, r *http.Request) {
	if hasBody(r) {
		// Writers without deadlines, as in tests, are guarded in other ways.
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(h.options.ReadTimeout))
	}
}

// received ends what awaitBody has begun. The server goes on reading, to learn when the client has gone; if that failed in
// time, the handler would be told to stop.
func received(w http.ResponseWriter, r *http.Request) {
	if hasBody(r) {
		_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	}
}

func hasBody(r *http.Request) bool { return r.Body != nil && r.Body != http.NoBody }

// send writes an answer, within a limit for a client that does not read it. What follows on the same connection, such as a
// clone, may take its time again.
func (h *Handler) send(w http.ResponseWriter, status int, body []byte) {
	if len(body) > 0 {
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	}
	c := http.NewResponseController(w)
	_ = c.SetWriteDeadline(time.Now().Add(h.options.WriteTimeout))
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that has gone away hears nothing
	_ = c.Flush()
	_ = c.SetWriteDeadline(time.Time{})
}
